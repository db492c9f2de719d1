//! Refusals of writes, which have elements of their own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::VaultError;
use coffer_vault::limits::PART_MIN_BYTES;
use http::HeaderMap;
use quick_xml::escape::unescape;
use s3s::{S3Error, S3ErrorCode, s3_error};

use super::details::carried;
use super::mismatches::hexadecimal;
use crate::limits::ECHO_MAX_BYTES;

const IF_MATCH: &str = "If-Match";
const IF_NONE_MATCH: &str = "If-None-Match";

/// Headers of conditions, and as errors call them.
const CONDITIONS: [(&str, &str); 4] = [
    ("if-match", IF_MATCH),
    ("if-none-match", IF_NONE_MATCH),
    ("if-modified-since", "If-Modified-Since"),
    ("if-unmodified-since", "If-Unmodified-Since"),
];

/// The refusal of conditions on a write, with their headers where these are not implemented.
pub(crate) fn of_conditions(error: S3Error, headers: &HeaderMap) -> S3Error {
    if *error.code() != S3ErrorCode::NotImplemented {
        return error;
    }
    let sent = CONDITIONS
        .iter()
        .filter(|(name, _)| headers.contains_key(*name));
    let sent: Vec<_> = sent.map(|(_, told)| *told).collect();
    let why = match sent.as_slice() {
        [one @ (IF_MATCH | IF_NONE_MATCH)] => {
            format!("We don't accept the provided value of {one} header for this API")
        }
        [IF_MATCH, IF_NONE_MATCH] => {
            "Multiple conditional request headers present in the request".to_owned()
        }
        _ => String::new(),
    };
    let mut told = vec![("Header", sent.join(",")), ("additionalMessage", why)];
    told.retain(|(_, text)| !text.is_empty());
    carried(error, &told)
}

/// What came has another MD5 than was sent with it. AWS writes the one that was sent in digits, and
/// its own in Base64.
pub(super) fn other_md5(sent: [u8; 16], computed: [u8; 16]) -> S3Error {
    let told = [
        ("ExpectedDigest", hexadecimal(&sent, "")),
        ("CalculatedDigest", BASE64.encode(computed)),
    ];
    carried(bad_digest("Content-MD5"), &told)
}

pub(super) fn bad_digest(what: &str) -> S3Error {
    let than = match what {
        "Content-MD5" => "what we received",
        _ => "the calculated checksum",
    };
    s3_error!(BadDigest, "The {what} you specified did not match {than}.")
}

/// The entity tag by which a completion names the part for which it is refused, if that is so, and
/// without quotation marks. The document is in its canonical form.
pub(crate) fn etag_of_refused(error: &VaultError, document: &str) -> Option<String> {
    let (VaultError::InvalidPart { number } | VaultError::PartTooSmall { number, .. }) = error
    else {
        return None;
    };
    let number = format!("<PartNumber>{number}</PartNumber>");
    let mut parts = document.split("<Part>").skip(1);
    let part = parts.find(|part| part.contains(&number))?;
    let (_, behind) = part.split_once("<ETag>")?;
    let etag = unescape(behind.split('<').next()?).ok()?;
    let etag = etag.trim_matches('"');
    (etag.len() <= ECHO_MAX_BYTES).then(|| etag.to_owned())
}

/// The refusal of a completion with the entity tag of the part that it is for, if there is one.
pub(crate) fn of_part(refused: S3Error, etag: Option<String>) -> S3Error {
    match etag {
        Some(etag) => carried(refused, &[("ETag", etag)]),
        None => refused,
    }
}

pub(super) fn invalid_part(number: u32) -> S3Error {
    let error = s3_error!(
        InvalidPart,
        "One or more of the specified parts could not be found.  The part may not have been \
         uploaded, or the specified entity tag may not match the part's entity tag."
    );
    carried(error, &[("PartNumber", number.to_string())])
}

pub(super) fn part_too_small(number: u32, size_bytes: u64) -> S3Error {
    let error = s3_error!(
        EntityTooSmall,
        "Your proposed upload is smaller than the minimum allowed size"
    );
    let told = [
        ("ProposedSize", size_bytes.to_string()),
        ("MinSizeAllowed", PART_MIN_BYTES.to_string()),
        ("PartNumber", number.to_string()),
    ];
    carried(error, &told)
}

pub(super) fn too_large(limit_bytes: u64) -> S3Error {
    let error = s3_error!(
        EntityTooLarge,
        "Your proposed upload exceeds the maximum allowed size"
    );
    carried(error, &[("MaxSizeAllowed", limit_bytes.to_string())])
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;
    use crate::errors::details::taken;

    #[test]
    fn conditions_that_are_not_implemented_are_told_by_their_headers() {
        let any = || HeaderValue::from_static("x");
        let sent = [("if-none-match", any()), ("if-match", any())];
        let sent = sent.map(|(name, value)| (http::HeaderName::from_static(name), value));
        let sent = HeaderMap::from_iter(sent);
        let refused = of_conditions(s3_error!(NotImplemented, "no"), &sent);
        let mut told = refused.headers().unwrap().clone();
        assert_eq!(
            taken(&mut told).unwrap(),
            "<Header>If-Match,If-None-Match</Header><additionalMessage>Multiple conditional \
             request headers present in the request</additionalMessage>"
        );
        let dated = HeaderMap::from_iter([(http::header::IF_MODIFIED_SINCE, any())]);
        let refused = of_conditions(s3_error!(NotImplemented, "no"), &dated);
        let told = taken(&mut refused.headers().unwrap().clone());
        let header = "<Header>If-Modified-Since</Header>";
        assert_eq!(told.as_deref(), Some(header));
        let other = of_conditions(s3_error!(InvalidArgument, "no"), &sent);
        assert!(other.headers().is_none());
    }

    #[test]
    fn a_part_is_told_by_the_entity_tag_that_named_it() {
        let part = |number, etag| {
            format!("<Part><ETag>{etag}</ETag><PartNumber>{number}</PartNumber></Part>")
        };
        let document = format!("<C>{}{}</C>", part(1, "a"), part(11, "&quot;b&amp;&quot;"));
        let of = |number| etag_of_refused(&VaultError::InvalidPart { number }, &document);
        assert_eq!(of(1).as_deref(), Some("a"));
        assert_eq!(of(11).as_deref(), Some("b&"));
        assert_eq!(of(2), None);
        let small = VaultError::PartTooSmall {
            number: 11,
            size_bytes: 3,
        };
        let told = of_part(part_too_small(11, 3), etag_of_refused(&small, &document));
        let told = taken(&mut told.headers().unwrap().clone()).unwrap();
        assert!(
            told.ends_with("<PartNumber>11</PartNumber><ETag>b&amp;</ETag>"),
            "{told}"
        );
        assert_eq!(etag_of_refused(&VaultError::NoSuchUpload, &document), None);
    }

    #[test]
    fn a_digest_is_compared_with_what_came_or_what_was_computed() {
        let told = |what| bad_digest(what).message().unwrap().to_owned();
        assert!(told("Content-MD5").ends_with(" did not match what we received."));
        assert!(told("CRC32").ends_with(" did not match the calculated checksum."));
        let refused = other_md5([0x0f; 16], [0; 16]);
        assert_eq!(refused.message(), bad_digest("Content-MD5").message());
        let told = taken(&mut refused.headers().unwrap().clone()).unwrap();
        let sent = format!("<ExpectedDigest>{}</ExpectedDigest>", "0f".repeat(16));
        let computed = "<CalculatedDigest>AAAAAAAAAAAAAAAAAAAAAA==</CalculatedDigest>";
        assert_eq!(told, sent + computed);
    }
}
