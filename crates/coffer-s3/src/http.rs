//! What S3 takes from HTTP: dates, percent-encoding, encoded words, ranges, conditions, hosts. What
//! S3 adds to it, the headers and parameters of its own, is in `parameters` and `checksums`.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

pub(crate) mod dates;

pub(crate) mod percent;

pub(crate) mod encoded_words;

pub(crate) mod ranges;

pub(crate) mod conditions;

pub(crate) mod hosts;

/// Whether a request has any header whose name begins so. To look for each of several that the
/// usual request lacks costs more: their names are long, and each is hashed.
pub(crate) fn has_any(headers: &HeaderMap, start: &str) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(start))
}

/// The text of a header's value: UTF-8, or else ISO-8859-1, which HTTP was before (RFC 9110,
/// section 5.5) and clients still send.
pub(crate) fn text_of(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => Cow::Borrowed(text),
        // Its codes are the first 256 of Unicode.
        Err(_) => value.iter().copied().map(char::from).collect(),
    }
}

/// The text of a header that is there once.
pub(crate) fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
