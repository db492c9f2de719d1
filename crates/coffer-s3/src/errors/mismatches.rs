//! What is told of a signature that is not that of its request: the texts that were to be signed,
//! so that clients can compare them with their own. They are made of what was sent, and no key is
//! in them.

use s3s::{S3Error, s3_error};

use crate::errors::details;
use crate::limits::{ECHO_MAX_BYTES, SIGNED_ECHO_MAX_BYTES};

/// The same error with what was sent, and the texts: that to be signed, and the request in the form
/// of which that has the hash. What is none, or long, is left out.
pub(crate) fn compared(
    error: S3Error,
    (access_key_id, signature): (&str, &str),
    to_sign: Option<&[u8]>,
    canonical: Option<&[u8]>,
) -> S3Error {
    let is_short = |text: &&[u8]| text.len() <= SIGNED_ECHO_MAX_BYTES;
    let mut told = vec![
        ("AWSAccessKeyId", access_key_id.to_owned()),
        ("SignatureProvided", signature.to_owned()),
    ];
    told.retain(|(_, sent)| sent.len() <= ECHO_MAX_BYTES);
    if let Some(text) = to_sign.filter(is_short) {
        told.push(("StringToSign", String::from_utf8_lossy(text).into_owned()));
        told.push(("StringToSignBytes", hexadecimal(text, " ")));
    }
    if let Some(text) = canonical.filter(is_short) {
        let readable = String::from_utf8_lossy(text).into_owned();
        told.push(("CanonicalRequest", readable));
        told.push(("CanonicalRequestBytes", hexadecimal(text, " ")));
    }
    details::with(error, told)
}

/// What stands in an `Authorization` header names no scheme that there is. It is not told, for it
/// may hold the secret of another one.
pub(crate) fn no_scheme(authorization: &str) -> S3Error {
    let what = if authorization.contains(' ') {
        "Unsupported Authorization Type"
    } else {
        "Authorization header is invalid -- one and only one ' ' (space) required."
    };
    let told = [("ArgumentName", "Authorization".to_owned())];
    details::carried(s3_error!(InvalidArgument, "{what}"), &told)
}

/// What is told of a body that has another SHA-256 than was announced for it, as XML.
pub(crate) fn of_sha256([announced, computed]: &[[u8; 32]; 2]) -> String {
    let [announced, computed] = [announced, computed].map(|hash| hexadecimal(hash, ""));
    format!(
        "<ClientComputedContentSHA256>{announced}</ClientComputedContentSHA256>\
         <S3ComputedContentSHA256>{computed}</S3ComputedContentSHA256>"
    )
}

/// Bytes as S3 writes them: two digits each.
pub(super) fn hexadecimal(bytes: &[u8], between: &str) -> String {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_hashes_are_told() {
        let told = of_sha256(&[[0x0f; 32], [0xa0; 32]]);
        let (announced, computed) = ("0f".repeat(32), "a0".repeat(32));
        assert!(told.starts_with(&format!("<ClientComputedContentSHA256>{announced}<")));
        assert!(told.contains(&format!("<S3ComputedContentSHA256>{computed}</")));
    }

    #[test]
    fn texts_are_told_as_they_are_and_byte_by_byte() {
        let refused = |to_sign, canonical| {
            let error = s3_error!(SignatureDoesNotMatch, "no");
            let told = compared(error, ("AK", "0f"), to_sign, canonical);
            details::xml_of(&told).unwrap()
        };
        let sent = "<AWSAccessKeyId>AK</AWSAccessKeyId><SignatureProvided>0f</SignatureProvided>";
        let texts = "<StringToSign>a\n&lt;</StringToSign>\
                     <StringToSignBytes>61 0a 3c</StringToSignBytes>\
                     <CanonicalRequest>b\u{fffd}</CanonicalRequest>\
                     <CanonicalRequestBytes>62 e4</CanonicalRequestBytes>";
        let whole = refused(Some(&b"a\n<"[..]), Some(&b"b\xe4"[..]));
        assert_eq!(whole, format!("{sent}{texts}"));
        let long = vec![b'x'; SIGNED_ECHO_MAX_BYTES + 1];
        assert_eq!(refused(None, Some(&long[..])), sent);
    }
}
