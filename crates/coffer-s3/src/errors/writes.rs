//! Refusals of writes, which have elements of their own.

use coffer_vault::limits::PART_MIN_BYTES;
use s3s::{S3Error, s3_error};

use super::details::carried;

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

pub(super) fn bad_digest(what: &str) -> S3Error {
    match what {
        "Content-MD5" => s3_error!(
            BadDigest,
            "The Content-MD5 you specified did not match what we received."
        ),
        what => s3_error!(
            BadDigest,
            "The {what} you specified did not match the calculated checksum."
        ),
    }
}
