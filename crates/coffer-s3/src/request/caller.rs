//! Who asks: the subject behind a request's signature, and the request itself.

use std::sync::Arc;

use coffer_vault::{BucketName, NoSuchTransfer, Subject, Vault, VaultError};
use http::{HeaderMap, StatusCode};
use s3s::{S3Error, S3Request, S3Result, s3_error};

use crate::checksums::expected::ExpectedDigests;
use crate::errors::{absent, custom, from_vault};
use crate::parameters::encryption;
use crate::request::context::{BodyFault, RequestContext};

/// The subject and the context of a request; every operation begins with this.
pub(crate) struct Caller {
    pub(crate) subject: Arc<Subject>,
    pub(crate) context: Arc<RequestContext>,
}

impl Caller {
    /// Finds who was noted when the signature had been checked. A request that went past that
    /// check has no subject.
    pub(crate) fn of<T>(request: &S3Request<T>) -> S3Result<Self> {
        let subject = request.extensions.get::<Arc<Subject>>();
        let context = request.extensions.get::<Arc<RequestContext>>();
        match (subject, context) {
            (Some(subject), Some(context)) => Ok(Self {
                subject: subject.clone(),
                context: context.clone(),
            }),
            _ => Err(s3_error!(AccessDenied, "Access Denied")),
        }
    }

    /// The vault's refusal in S3's words; for a body that did not arrive, the reason why.
    pub(crate) fn refused(&self, error: VaultError) -> S3Error {
        match error {
            VaultError::Body(body) if body.0.is::<NoSuchTransfer>() => no_such_transfer(),
            VaultError::Body(_) => match self.context.fault() {
                Some(fault) => fault_error(fault),
                None => from_vault(error),
            },
            other => from_vault(other),
        }
    }

    /// Compares an XML body with the digests that were sent along.
    pub(crate) fn check_xml_body(&self, headers: &HeaderMap) -> S3Result {
        let expected = ExpectedDigests::read(headers)?;
        expected
            .compare_whole(self.context.xml(), &self.context)
            .map_err(from_vault)
    }

    /// As [`check_xml_body`](Self::check_xml_body), where there must be one.
    pub(crate) fn check_xml_body_has_digest(&self, headers: &HeaderMap) -> S3Result {
        if ExpectedDigests::read(headers)? == ExpectedDigests::default() {
            return Err(s3_error!(
                InvalidRequest,
                "Missing required header for this request: Content-MD5 OR x-amz-checksum-*"
            ));
        }
        self.check_xml_body(headers)
    }

    /// As [`check_xml_body`](Self::check_xml_body), where the checksum in the headers is that of
    /// an object, and only the MD5 that of the body.
    pub(crate) fn check_xml_md5(&self, headers: &HeaderMap) -> S3Result {
        let expected = ExpectedDigests::md5_only(headers)?;
        expected
            .compare_whole(self.context.xml(), &self.context)
            .map_err(from_vault)
    }

    /// Refuses a key id that is not the level of the bucket.
    pub(crate) async fn check_named_key(
        &self,
        vault: &Vault,
        bucket: &BucketName,
        headers: &HeaderMap,
    ) -> S3Result {
        let Some(named) = encryption::named_key(headers)? else {
            return Ok(());
        };
        let info = vault
            .bucket(&self.subject, bucket)
            .await
            .map_err(from_vault)?;
        encryption::check_key(named, &info.level)
    }
}

/// The headers as the client sent them, where s3s sees others.
#[derive(Clone)]
pub(crate) struct Original(pub(crate) HeaderMap);

/// The headers of a request as the client sent them.
pub(crate) fn headers<T>(request: &S3Request<T>) -> &HeaderMap {
    request
        .extensions
        .get::<Original>()
        .map_or(&request.headers, |original| &original.0)
}

/// The ticket of a commit is no good.
pub(crate) fn no_such_transfer() -> S3Error {
    absent(
        "NoSuchTransfer",
        "The bytes that this ticket stands for have not arrived, are another upload's, or waited \
         for too long. Announce the upload and send it again.",
    )
}

/// Why a body did not arrive whole.
pub(crate) fn fault_error(fault: BodyFault) -> S3Error {
    match fault {
        BodyFault::Sha256 => custom(
            "XAmzContentSHA256Mismatch",
            StatusCode::BAD_REQUEST,
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        ),
        BodyFault::ChunkSignature => s3_error!(
            SignatureDoesNotMatch,
            "The signature of a chunk does not match the one we calculated"
        ),
        BodyFault::Trailers => custom(
            "MalformedTrailerError",
            StatusCode::BAD_REQUEST,
            "The request contained trailing data that was not well-formed or did not conform to \
             our published schema: the trailers are not those that x-amz-trailer announces",
        ),
        BodyFault::ChunkTooSmall => custom(
            "InvalidChunkSizeError",
            StatusCode::FORBIDDEN,
            "Only the last chunk is allowed to have a size less than 8192 bytes",
        ),
        BodyFault::Disconnected => {
            s3_error!(IncompleteBody, "The connection ended before the body did")
        }
        BodyFault::TooSlow => s3_error!(
            RequestTimeout,
            "Your socket connection to the server was not written to fast enough"
        ),
        BodyFault::Malformed => {
            s3_error!(IncompleteBody, "The request body terminated unexpectedly")
        }
        BodyFault::Incomplete => from_vault(VaultError::IncompleteBody),
        BodyFault::TooLong => s3_error!(MaxMessageLengthExceeded, "Your request was too large."),
        BodyFault::NoRoom => s3_error!(
            SlowDown,
            "The server holds as many large request bodies as it may. Please try again."
        ),
    }
}
