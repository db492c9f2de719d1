//! What became of a request, where asking again does not help: a header says so to programs.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use s3s::S3Error;

/// Of a 500 or 503.
const OUTCOME: HeaderName = HeaderName::from_static("x-coffer-outcome");

/// It is done, and what is to be written of it beside is not.
pub(super) const DONE: &str = "done";

/// It is done here, and may not outlive this machine: asked again, it would be done twice.
pub(super) const IN_DOUBT: &str = "in-doubt";

/// Nothing was done, and nothing will be before an operator acts.
pub(super) const REFUSED: &str = "refused";

/// The same error, which says in a header that asking again does not help.
pub(super) fn with_outcome(mut error: S3Error, outcome: &'static str) -> S3Error {
    // s3s lets headers of an error replace its own.
    error.set_headers(HeaderMap::from_iter([
        (OUTCOME, HeaderValue::from_static(outcome)),
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/xml"),
        ),
    ]));
    error
}

#[cfg(test)]
pub(super) fn outcome_of(error: &S3Error) -> Option<&str> {
    error.headers()?.get(OUTCOME)?.to_str().ok()
}
