//! Continuation tokens: where a listing goes on, opaque to clients.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use s3s::{S3Result, s3_error};

use crate::errors::details::of_argument;

/// The first byte of a token: its form may change, and old ones must not be misread then.
const VERSION: u8 = 1;

/// Makes a token of the last name or prefix of a page.
pub(crate) fn encode(after: &str) -> String {
    let mut bytes = Vec::with_capacity(1 + after.len());
    bytes.push(VERSION);
    bytes.extend_from_slice(after.as_bytes());
    BASE64.encode(bytes)
}

/// The last name or prefix of the page that a token stands for.
pub(crate) fn decode(token: &str) -> S3Result<String> {
    let after = BASE64
        .decode(token)
        .ok()
        .and_then(|bytes| match bytes.split_first() {
            Some((&VERSION, after)) => String::from_utf8(after.to_vec()).ok(),
            _ => None,
        });
    after.ok_or_else(|| {
        let error = s3_error!(
            InvalidArgument,
            "The continuation token provided is incorrect"
        );
        of_argument(error, "continuation-token", token)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_are_read_back(after in "\\PC{0,60}") {
            let token = encode(&after);
            let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            prop_assert!(token.bytes().all(is_safe));
            prop_assert_eq!(decode(&token).unwrap(), after);
        }

        #[test]
        fn other_texts_are_refused_or_stable(text in "[A-Za-z0-9_=-]{0,40}") {
            if let Ok(after) = decode(&text) {
                prop_assert_eq!(encode(&after), text);
            }
        }
    }
}
