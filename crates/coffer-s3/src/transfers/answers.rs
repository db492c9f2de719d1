//! What answers say of sealed transfer: keys and tickets, in bodies alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::record::{Checksum, Verification};
use coffer_vault::{
    ArrivedBytes, DataPort, ReleasedSegment, SealedObject, SealedUpload, Stored, Ticket, Vault,
};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use s3s::{Body, HttpResponse, S3Error, S3Result, s3_error};
use serde::Serialize;

use crate::parameters::names;
use crate::parameters::transfer::{TRANSFER, asks_for_sealed};
use crate::request::caller::{Caller, no_such_transfer};
use crate::request::signed::SignedForm;

/// The version of the protocol.
const VERSION: u32 = 1;

const JSON: &str = "application/json";

/// How many bytes of plaintext there are, or are to be.
pub(crate) const TRANSFER_LENGTH: HeaderName = HeaderName::from_static("x-coffer-transfer-length");

/// How an object is stored that came sealed and was not opened then.
const STORED: HeaderName = HeaderName::from_static("x-coffer-stored");

/// Of HeadBucket: the version of the protocol.
pub(crate) const OFFERED: HeaderName = HeaderName::from_static("x-coffer-sealed-transfer");

/// What a client needs to fetch an object and open it.
#[derive(Serialize)]
struct ObjectDocument {
    version: u32,
    ticket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    port: u16,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls: bool,
    expires_ms: u64,
    range: [u64; 2],
    bytes: u64,
    segments: Vec<SegmentDocument>,
    headers: ObjectHeaders,
}

#[derive(Serialize)]
struct SegmentDocument {
    key: String,
    context: String,
    header: String,
    first_chunk: u64,
    sealed_bytes: u64,
    is_last: bool,
    skip: u64,
    bytes: u64,
}

/// Headers of the object that the answer has for itself.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ObjectHeaders {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content_encoding: Option<String>,
}

/// What a client needs to seal an upload and send it, or that it is to be sent as any other.
#[derive(Serialize)]
struct UploadDocument {
    version: u32,
    transfer: &'static str,
    #[serde(flatten)]
    sealed: Option<SealedDocument>,
}

#[derive(Serialize)]
struct SealedDocument {
    ticket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    port: u16,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tls: bool,
    expires_ms: u64,
    key: String,
    context: String,
    bytes: u64,
}

/// Whether a request asks for an object sealed, and may: keys are for those who sign each request,
/// not for all who are handed a URL.
pub(crate) fn is_asked(caller: &Caller, headers: &HeaderMap) -> bool {
    asks_for_sealed(headers) && is_signed_in_header(caller)
}

pub(super) fn is_signed_in_header(caller: &Caller) -> bool {
    let signed = caller.context.signed();
    signed.is_some_and(|signed| signed.form == SignedForm::Header)
}

/// The body of the answer that gives out an object sealed.
pub(crate) fn document_of(
    vault: &Vault,
    sealed: &SealedObject,
    headers: ObjectHeaders,
) -> S3Result<Vec<u8>> {
    let port = port_of(vault)?;
    let ticket = sealed.ticket.expose().to_string();
    let document = ObjectDocument {
        version: VERSION,
        url: port.url_of(&ticket),
        ticket,
        port: port.port,
        tls: port.speaks_tls,
        expires_ms: milliseconds(sealed.patience),
        range: [sealed.range.start, sealed.range.end],
        bytes: sealed.sealed_bytes,
        segments: sealed.segments.iter().map(segment).collect(),
        headers,
    };
    serde_json::to_vec(&document).map_err(S3Error::internal_error)
}

fn segment(released: &ReleasedSegment) -> SegmentDocument {
    let segment = &released.segment;
    SegmentDocument {
        key: BASE64.encode(released.data_key.expose()),
        context: BASE64.encode(released.context.as_bytes()),
        header: BASE64.encode(segment.header),
        first_chunk: segment.first_chunk,
        sealed_bytes: segment.sealed.end - segment.sealed.start,
        is_last: segment.is_last,
        skip: segment.skip,
        bytes: segment.bytes,
    }
}

fn port_of(vault: &Vault) -> S3Result<&DataPort> {
    vault
        .data_port()
        .ok_or_else(|| s3_error!(InternalError, "There is no data port"))
}

fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Headers of the answer that gives out an object sealed.
pub(crate) fn headers_of(sealed: &SealedObject) -> HeaderMap {
    let asked = sealed.info.range.end - sealed.info.range.start;
    HeaderMap::from_iter([
        (TRANSFER, HeaderValue::from_static("sealed")),
        (TRANSFER_LENGTH, asked.into()),
    ])
}

/// What HeadBucket tells of sealed transfer.
pub(crate) fn offered(vault: &Vault, caller: &Caller, bucket: &str) -> S3Result<HeaderMap> {
    let bucket = names::bucket(bucket)?;
    let is_offered = is_signed_in_header(caller) && vault.has_transfers(&caller.subject, &bucket);
    let header = is_offered.then(|| (OFFERED, VERSION.into()));
    Ok(HeaderMap::from_iter(header))
}

/// What is told of an object, or a part, that was stored as it came; of others nothing is.
pub(crate) fn stored_as(verification: Verification) -> HeaderMap {
    let word = match verification {
        Verification::Whole => None,
        Verification::Waits => Some("unverified"),
        Verification::Failed => Some("damaged"),
    };
    HeaderMap::from_iter(word.map(|word| (STORED, HeaderValue::from_static(word))))
}

/// The same of what has just been stored.
pub(crate) fn just_stored(stored: &Stored) -> HeaderMap {
    stored_as(if stored.is_unverified {
        Verification::Waits
    } else {
        Verification::Whole
    })
}

/// The ticket of a commit, where a header has one: the bytes have come, and the request has none.
pub(crate) fn ticket_of(
    header: Option<&HeaderValue>,
    body_bytes: Option<u64>,
    told: Option<Checksum>,
) -> S3Result<Option<ArrivedBytes>> {
    let Some(value) = header else {
        return Ok(None);
    };
    if body_bytes != Some(0) {
        return Err(s3_error!(
            InvalidRequest,
            "The bytes of this upload have been sent sealed: the request that commits them has none"
        ));
    }
    let ticket = value.to_str().ok().and_then(Ticket::parse);
    let ticket = ticket.ok_or_else(no_such_transfer)?;
    Ok(Some(ArrivedBytes { ticket, told }))
}

/// The answer to an announcement; none: the upload is to be sent as any other.
pub(super) fn upload_answer(
    vault: &Vault,
    announced: Option<SealedUpload>,
) -> S3Result<HttpResponse> {
    let document = UploadDocument {
        version: VERSION,
        transfer: if announced.is_some() { "sealed" } else { "tls" },
        sealed: announced
            .map(|upload| sealed_document(vault, &upload))
            .transpose()?,
    };
    let body = serde_json::to_vec(&document).map_err(S3Error::internal_error)?;
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

fn sealed_document(vault: &Vault, upload: &SealedUpload) -> S3Result<SealedDocument> {
    let port = port_of(vault)?;
    let ticket = upload.ticket.expose().to_string();
    Ok(SealedDocument {
        url: port.url_of(&ticket),
        ticket,
        port: port.port,
        tls: port.speaks_tls,
        expires_ms: milliseconds(upload.patience),
        key: BASE64.encode(upload.data_key.expose()),
        context: BASE64.encode(upload.context.as_bytes()),
        bytes: upload.sealed_bytes,
    })
}
