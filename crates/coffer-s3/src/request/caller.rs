//! Who asks: the subject behind a request's signature, and the request itself.

use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::record::ObjectName;
use coffer_vault::{BodyError, BucketName, ReadOptions, Subject, Vault, VaultError};
use http::HeaderMap;
use s3s::{S3Error, S3Request, S3Result, TrailingHeaders, s3_error};

use crate::checksums::expected::ExpectedDigests;
use crate::errors::from_vault;
use crate::parameters::encryption;
use crate::request::aws_chunked::ChunkStyle;
use crate::request::context::{BodyFault, RequestContext};

/// Trailers of a request that s3s sees a second time, without its signature.
#[derive(Clone)]
pub(crate) struct Trailers(pub(crate) TrailingHeaders);

/// The subject and the context of a request; every operation begins with this.
pub(crate) struct Caller {
    pub(crate) subject: Arc<Subject>,
    pub(crate) context: Arc<RequestContext>,
}

impl Caller {
    /// Finds who was noted when the signature had been checked. A request that went past that
    /// check has nobody to act for.
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
            VaultError::Body(cause) => body_error(self.context.fault(), &cause),
            other => from_vault(other),
        }
    }

    /// The refusal of a write to an object that was wanted there: S3 tells one that is missing from
    /// one with another entity tag.
    pub(crate) async fn write_refused(
        &self,
        vault: &Vault,
        bucket: &BucketName,
        wanted: Option<ObjectName>,
        error: VaultError,
    ) -> S3Error {
        let (VaultError::PreconditionFailed, Some(name)) = (&error, wanted) else {
            return self.refused(error);
        };
        let read = ReadOptions::default();
        match vault.head_object(&self.subject, bucket, &name, read).await {
            Err(missing @ VaultError::NoSuchObject) => from_vault(missing),
            _ => from_vault(error),
        }
    }

    /// Compares an XML body with the digests that were sent along, and gives it out where it was
    /// kept.
    pub(crate) fn check_xml_body(&self, headers: &HeaderMap) -> S3Result<Vec<Bytes>> {
        let expected = ExpectedDigests::read(headers)?;
        let body = self.context.take_body();
        expected.compare_whole(&body).map_err(from_vault)?;
        Ok(body)
    }

    /// As [`check_xml_body`](Self::check_xml_body), where the checksum in the headers is that of
    /// an object, and only the MD5 that of the body.
    pub(crate) fn check_xml_md5(&self, headers: &HeaderMap) -> S3Result {
        let body = self.context.take_body();
        ExpectedDigests::md5_only(headers)?
            .compare_whole(&body)
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

/// The handle on the trailers of a request, from wherever it came.
pub(crate) fn trailers<T>(request: &S3Request<T>) -> Option<TrailingHeaders> {
    let own = request.trailing_headers.clone();
    own.or_else(|| {
        request
            .extensions
            .get::<Trailers>()
            .map(|trailers| trailers.0.clone())
    })
}

/// Why a body did not arrive whole. What s3s found is told by its text only, for its error types
/// are private; what was found below it has been noted.
fn body_error(fault: Option<BodyFault>, cause: &BodyError) -> S3Error {
    if let Some(fault) = fault {
        return fault_error(fault);
    }
    let text = cause.to_string();
    let tells = |end: &str| text.ends_with(end);
    if tells("UploadStreamError: Sha256Mismatch") {
        content_sha256_mismatch()
    } else if tells("AwsChunkedStreamError: SignatureMismatch") {
        wrong_chunk_signature()
    } else if tells("Incomplete") || tells("LengthMismatch") {
        from_vault(VaultError::IncompleteBody)
    } else {
        malformed_chunks()
    }
}

/// Why s3s could not read a body that it collects itself. It does not say: where nothing was found
/// below it, it can only be that the body was not the one that was signed.
pub(crate) fn unread_body(context: &RequestContext) -> S3Error {
    match (context.fault(), context.chunks()) {
        (Some(fault), _) => fault_error(fault),
        (None, None) => content_sha256_mismatch(),
        (None, Some(ChunkStyle::Signed)) => wrong_chunk_signature(),
        (None, Some(ChunkStyle::Unsigned)) => malformed_chunks(),
    }
}

fn fault_error(fault: BodyFault) -> S3Error {
    match fault {
        BodyFault::Disconnected => {
            s3_error!(IncompleteBody, "The connection ended before the body did")
        }
        BodyFault::TooSlow => s3_error!(
            RequestTimeout,
            "Your socket connection to the server was not written to fast enough"
        ),
        BodyFault::Malformed => malformed_chunks(),
        BodyFault::ChunkTooLarge => {
            s3_error!(InvalidRequest, "A signed chunk may have at most 4 MiB")
        }
        BodyFault::Incomplete => from_vault(VaultError::IncompleteBody),
        BodyFault::TooLong => s3_error!(MaxMessageLengthExceeded, "Your request was too large."),
        BodyFault::NoRoom => s3_error!(
            SlowDown,
            "The server holds as many large request bodies as it may. Please try again."
        ),
    }
}

fn wrong_chunk_signature() -> S3Error {
    s3_error!(
        SignatureDoesNotMatch,
        "The signature of a chunk does not match the one we calculated"
    )
}

/// S3's answer to a body that is not the one that was signed.
fn content_sha256_mismatch() -> S3Error {
    crate::errors::custom(
        "XAmzContentSHA256Mismatch",
        http::StatusCode::BAD_REQUEST,
        "The provided 'x-amz-content-sha256' header does not match what was computed.",
    )
}

fn malformed_chunks() -> S3Error {
    s3_error!(
        InvalidRequest,
        "The aws-chunked encoding of the body is malformed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(fault: Option<BodyFault>, text: &str) -> String {
        let cause = BodyError(text.to_owned().into());
        body_error(fault, &cause).code().as_str().to_owned()
    }

    #[test]
    fn what_s3s_found_is_told_apart() {
        let cases = [
            (
                "UploadStreamError: Sha256Mismatch",
                "XAmzContentSHA256Mismatch",
            ),
            ("UploadStreamError: Incomplete", "IncompleteBody"),
            ("UploadStreamError: LengthMismatch", "IncompleteBody"),
            (
                "AwsChunkedStreamError: SignatureMismatch",
                "SignatureDoesNotMatch",
            ),
            ("AwsChunkedStreamError: Incomplete", "IncompleteBody"),
            ("AwsChunkedStreamError: FormatError", "InvalidRequest"),
        ];
        for (text, expected) in cases {
            assert_eq!(code(None, text), expected, "{text}");
        }
        assert_eq!(code(Some(BodyFault::Disconnected), "any"), "IncompleteBody");
        assert_eq!(code(Some(BodyFault::TooSlow), "any"), "RequestTimeout");
        assert_eq!(
            code(Some(BodyFault::ChunkTooLarge), "any"),
            "InvalidRequest"
        );
    }
}
