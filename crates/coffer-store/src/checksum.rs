//! Checksums of objects, as clients ask for them.

use serde::{Deserialize, Serialize};

/// The checksum algorithms of S3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumAlgorithm {
    /// CRC-32 (ISO-HDLC).
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-64/NVME.
    Crc64nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// MD5.
    Md5,
    /// XXH64, with seed 0.
    Xxhash64,
    /// XXH3 of 64 bits, with seed 0.
    Xxhash3,
    /// XXH3 of 128 bits, with seed 0.
    Xxhash128,
}

impl ChecksumAlgorithm {
    /// Its name in catalogs, and in what is told of it in small letters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Crc32c => "crc32c",
            Self::Crc64nvme => "crc64nvme",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
            Self::Md5 => "md5",
            Self::Xxhash64 => "xxhash64",
            Self::Xxhash3 => "xxhash3",
            Self::Xxhash128 => "xxhash128",
        }
    }
}

/// Whether a checksum covers the object's bytes, or the checksums of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChecksumKind {
    /// Over all bytes of the object.
    FullObject,
    /// Over the concatenated checksums of the parts (shown as `value-PARTS`).
    Composite,
}

/// A stored checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum {
    /// By which algorithm.
    pub algorithm: ChecksumAlgorithm,
    /// Over what.
    pub kind: ChecksumKind,
    /// Standard Base64 of the big-endian value; `-PARTS` follows in a composite one.
    pub value: String,
}
