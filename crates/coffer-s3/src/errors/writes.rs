//! Refusals of writes, which have elements of their own.

use coffer_vault::limits::PART_MIN_BYTES;
use http::HeaderMap;
use s3s::{S3Error, S3ErrorCode, s3_error};

use super::details::carried;

/// Headers of conditions, and as errors call them.
const CONDITIONS: [(&str, &str); 4] = [
    ("if-match", "If-Match"),
    ("if-none-match", "If-None-Match"),
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
    carried(error, &[("Header", sent.join(","))])
}

pub(super) fn bad_digest(what: &str) -> S3Error {
    let than = match what {
        "Content-MD5" => "what we received",
        _ => "the calculated checksum",
    };
    s3_error!(BadDigest, "The {what} you specified did not match {than}.")
}

pub(super) fn invalid_part(number: u32) -> S3Error {
    let error = s3_error!(
        InvalidPart,
        "Part {number} could not be found, or its entity tag or checksum is not the one stored"
    );
    carried(error, &[("PartNumber", number.to_string())])
}

pub(super) fn part_too_small(number: u32, size_bytes: u64) -> S3Error {
    let error = s3_error!(
        EntityTooSmall,
        "Your proposed upload is smaller than the minimum allowed size: part {number} has \
         {size_bytes} bytes, all but the last need at least {PART_MIN_BYTES}"
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
        "Your proposed upload exceeds the maximum allowed size of {limit_bytes} bytes"
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
            "<Header>If-Match,If-None-Match</Header>"
        );
        let other = of_conditions(s3_error!(InvalidArgument, "no"), &sent);
        assert!(other.headers().is_none());
    }

    #[test]
    fn a_digest_is_compared_with_what_came_or_what_was_computed() {
        let told = |what| bad_digest(what).message().unwrap().to_owned();
        assert!(told("Content-MD5").ends_with(" did not match what we received."));
        assert!(told("CRC32").ends_with(" did not match the calculated checksum."));
    }
}
