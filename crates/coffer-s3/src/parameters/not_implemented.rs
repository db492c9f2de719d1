//! What S3 has and coffer has not, where a request asks for it in a header, the query or a
//! document. An operation of its own that is missing answers NotImplemented by itself; these would
//! pass in silence.

use http::header::{
    CONTENT_RANGE, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
};
use http::{HeaderMap, HeaderName};
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::details::{carried, of_argument};
use crate::errors::{custom, not_implemented, of_conditions};
use crate::http::percent::form_pairs;
use crate::parameters::transfer::TRANSFER;

const EVENT_HOLD: &str = "A hold until an event";

/// What a hold until an event is called in a document that was written anew: all begin so.
const EVENT_HOLDS: [&str; 2] = ["<EventHold", "<DefaultEventHold"];

/// Headers whose presence alone asks for what is missing.
const HEADERS: [(&str, &str); 10] = [
    ("x-amz-object-lock-event-hold", EVENT_HOLD),
    ("x-amz-object-lock-event-hold-duration-days", EVENT_HOLD),
    ("x-amz-object-lock-event-hold-duration-years", EVENT_HOLD),
    ("x-amz-write-offset-bytes", "Appending to an object"),
    ("x-amz-mfa", "Multi-factor authentication"),
    ("x-amz-if-match-last-modified-time", "This condition"),
    ("x-amz-if-match-size", "This condition"),
    ("x-amz-if-match-initiated-time", "This condition"),
    ("x-amz-rename-source", "Renaming without ?renameObject"),
    (
        "x-amz-server-side-encryption-context",
        "An encryption context",
    ),
];

/// Those of them that a deletion has.
const OF_DELETIONS: [&str; 2] = ["x-amz-if-match-last-modified-time", "x-amz-if-match-size"];

/// Operations that are none of a copy, which a client may mean that names a source.
const NO_COPIES: [&str; 4] = ["DeleteObject", "DeleteObjects", "GetObject", "HeadObject"];

/// Operations that a request becomes by naming a source, whatever else it says.
const COPIES: [&str; 2] = ["CopyObject", "UploadPartCopy"];

/// Conditions on what is there, which most writes have.
const CONDITIONS: [HeaderName; 4] = [
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE,
];

/// Names in a query that select something else than the object or bucket itself. s3s takes those
/// it does not know, or not with this method, for nothing: `DELETE /bucket?acl` would delete the
/// bucket.
pub(crate) const SUBRESOURCES: [&str; 43] = [
    "abac",
    "accelerate",
    "acl",
    "analytics",
    "annotation",
    "append",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "events",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metadataAnnotationTable",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "session",
    "tagging",
    "torrent",
    "uploads",
    "versioning",
    "versions",
    "website",
    "append-object",
];

/// Operations that s3s falls back to, and the parameters that each may have without a value or
/// with any. For other names without a value, see [`SUBRESOURCES`].
const FALLBACKS: [(&str, &[&str]); 10] = [
    (
        "ListBuckets",
        &[
            "prefix",
            "max-buckets",
            "continuation-token",
            "bucket-region",
        ],
    ),
    ("CreateBucket", &[]),
    ("DeleteBucket", &[]),
    ("HeadBucket", &[]),
    (
        "ListObjects",
        &[
            "prefix",
            "delimiter",
            "marker",
            "max-keys",
            "encoding-type",
            "list-type",
        ],
    ),
    ("PutObject", &[]),
    ("CopyObject", &[]),
    ("GetObject", &["versionId", "partNumber"]),
    ("HeadObject", &["versionId", "partNumber"]),
    ("DeleteObject", &["versionId"]),
];

/// Operations on a version that the query names. No other takes one, and passed over, the id would
/// leave its sender to believe that it was that version.
const OF_VERSIONS: [&str; 14] = [
    "DeleteObject",
    "DeleteObjectTagging",
    "GetObject",
    "GetObjectAcl",
    "GetObjectAttributes",
    "GetObjectLegalHold",
    "GetObjectRetention",
    "GetObjectTagging",
    "HeadObject",
    "PutObjectAcl",
    "PutObjectLegalHold",
    "PutObjectRetention",
    "PutObjectTagging",
    "RestoreObject",
];

/// What names the version.
const VERSION_ID: &str = "versionId";

/// Refuses headers that ask for what is missing.
pub(crate) fn check_headers(operation: &str, headers: &HeaderMap) -> S3Result {
    // A part of an object in place of the whole would end the rest (RFC 9110, section 14.5).
    if operation == "PutObject" && headers.contains_key(CONTENT_RANGE) {
        return Err(s3_error!(
            InvalidRequest,
            "An object is written whole: Content-Range has no place in this request"
        ));
    }
    if NO_COPIES.contains(&operation) && headers.contains_key("x-amz-copy-source") {
        let error = s3_error!(
            InvalidArgument,
            "You can only specify a copy source header for copy requests."
        );
        let told = [("ArgumentName", "x-amz-copy-source".to_owned())];
        return Err(carried(error, &told));
    }
    if COPIES.contains(&operation) && headers.contains_key(TRANSFER) {
        return Err(s3_error!(
            InvalidRequest,
            "What has been sent sealed is not copied from elsewhere: its commit names no \
             x-amz-copy-source"
        ));
    }
    for (name, value) in headers {
        let Some(rest) = name.as_str().strip_prefix("x-amz-") else {
            continue;
        };
        // The usual headers of any request, passed over quickly.
        if matches!(rest, "date" | "content-sha256" | "user-agent") || rest.starts_with("meta-") {
            continue;
        }
        let is_known = match operation {
            "DeleteObject" => OF_DELETIONS.contains(&name.as_str()),
            "RenameObject" => rest == "rename-source",
            _ => false,
        };
        if is_known {
            continue;
        }
        check_header(name, value.to_str().unwrap_or(""))?;
    }
    Ok(())
}

/// Refuses the conditions of a write that keeps none. The headers are those that the client sent.
pub(crate) fn check_conditions(headers: &HeaderMap) -> S3Result {
    let mut names = CONDITIONS.into_iter();
    if names.any(|name| headers.contains_key(name)) {
        return Err(of_conditions(not_implemented("This condition"), headers));
    }
    Ok(())
}

fn check_header(name: &HeaderName, value: &str) -> S3Result {
    if let Some((_, what)) = HEADERS.iter().find(|(header, _)| *header == name.as_str()) {
        return Err(not_implemented(what));
    }
    match name.as_str() {
        "x-amz-storage-class" if value != "STANDARD" => Err(s3_error!(
            InvalidStorageClass,
            "The storage class you specified is not valid: there is only STANDARD"
        )),
        "x-amz-bucket-namespace" if value != "global" => Err(not_implemented(
            "A namespace of buckets for an account of its own",
        )),
        "x-amz-security-token" => Err(s3_error!(
            InvalidToken,
            "The provided token is malformed or otherwise invalid: this server gives out no \
             session tokens"
        )),
        _ => Ok(()),
    }
}

/// Refuses a document, written anew, that asks for what is missing.
pub(crate) fn check_document(operation: &str, document: &[u8]) -> S3Result {
    let is_of_locks = ["PutObjectRetention", "PutObjectLockConfiguration"].contains(&operation);
    let text = std::str::from_utf8(document).unwrap_or("");
    if is_of_locks && EVENT_HOLDS.iter().any(|hold| text.contains(hold)) {
        return Err(not_implemented(EVENT_HOLD));
    }
    Ok(())
}

/// Refuses a query that selects what s3s did not take into account.
pub(crate) fn check_query(operation: &str, query: &str) -> S3Result {
    if query.is_empty() {
        return Ok(());
    }
    let pairs = form_pairs(query).unwrap_or_default(); // s3s has refused what can't be read
    check_one_subresource(&pairs)?;
    let is_of_version = OF_VERSIONS.contains(&operation);
    let mut fallbacks = FALLBACKS.iter();
    let fallback = fallbacks.find(|(fallback, _)| *fallback == operation);
    if let Some((_, known)) = fallback {
        check_names(operation, known, &pairs)?;
    }
    match pairs.iter().find(|(name, _)| name == VERSION_ID) {
        Some((_, sent)) if !is_of_version => Err(takes_no_version(operation, sent)),
        _ => Ok(()),
    }
}

/// Refuses a query that selects two subresources, as S3 does: one of them would be passed over. A
/// bare method is refused with one already.
fn check_one_subresource(pairs: &[(String, String)]) -> S3Result {
    let mut selected = pairs.iter().map(|(name, _)| name.as_str());
    let mut next = || selected.find(|name| SUBRESOURCES.contains(name));
    match (next(), next()) {
        (Some(first), Some(second)) if first != second => Err(s3_error!(
            InvalidArgument,
            "Conflicting query string parameters: {first}, {second}"
        )),
        _ => Ok(()),
    }
}

fn takes_no_version(operation: &str, sent: &str) -> S3Error {
    let error = if operation == "GetBucketAcl" {
        s3_error!(InvalidArgument, "Invalid version id specified")
    } else {
        s3_error!(
            InvalidArgument,
            "This operation does not accept a version-id."
        )
    };
    of_argument(error, VERSION_ID, sent)
}

/// Refuses names in a query that s3s passed over for an operation that it falls back to.
fn check_names(operation: &str, known: &[&str], pairs: &[(String, String)]) -> S3Result {
    for (name, value) in pairs {
        let is_parameter = known.contains(&name.as_str())
            || name == "x-id"
            || name == VERSION_ID
            || is_header(name)
            || name.starts_with("response-");
        if is_parameter {
            continue;
        }
        check_place(operation, name)?;
        if matches!(name.as_str(), "uploadId" | "partNumber") {
            return Err(s3_error!(
                InvalidArgument,
                "This operation does not accept {name}, or not without its companions"
            ));
        }
        if value.is_empty() || SUBRESOURCES.contains(&name.as_str()) {
            return Err(custom_query());
        }
    }
    Ok(())
}

/// Whether a parameter is of a signature, or stands for a header, which may be empty, too. SDKs
/// write it as they write headers.
fn is_header(name: &str) -> bool {
    let start = name.get(..6);
    start.is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"))
}

/// Refuses what stands at another place, as S3 does.
fn check_place(operation: &str, name: &str) -> S3Result {
    match (operation, name) {
        ("GetObject", "uploads") => Err(s3_error!(
            InvalidRequest,
            "Key is not expected for the GET method ?uploads subresource"
        )),
        ("GetObject", "versions") => Err(s3_error!(
            InvalidRequest,
            "There is no such thing as the ?versions sub-resource for a key"
        )),
        ("PutObject", "uploadId") => Err(s3_error!(
            MethodNotAllowed,
            "The specified method is not allowed against this resource."
        )),
        _ => Ok(()),
    }
}

fn custom_query() -> S3Error {
    custom(
        "NotImplemented",
        http::StatusCode::NOT_IMPLEMENTED,
        "The query names a subresource that is not implemented for this method",
    )
}

#[cfg(test)]
mod tests;
