//! Whether an answer is of S3, by its headers, and not of what stands before the service.

use http::HeaderMap;

/// What S3 numbers its answers by. A network that answers in its place has other headers that begin
/// so.
const NUMBERS: [&str; 2] = ["x-amz-request-id", "x-amz-id-2"];

/// Whether an answer is of an object of S3's, and not of what stands before the service. Services
/// on folders tell no ETag of files that others put there.
pub(in crate::s3) fn is_of_s3(headers: &HeaderMap) -> bool {
    if !bare(text(headers, "etag")).is_empty() {
        return true;
    }
    let kind = kind(headers);
    let is_dated = headers.contains_key("last-modified");
    if is_numbered(headers) {
        // Errors are XML, also behind a 200.
        return is_dated || !is_page(kind) && !is_any(kind, &["application/xml", "text/xml"]);
    }
    is_dated && !kind.is_empty() && !is_page(kind)
}

/// What kind of content is told, without what is said of it beside.
pub(in crate::s3) fn kind(headers: &HeaderMap) -> &str {
    let kind = text(headers, "content-type").split(';').next();
    kind.unwrap_or_default().trim()
}

pub(in crate::s3) fn is_page(kind: &str) -> bool {
    is_any(kind, &["text/html", "application/xhtml+xml"])
}

fn is_any(kind: &str, kinds: &[&str]) -> bool {
    kinds.iter().any(|it| kind.eq_ignore_ascii_case(it))
}

/// Whether an answer has a number of S3's.
pub(in crate::s3) fn is_numbered(headers: &HeaderMap) -> bool {
    NUMBERS.iter().any(|name| headers.contains_key(*name))
}

pub(in crate::s3) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

/// An ETag that names one sequence of bytes. A weak one names all that mean the same (RFC 9110,
/// section 8.8.1): no condition on it holds, and pieces of two that have it make no whole.
pub(crate) fn strong(etag: &str) -> Option<&str> {
    (!etag.starts_with("W/") && !bare(etag).is_empty()).then_some(etag)
}

/// An ETag without its quotes. What packs an answer on the way makes it a weak one.
pub(crate) fn bare(etag: &str) -> &str {
    etag.trim_start_matches("W/").trim_matches('"')
}
