//! What S3 takes from HTTP: dates, percent-encoding, encoded words, ranges, conditions, hosts. What
//! S3 adds to it, the headers and parameters of its own, is in `parameters` and `checksums`.

use http::HeaderMap;

pub(crate) mod dates;

pub(crate) mod percent;

pub(crate) mod encoded_words;

pub(crate) mod ranges;

pub(crate) mod conditions;

pub(crate) mod hosts;

/// The text of a header that is there once.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
