//! How descriptions, tags and checksums are written into columns: small text, read back strictly.
//!
//! The text comes out of sealed pages, so only the key can have altered it; it is
//! bounded and checked all the same, for a fault must be an error and never a panic.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Result, StoreError};
use crate::record::{
    Checksum, ChecksumAlgorithm, ChecksumKind, ContentHeaders, Details, Encryption, Tags,
    WrappedKey,
};

/// `Details` without the checksum, which has a column of its own for listings.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "is_default")]
    headers: &'a ContentHeaders,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    user_metadata: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Encryption::is_default")]
    encryption: &'a Encryption,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect: &'a Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Read {
    headers: ContentHeaders,
    user_metadata: BTreeMap<String, String>,
    encryption: Encryption,
    redirect: Option<String>,
}

fn is_default(headers: &ContentHeaders) -> bool {
    *headers == ContentHeaders::default()
}

/// JSON of a description without its checksum; `None` for one that says nothing.
pub(crate) fn encode_details(details: &Details) -> Option<String> {
    let Details {
        headers,
        user_metadata,
        checksum: _,
        encryption,
        redirect,
    } = details;
    let is_plain = encryption.is_default() && redirect.is_none();
    if is_default(headers) && user_metadata.is_empty() && is_plain {
        return None;
    }
    let json = serde_json::to_string(&Written {
        headers,
        user_metadata,
        encryption,
        redirect,
    });
    Some(json.expect("a tree of strings is always JSON"))
}

pub(crate) fn decode_details(json: Option<&str>, checksum: Option<&str>) -> Result<Details> {
    let read: Read = match json {
        Some(json) => serde_json::from_str(json).map_err(|_| StoreError::damaged_catalog())?,
        None => Read::default(),
    };
    Ok(Details {
        headers: read.headers,
        user_metadata: read.user_metadata,
        encryption: read.encryption,
        redirect: read.redirect,
        checksum: checksum.map(decode_checksum).transpose()?,
    })
}

/// JSON, as in a description; `None` for the default.
pub(crate) fn encode_encryption(encryption: &Encryption) -> Option<String> {
    let json = || serde_json::to_string(encryption).expect("words are always JSON");
    (!encryption.is_default()).then(json)
}

pub(crate) fn decode_encryption(json: Option<&str>) -> Result<Encryption> {
    match json {
        Some(json) => serde_json::from_str(json).map_err(|_| StoreError::damaged_catalog()),
        None => Ok(Encryption::default()),
    }
}

/// JSON of a list of pairs; `None` for no tags.
pub(crate) fn encode_tags(tags: &Tags) -> Option<String> {
    if tags.is_empty() {
        return None;
    }
    Some(serde_json::to_string(tags).expect("a list of strings is always JSON"))
}

pub(crate) fn decode_tags(json: Option<&str>) -> Result<Tags> {
    match json {
        Some(json) => serde_json::from_str(json).map_err(|_| StoreError::damaged_catalog()),
        None => Ok(Tags::new()),
    }
}

/// `algorithm kind value`, for example `crc64nvme full-object rosUhgp5mIg=`.
pub(crate) fn encode_checksum(checksum: &Checksum) -> String {
    let announced = encode_checksum_type((checksum.algorithm, checksum.kind));
    format!("{announced} {}", checksum.value)
}

pub(crate) fn decode_checksum(text: &str) -> Result<Checksum> {
    let ((algorithm, kind), value) = split_checksum(text)?;
    let value = value.ok_or_else(StoreError::damaged_catalog)?.to_owned();
    Ok(Checksum {
        algorithm,
        kind,
        value,
    })
}

/// The first two words of a checksum, which a listing shows.
pub(crate) fn decode_checksum_type(text: &str) -> Result<(ChecksumAlgorithm, ChecksumKind)> {
    Ok(split_checksum(text)?.0)
}

/// `algorithm kind`: what a client announced for an upload.
pub(crate) fn encode_checksum_type((algorithm, kind): (ChecksumAlgorithm, ChecksumKind)) -> String {
    format!("{} {}", algorithm.word(), kind_word(kind))
}

fn split_checksum(text: &str) -> Result<((ChecksumAlgorithm, ChecksumKind), Option<&str>)> {
    let mut words = text.splitn(3, ' ');
    let algorithm = match words.next() {
        Some("crc32") => ChecksumAlgorithm::Crc32,
        Some("crc32c") => ChecksumAlgorithm::Crc32c,
        Some("crc64nvme") => ChecksumAlgorithm::Crc64nvme,
        Some("sha1") => ChecksumAlgorithm::Sha1,
        Some("sha256") => ChecksumAlgorithm::Sha256,
        Some("sha512") => ChecksumAlgorithm::Sha512,
        Some("md5") => ChecksumAlgorithm::Md5,
        Some("xxhash64") => ChecksumAlgorithm::Xxhash64,
        Some("xxhash3") => ChecksumAlgorithm::Xxhash3,
        Some("xxhash128") => ChecksumAlgorithm::Xxhash128,
        _ => return Err(StoreError::damaged_catalog()),
    };
    let kind = match words.next() {
        Some("full-object") => ChecksumKind::FullObject,
        Some("composite") => ChecksumKind::Composite,
        _ => return Err(StoreError::damaged_catalog()),
    };
    Ok(((algorithm, kind), words.next()))
}

fn kind_word(kind: ChecksumKind) -> &'static str {
    match kind {
        ChecksumKind::FullObject => "full-object",
        ChecksumKind::Composite => "composite",
    }
}

/// An id of this type.
pub(crate) fn decode_id<I>(bytes: &[u8], id: fn([u8; 16]) -> I) -> Result<I> {
    let bytes = bytes.try_into();
    bytes.map(id).map_err(|_| StoreError::damaged_catalog())
}

pub(crate) fn decode_wrapped_key(bytes: &[u8]) -> Result<WrappedKey> {
    WrappedKey::of_bytes(bytes).ok_or_else(StoreError::damaged_catalog)
}

pub(crate) fn decode_u64(value: i64) -> Result<u64> {
    u64::try_from(value).map_err(|_| StoreError::damaged_catalog())
}

/// Lengths and offsets stay far below 2⁶³ (a blob holds less than 2⁵², an object 10,000 of them).
pub(crate) fn encode_u64(value: u64) -> Result<i64> {
    i64::try_from(value).map_err(|_| StoreError::OutOfRange)
}
