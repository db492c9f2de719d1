//! Checksums as S3 tells them: in Base64, of a whole object or of its parts' checksums.

use std::fmt;
use std::hash::Hasher as _;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use crc_fast::{CrcAlgorithm, checksum_combine};
use http::HeaderMap;
use md5::Digest as _;
use twox_hash::{XxHash3_64, XxHash3_128, XxHash64};

/// How a checksum is formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// What is sent with uploads here: fast, and whole ones follow from those of parts.
    Crc64Nvme,
    /// CRC-32 of Ethernet.
    Crc32,
    /// CRC-32C of iSCSI.
    Crc32c,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
    /// XXH64.
    Xxhash64,
    /// XXH3 of 64 bits.
    Xxhash3,
    /// XXH3 of 128 bits.
    Xxhash128,
    /// MD5, which ETags are with many servers.
    Md5,
}

/// Those that a server may tell in a header of its own.
pub(super) const TOLD: [Algorithm; 10] = [
    Algorithm::Crc64Nvme,
    Algorithm::Crc32c,
    Algorithm::Crc32,
    Algorithm::Sha256,
    Algorithm::Sha1,
    Algorithm::Sha512,
    Algorithm::Xxhash128,
    Algorithm::Xxhash3,
    Algorithm::Xxhash64,
    Algorithm::Md5,
];

impl Algorithm {
    /// As S3 calls it in values of headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc64Nvme => "CRC64NVME",
            Self::Crc32 => "CRC32",
            Self::Crc32c => "CRC32C",
            Self::Sha1 => "SHA1",
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
            Self::Xxhash64 => "XXHASH64",
            Self::Xxhash3 => "XXHASH3",
            Self::Xxhash128 => "XXHASH128",
            Self::Md5 => "MD5",
        }
    }

    /// The header that tells such a checksum.
    pub fn header(self) -> &'static str {
        match self {
            Self::Crc64Nvme => "x-amz-checksum-crc64nvme",
            Self::Crc32 => "x-amz-checksum-crc32",
            Self::Crc32c => "x-amz-checksum-crc32c",
            Self::Sha1 => "x-amz-checksum-sha1",
            Self::Sha256 => "x-amz-checksum-sha256",
            Self::Sha512 => "x-amz-checksum-sha512",
            Self::Xxhash64 => "x-amz-checksum-xxhash64",
            Self::Xxhash3 => "x-amz-checksum-xxhash3",
            Self::Xxhash128 => "x-amz-checksum-xxhash128",
            Self::Md5 => "x-amz-checksum-md5",
        }
    }

    /// The element that tells such a checksum.
    pub fn element(self) -> String {
        format!("Checksum{}", self.name())
    }

    /// Its polynomial, if it is a CRC: those of parts can be put together.
    pub fn crc(self) -> Option<CrcAlgorithm> {
        match self {
            Self::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
            Self::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
            Self::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
            _ => None,
        }
    }
}

/// A checksum of a whole object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    /// How it is formed.
    pub algorithm: Algorithm,
    /// Its bytes.
    pub value: Vec<u8>,
}

impl Checksum {
    /// What headers tell of the whole object; none where they tell of parts' checksums only.
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        if text("x-amz-checksum-type") == Some("COMPOSITE") {
            return None;
        }
        let found = TOLD.into_iter().find_map(|algorithm| {
            let value = BASE64.decode(text(algorithm.header())?).ok()?;
            Some(Self { algorithm, value })
        });
        found.or_else(|| md5_of_etag(headers))
    }

    /// As S3 tells it.
    pub fn text(&self) -> String {
        BASE64.encode(&self.value)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.algorithm.name(), self.text())
    }
}

/// An ETag is the MD5 where it looks like one and the server does not say that it encrypts under a
/// key for which it is something else.
fn md5_of_etag(headers: &HeaderMap) -> Option<Checksum> {
    let value = md5_of_hex(etag_of_bytes(headers)?)?;
    Some(Checksum {
        algorithm: Algorithm::Md5,
        value,
    })
}

/// An ETag, where it may be made of the object's bytes.
pub(super) fn etag_of_bytes(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let encryption = text("x-amz-server-side-encryption").unwrap_or("AES256");
    if encryption != "AES256" || text("x-amz-server-side-encryption-customer-algorithm").is_some() {
        return None;
    }
    Some(text("etag")?.trim_matches('"'))
}

pub(super) fn md5_of_hex(text: &str) -> Option<Vec<u8>> {
    hex::decode(text).ok().filter(|value| value.len() == 16)
}

/// A checksum that grows.
pub enum Running {
    /// A CRC.
    Crc(Box<crc_fast::Digest>, Algorithm),
    /// SHA-1, SHA-256 or SHA-512.
    Sha(Box<digest::Context>, Algorithm),
    /// MD5.
    Md5(Box<md5::Md5>),
    /// XXH64.
    Xxhash64(Box<XxHash64>),
    /// XXH3 of 64 bits.
    Xxhash3(Box<XxHash3_64>),
    /// XXH3 of 128 bits.
    Xxhash128(Box<XxHash3_128>),
}

impl Running {
    /// One of nothing yet.
    pub fn new(algorithm: Algorithm) -> Self {
        let crc = |crc| Self::Crc(Box::new(crc_fast::Digest::new(crc)), algorithm);
        let sha = |sha| Self::Sha(Box::new(digest::Context::new(sha)), algorithm);
        match algorithm {
            Algorithm::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme),
            Algorithm::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            Algorithm::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            Algorithm::Sha1 => sha(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Algorithm::Sha256 => sha(&digest::SHA256),
            Algorithm::Sha512 => sha(&digest::SHA512),
            Algorithm::Xxhash64 => Self::Xxhash64(Box::new(XxHash64::with_seed(0))),
            Algorithm::Xxhash3 => Self::Xxhash3(Box::new(XxHash3_64::new())),
            Algorithm::Xxhash128 => Self::Xxhash128(Box::new(XxHash3_128::new())),
            Algorithm::Md5 => Self::Md5(Box::default()),
        }
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc(crc, _) => crc.update(bytes),
            Self::Sha(sha, _) => sha.update(bytes),
            Self::Md5(md5) => md5.update(bytes),
            Self::Xxhash64(hasher) => hasher.write(bytes),
            Self::Xxhash3(hasher) => hasher.write(bytes),
            Self::Xxhash128(hasher) => hasher.write(bytes),
        }
    }

    /// The checksum of all that was taken.
    pub fn done(self) -> Checksum {
        let of = |algorithm, value: &[u8]| Checksum {
            algorithm,
            value: value.to_vec(),
        };
        match self {
            Self::Crc(crc, algorithm) => of_crc(algorithm, crc.finalize()),
            Self::Sha(sha, algorithm) => of(algorithm, sha.finish().as_ref()),
            Self::Md5(md5) => of(Algorithm::Md5, &md5.finalize()),
            Self::Xxhash64(hasher) => of(Algorithm::Xxhash64, &hasher.finish().to_be_bytes()),
            Self::Xxhash3(hasher) => of(Algorithm::Xxhash3, &hasher.finish().to_be_bytes()),
            Self::Xxhash128(hasher) => of(Algorithm::Xxhash128, &hasher.finish_128().to_be_bytes()),
        }
    }
}

/// The checksum of some bytes.
pub fn checksum(algorithm: Algorithm, bytes: &[u8]) -> Checksum {
    let mut running = Running::new(algorithm);
    running.update(bytes);
    running.done()
}

/// A CRC as a number, as they are put together.
pub fn crc(algorithm: CrcAlgorithm, bytes: &[u8]) -> u64 {
    crc_fast::checksum(algorithm, bytes)
}

/// The checksum of pieces that lie one behind the other: each one's CRC, and its length.
pub fn of_pieces(
    algorithm: Algorithm,
    pieces: impl IntoIterator<Item = (u64, u64)>,
) -> Option<Checksum> {
    let polynomial = algorithm.crc()?;
    let whole = { pieces.into_iter() }
        .reduce(|(sum, bytes), (next, more)| {
            (checksum_combine(polynomial, sum, next, more), bytes + more)
        })
        .map_or_else(|| crc(polynomial, b""), |(sum, _)| sum);
    Some(of_crc(algorithm, whole))
}

fn of_crc(algorithm: Algorithm, sum: u64) -> Checksum {
    let bytes = sum.to_be_bytes();
    let width = if algorithm == Algorithm::Crc64Nvme {
        8
    } else {
        4
    };
    Checksum {
        algorithm,
        value: bytes[8 - width..].to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the catalogue of CRCs, and of the hashes' specifications.
    #[test]
    fn known_values() {
        let expected = [
            "ae8b14860a799888",
            "e3069283",
            "cbf43926",
            "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
            "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
            "d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274a\
             d27fcd5811b313d681f7e55ec02d73d499c95455b6b5bb503acf574fba8ffe85",
            "33119477ede5dcd5e9716427681d5860",
            "72dcb18b67a17dff",
            "8cb841db40e6ae83",
            "25f9e794323b453885f5181f1b624d0b",
        ];
        for (algorithm, hex) in TOLD.into_iter().zip(expected) {
            let found = checksum(algorithm, b"123456789").value;
            assert_eq!(hex::encode(found), hex, "{algorithm:?}");
        }
    }

    #[test]
    fn pieces_are_put_together() {
        for algorithm in TOLD {
            let Some(polynomial) = algorithm.crc() else {
                assert_eq!(of_pieces(algorithm, []), None);
                continue;
            };
            let pieces = [&b"12"[..], b"", b"3456", b"789"];
            let pieces = pieces.map(|piece| (crc(polynomial, piece), piece.len() as u64));
            let whole = checksum(algorithm, b"123456789");
            assert_eq!(of_pieces(algorithm, pieces), Some(whole));
            assert_eq!(of_pieces(algorithm, []), Some(checksum(algorithm, b"")));
        }
    }

    #[test]
    fn what_headers_tell() {
        let told = |headers: &[(&'static str, &str)]| {
            let pairs = headers
                .iter()
                .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()));
            Checksum::of_headers(&pairs.collect())
        };
        let crc = ("x-amz-checksum-crc32", "y/Q5Jg==");
        let whole = told(&[crc]).unwrap();
        assert_eq!(whole, checksum(Algorithm::Crc32, b"123456789"));
        assert_eq!(whole.to_string(), "CRC32 y/Q5Jg==");
        assert_eq!(told(&[crc, ("x-amz-checksum-type", "COMPOSITE")]), None);
        let md5 = ("x-amz-checksum-md5", "JfnnlDI7RTiF9RgfG2JNCw==");
        assert_eq!(told(&[md5]), Some(checksum(Algorithm::Md5, b"123456789")));
        let etag = ("etag", "\"25f9e794323b453885f5181f1b624d0b\"");
        assert_eq!(told(&[etag]), Some(checksum(Algorithm::Md5, b"123456789")));
        let kms = ("x-amz-server-side-encryption", "aws:kms");
        assert_eq!(told(&[etag, kms]), None);
        assert_eq!(
            told(&[("etag", "\"25f9e794323b453885f5181f1b624d0b-1\"")]),
            None
        );
    }
}
