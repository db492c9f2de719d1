//! Percent-encoding of names in answers (`encoding-type=url`) and in addresses.

use std::fmt::Write;

/// What stands for itself beside letters and digits.
const KEPT: &[u8] = b"-_.~/";

/// Encodes all but unreserved characters (RFC 3986, section 2.3) and `/`, as S3 does. A space
/// becomes `%20`, which readers of `+` forms read as well.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 16);
    encode_to(&mut encoded, text);
    encoded
}

/// The same, at the end of another text.
pub(crate) fn encode_to(encoded: &mut String, text: &str) {
    encode_but(encoded, text, KEPT);
}

/// As [`encode`], with `/` encoded, too: what version 4 signs of a query.
pub(crate) fn encode_all(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() + 16);
    encode_but(&mut encoded, text, b"-_.~");
    encoded
}

/// Whether a text is the same decoded and encoded anew, as most paths are.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| is_kept(byte, KEPT))
}

fn is_kept(byte: u8, kept: &[u8]) -> bool {
    byte.is_ascii_alphanumeric() || kept.contains(&byte)
}

fn encode_but(encoded: &mut String, text: &str, kept: &[u8]) {
    for &byte in text.as_bytes() {
        if is_kept(byte, kept) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
}

/// Decodes one key or value of a query or form: `%XX`, and `+` for a space. What is no escape
/// stands for itself; `None` where the bytes are no UTF-8.
pub(crate) fn decode_form(text: &str) -> Option<String> {
    decode_with(text, b' ')
}

/// As [`decode_form`], where `+` stands for itself: paths that s3s reads.
pub(crate) fn decode_path(text: &str) -> Option<String> {
    decode_with(text, b'+')
}

/// Whether each `%` begins an escape.
pub(crate) fn is_encoded(text: &str) -> bool {
    let mut rests = text.split('%').skip(1);
    rests.all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

fn decode_with(text: &str, plus: u8) -> Option<String> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = || u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok();
        let is_escape = byte == b'%' && bytes.get(at + 1).is_some_and(u8::is_ascii_hexdigit);
        match (byte, is_escape.then(escaped).flatten()) {
            (_, Some(value)) => {
                decoded.push(value);
                at += 3;
            }
            (b'+', None) => {
                decoded.push(plus);
                at += 1;
            }
            (_, None) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

/// The pairs of a query or form, decoded; `None` where one of them is no UTF-8.
pub(crate) fn form_pairs(text: &str) -> Option<Vec<(String, String)>> {
    // Most requests have no query, and several ask what is in it.
    if text.is_empty() {
        return Some(Vec::new());
    }
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decode_form(key)?, decode_form(value)?))
    };
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(pair)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_any_content_are_encoded() {
        assert_eq!(encode("a/b c+ä%\u{1}"), "a/b%20c%2B%C3%A4%25%01");
        assert_eq!(decode_form("a+b%20c%2B%zz%").unwrap(), "a b c+%zz%");
        assert_eq!(decode_path("a+b%20c%2B").unwrap(), "a+b c+");
        assert_eq!(decode_form("%+1"), Some("% 1".into()));
        assert_eq!(decode_form("%ff"), None);
        for (text, expected) in [
            ("", true),
            ("a%2fb%C3%A4", true),
            ("%", false),
            ("%ZZ", false),
            ("%1", false),
            ("%C3%", false),
            ("%\u{e4}", false),
        ] {
            assert_eq!(is_encoded(text), expected, "{text}");
        }
    }

    #[test]
    fn pairs_may_lack_a_value() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            form_pairs("a=1&b&&c=x=y").unwrap(),
            [pair("a", "1"), pair("b", ""), pair("c", "x=y")]
        );
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_read_back(text in any::<String>()) {
            prop_assert_eq!(decode_form(&encode(&text)).unwrap(), text);
        }

        #[test]
        fn a_plain_text_is_its_own_encoding(text in "[-_.~/a-zA-Z0-9%+ ä]{0,8}") {
            // Bytes that are no UTF-8 are no text.
            let anew = decode_path(&text).map(|decoded| encode(&decoded));
            prop_assert!(!is_plain(&text) || anew.as_ref() == Some(&text), "{text}: {anew:?}");
        }
    }
}
