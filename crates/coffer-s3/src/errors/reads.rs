//! Refusals of reads, which have headers of their own.

use coffer_vault::version::{Absent, VersionId};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use s3s::{S3Error, S3ErrorCode, s3_error};

use crate::http::dates::http_date;

/// An object behind a delete marker is not there, and a marker itself can only be deleted (S3,
/// "Working with delete markers").
pub(crate) fn no_version(absent: Absent) -> S3Error {
    match absent {
        Absent::Object => s3_error!(NoSuchKey, "The specified key does not exist."),
        Absent::Version => s3_error!(NoSuchVersion, "The specified version does not exist."),
        Absent::Deleted(version) => {
            let mut error = s3_error!(NoSuchKey, "The specified key does not exist.");
            let [is_marker, version] = of_marker(version);
            error.set_headers(headers([is_marker, version, xml()]));
            error
        }
        Absent::Marker {
            version,
            modified_ms,
        } => {
            let mut error = only_deleted();
            let modified = (header::LAST_MODIFIED, http_date(modified_ms));
            let [is_marker, version] = of_marker(version);
            error.set_headers(headers([is_marker, version, modified, allowed(), xml()]));
            error
        }
    }
}

/// Tags are looked for of what has a name, and a list is put to it, be it a delete marker, which
/// has none and takes none.
pub(crate) fn marker_has_none(marker: VersionId) -> S3Error {
    let mut error = only_deleted();
    let [is_marker, version] = of_marker(marker);
    error.set_headers(headers([is_marker, version, allowed(), xml()]));
    error
}

fn only_deleted() -> S3Error {
    s3_error!(
        MethodNotAllowed,
        "The specified method is not allowed against this resource."
    )
}

fn of_marker(version: VersionId) -> [(HeaderName, String); 2] {
    [
        (
            HeaderName::from_static("x-amz-delete-marker"),
            "true".to_owned(),
        ),
        (
            HeaderName::from_static("x-amz-version-id"),
            version.to_string(),
        ),
    ]
}

/// All that may be done with a marker.
fn allowed() -> (HeaderName, String) {
    (header::ALLOW, "DELETE".to_owned())
}

/// s3s lets headers of an error replace its own.
fn xml() -> (HeaderName, String) {
    (header::CONTENT_TYPE, "application/xml".to_owned())
}

pub(super) fn not_modified(etag: &str, modified_ms: i64) -> S3Error {
    let mut error = S3Error::new(S3ErrorCode::NotModified);
    error.set_status_code(StatusCode::NOT_MODIFIED);
    let pairs = [
        (header::ETAG, format!("\"{etag}\"")),
        (header::LAST_MODIFIED, http_date(modified_ms)),
    ];
    error.set_headers(headers(pairs));
    error
}

pub(super) fn invalid_range(size_bytes: u64) -> S3Error {
    let mut error = s3_error!(InvalidRange, "The requested range is not satisfiable");
    let pairs = [
        (header::CONTENT_RANGE, format!("bytes */{size_bytes}")),
        xml(),
    ];
    error.set_headers(headers(pairs));
    error
}

fn headers(pairs: impl IntoIterator<Item = (HeaderName, String)>) -> HeaderMap {
    let value =
        |(name, text): (HeaderName, String)| Some((name, HeaderValue::try_from(text).ok()?));
    pairs.into_iter().filter_map(value).collect()
}
