//! What S3 takes from HTTP: dates, percent-encoding, encoded words, ranges, conditions, hosts. What
//! S3 adds to it, the headers and parameters of its own, is in `parameters` and `checksums`.

use std::borrow::Cow;
use std::str::FromStr;

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

/// A number as requests have them: Rust would take one with a `+` before it, too.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    let is_bare = !text.starts_with('+');
    is_bare.then(|| text.parse().ok()).flatten()
}

/// The text of a header that is there once.
pub(crate) fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_plus_before_them() {
        assert_eq!(number("60"), Some(60));
        assert_eq!(number("-1"), Some(-1));
        for none in ["+60", "+", "", " 60", "6e1"] {
            assert_eq!(number::<i64>(none), None, "{none}");
        }
    }
}
