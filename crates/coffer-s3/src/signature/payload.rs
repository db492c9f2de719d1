//! What a signature says of a body: `x-amz-content-sha256`.

use http::{HeaderMap, HeaderName};
use s3s::{S3Result, s3_error};

use crate::errors::details::of_argument;
use crate::errors::not_implemented;
use crate::http::single;
use crate::signature::signer::ChunkSignatures;

/// Looked for in each request.
pub(crate) const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// What a request's header says of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentSha256 {
    /// Nothing.
    Unsigned,
    /// It has this hash.
    Hash([u8; 32]),
    /// It comes in the aws-chunked framing.
    Streaming {
        /// Each chunk is signed.
        is_signed: bool,
    },
}

/// How the body of a request is checked that was signed rightly.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Not at all.
    Unsigned,
    /// It must have this hash.
    Hash([u8; 32]),
    /// It comes in chunks, which may be signed.
    Chunks(Option<Box<ChunkSignatures>>),
}

impl ContentSha256 {
    /// Reads the header, if there is one.
    pub(crate) fn of(headers: &HeaderMap) -> S3Result<Option<(Self, &str)>> {
        let Some(text) = single(headers, CONTENT_SHA256) else {
            return Ok(None);
        };
        let streaming = |is_signed| Self::Streaming { is_signed };
        let parsed = match text {
            "UNSIGNED-PAYLOAD" => Self::Unsigned,
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => streaming(false),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => streaming(true),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => streaming(true),
            _ if text.starts_with("STREAMING-AWS4-ECDSA-") => {
                return Err(not_implemented("Signing by AWS4-ECDSA-P256-SHA256"));
            }
            _ => Self::Hash(hash(text).ok_or_else(|| {
                let error = s3_error!(
                    InvalidArgument,
                    "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, \
                     STREAMING-UNSIGNED-PAYLOAD-TRAILER, STREAMING-AWS4-HMAC-SHA256-PAYLOAD, \
                     STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value."
                );
                of_argument(error, "x-amz-content-sha256", text)
            })?),
        };
        Ok(Some((parsed, text)))
    }
}

/// How the body of a request is checked that is not signed; where it may be public, by what its
/// header says.
pub(crate) fn unsigned_payload(may_be_public: bool, headers: &HeaderMap) -> S3Result<Payload> {
    if !may_be_public {
        return Ok(Payload::Unsigned);
    }
    Ok(match ContentSha256::of(headers)? {
        None | Some((ContentSha256::Unsigned, _)) => Payload::Unsigned,
        Some((ContentSha256::Hash(hash), _)) => Payload::Hash(hash),
        Some((ContentSha256::Streaming { is_signed }, _)) if !is_signed => Payload::Chunks(None),
        Some((ContentSha256::Streaming { .. }, _)) => {
            return Err(s3_error!(
                InvalidRequest,
                "Chunks are signed, and the request is not"
            ));
        }
    })
}

/// 64 lower-case hexadecimal digits.
fn hash(text: &str) -> Option<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut hash = [0; 32];
    for (byte, [high, low]) in hash.iter_mut().zip(digits.as_chunks::<2>().0) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_is_said_of_a_body_is_read() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-amz-content-sha256", HeaderValue::from_static(text));
            let read = ContentSha256::of(&headers).map(|read| read.unwrap().0);
            read.map_err(|error| error.code().as_str().to_owned())
        };
        assert_eq!(of("UNSIGNED-PAYLOAD"), Ok(ContentSha256::Unsigned));
        let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let Ok(ContentSha256::Hash(bytes)) = of(hash) else {
            panic!("no hash");
        };
        assert_eq!((bytes[0], bytes[31]), (0xe3, 0x55));
        let signed = of("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
        let expected = ContentSha256::Streaming { is_signed: true };
        assert_eq!(signed, Ok(expected));
        for bad in ["", "e3b0", "STREAMING-PAYLOAD", &hash[1..]] {
            assert_eq!(of(bad), Err("InvalidArgument".to_owned()), "{bad}");
        }
        let other = of("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD");
        assert_eq!(other, Err("NotImplemented".to_owned()));
        assert!(ContentSha256::of(&HeaderMap::new()).unwrap().is_none());
    }
}
