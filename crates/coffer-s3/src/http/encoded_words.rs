//! Encoded words (RFC 2047): how SDKs write user metadata that is not ASCII into headers.
//!
//! s3s decodes them as well. But it loses plain words between encoded ones, refuses what is not
//! UTF-8, and panics on `=?=`. So it gets to see none, and they are decoded here: whatever is no
//! encoded word is the text that it looks like.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

const START: &str = "=?";
const END: &str = "?=";

/// What may separate words in a header.
const SPACES: [char; 2] = [' ', '\t'];

/// Whether a value may hold encoded words.
pub(crate) fn may_hold(value: &[u8]) -> bool {
    value
        .windows(START.len())
        .any(|pair| pair == START.as_bytes())
}

/// The text of a value, with its encoded words decoded.
pub(crate) fn decode(value: &str) -> String {
    let mut rest = value.trim_matches(SPACES);
    let mut decoded = String::with_capacity(rest.len());
    let mut follows_encoded = false;
    while !rest.is_empty() {
        let is_space = |c: char| SPACES.contains(&c);
        let (space, after) = rest.split_at(rest.find(|c| !is_space(c)).unwrap_or(rest.len()));
        let (token, after) = after.split_at(after.find(is_space).unwrap_or(after.len()));
        let text = encoded_words(token);
        // Space between encoded words separates them and is not part of the text.
        if !(follows_encoded && text.is_some()) {
            decoded.push_str(space);
        }
        follows_encoded = text.is_some();
        decoded.push_str(text.as_deref().unwrap_or(token));
        rest = after;
    }
    decoded
}

/// The text of a token that is one encoded word, or several without space between them; `None`
/// where anything of it is something else.
fn encoded_words(token: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = token.strip_prefix(START)?;
    loop {
        let (charset, after) = rest.split_once('?')?;
        let (encoding, after) = after.split_once('?')?;
        let (text, after) = after.split_once(END)?;
        decoded.push_str(&word(charset, encoding, text)?);
        if after.is_empty() {
            return Some(decoded);
        }
        rest = after.strip_prefix(START)?;
    }
}

fn word(charset: &str, encoding: &str, text: &str) -> Option<String> {
    let bytes = match encoding {
        "B" | "b" => BASE64.decode(text).ok()?,
        "Q" | "q" => unquote(text)?,
        _ => return None,
    };
    // A language may follow the charset (RFC 2231, section 5).
    let charset = charset.split_once('*').map_or(charset, |(name, _)| name);
    match charset.to_ascii_lowercase().as_str() {
        "utf-8" => String::from_utf8(bytes).ok(),
        "us-ascii" if bytes.is_ascii() => String::from_utf8(bytes).ok(),
        // Its codes are the first 256 of Unicode.
        "iso-8859-1" => Some(bytes.into_iter().map(char::from).collect()),
        _ => None,
    }
}

/// Decodes "Q": `=XX`, and `_` for a space.
fn unquote(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'=' => u8::try_from(digit(bytes.next()?)? * 16 + digit(bytes.next()?)?).ok()?,
            b'_' => b' ',
            b'!'..=b'~' if byte != b'?' => byte,
            _ => return None,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn encoded_words_are_decoded() {
        for (value, text) in [
            ("=?UTF-8?B?w6Q=?=", "ä"),
            ("=?utf-8?q?=C3=a4_b?=", "ä b"),
            ("=?UTF-8*de?Q?=C3=A4?=", "ä"),
            ("=?ISO-8859-1?Q?f=FCr?=", "für"),
            ("=?us-ascii?b?YQ==?=", "a"),
            ("=?UTF-8?B??=", ""),
        ] {
            assert_eq!(decode(value), text, "{value}");
        }
    }

    #[test]
    fn words_around_them_stay_and_space_between_them_goes() {
        for (value, text) in [
            ("=?UTF-8?B?w6Q=?= and =?UTF-8?B?w7Y=?=", "ä and ö"),
            ("=?UTF-8?B?w6Q=?= \t =?UTF-8?B?w7Y=?=", "äö"),
            ("=?UTF-8?B?w6Q=?==?UTF-8?B?w7Y=?=", "äö"),
            (" plain  =?UTF-8?B?w6Q=?=  text ", "plain  ä  text"),
            ("no  words\u{e4}", "no  words\u{e4}"),
            ("", ""),
        ] {
            assert_eq!(decode(value), text, "{value}");
        }
    }

    #[test]
    fn what_is_no_encoded_word_is_text() {
        for value in [
            "=?",
            "?=",
            "=?=",
            "=??=",
            "=???=",
            "=????=",
            "=?UTF-8?=",
            "=?UTF-8?B?=",
            "=?UTF-8?B?w6Q=",
            "=?UTF-8?B?w6Q?=",
            "=?UTF-8?B?/w==?=",
            "=?UTF-8?Q?=C3?=",
            "=?UTF-8?Q?=C?=",
            "=?UTF-8?Q?=+1?=",
            "=?UTF-8?Q?a?b?=",
            "=?UTF-8?X?w6Q=?=",
            "=?US-ASCII?Q?=FF?=",
            "=?KOI8-R?B?w6Q=?=",
            "a=?UTF-8?B?w6Q=?=",
            "=?UTF-8?B?w6Q=?=a",
            "=?=?UTF-8?B?w6Q=?=",
        ] {
            assert_eq!(decode(value), value);
        }
    }

    proptest! {
        #[test]
        fn what_sdks_write_is_read_back(text in "\\PC{1,40}") {
            let quoted: String = text.bytes().map(|byte| format!("={byte:02X}")).collect();
            let base64 = BASE64.encode(&text);
            prop_assert_eq!(decode(&format!("=?UTF-8?Q?{quoted}?=")), text.clone());
            prop_assert_eq!(decode(&format!("=?UTF-8?B?{base64}?=")), text);
        }
    }
}
