//! Digests of bytes as they pass: hashing, not encryption, decides what an upload costs, so only
//! what the client asked for is formed, and CRC-64/NVME where it asked for nothing.

use std::hash::Hasher as _;

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_store::record::{Checksum, ChecksumAlgorithm, ChecksumKind};
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};
use twox_hash::{XxHash3_64, XxHash3_128, XxHash64};

/// Which digests to form while the bytes pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestPlan {
    /// The checksum that the client chose, to be stored with the object. Where it chose none, leave
    /// `None`: the vault forms what the multipart upload announced, else CRC-64/NVME as S3 does.
    pub checksum: Option<ChecksumAlgorithm>,
    /// MD5, for a `Content-MD5` header.
    pub md5: bool,
}

/// The digests of the bytes that were received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// The checksum that was planned or chosen by the vault, over all bytes.
    pub checksum: Option<Checksum>,
    /// MD5, where it was planned or is the checksum.
    pub md5: Option<[u8; 16]>,
}

enum Summer {
    Crc {
        digest: Box<crc_fast::Digest>,
        width_bytes: usize,
    },
    Sha(Box<digest::Context>),
    Md5(Box<Md5>),
    Xxhash64(Box<XxHash64>),
    Xxhash3(Box<XxHash3_64>),
    Xxhash128(Box<XxHash3_128>),
}

impl Summer {
    fn new(algorithm: ChecksumAlgorithm) -> Self {
        let sha = |sha| Self::Sha(Box::new(digest::Context::new(sha)));
        let crc = |crc| Self::Crc {
            digest: Box::new(crc_fast::Digest::new(crc)),
            width_bytes: width_bytes(crc),
        };
        match algorithm {
            ChecksumAlgorithm::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            ChecksumAlgorithm::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            ChecksumAlgorithm::Crc64nvme => crc(CrcAlgorithm::Crc64Nvme),
            ChecksumAlgorithm::Sha1 => sha(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            ChecksumAlgorithm::Sha256 => sha(&digest::SHA256),
            ChecksumAlgorithm::Sha512 => sha(&digest::SHA512),
            ChecksumAlgorithm::Md5 => Self::Md5(Box::default()),
            ChecksumAlgorithm::Xxhash64 => Self::Xxhash64(Box::new(XxHash64::with_seed(0))),
            ChecksumAlgorithm::Xxhash3 => Self::Xxhash3(Box::new(XxHash3_64::new())),
            ChecksumAlgorithm::Xxhash128 => Self::Xxhash128(Box::new(XxHash3_128::new())),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc { digest, .. } => digest.update(bytes),
            Self::Sha(context) => context.update(bytes),
            Self::Md5(md5) => md5.update(bytes),
            Self::Xxhash64(hasher) => hasher.write(bytes),
            Self::Xxhash3(hasher) => hasher.write(bytes),
            Self::Xxhash128(hasher) => hasher.write(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc {
                digest,
                width_bytes,
            } => digest.finalize().to_be_bytes()[8 - width_bytes..].to_vec(),
            Self::Sha(context) => context.finish().as_ref().to_vec(),
            Self::Md5(md5) => md5.finalize().to_vec(),
            Self::Xxhash64(hasher) => hasher.finish().to_be_bytes().to_vec(),
            Self::Xxhash3(hasher) => hasher.finish().to_be_bytes().to_vec(),
            Self::Xxhash128(hasher) => hasher.finish_128().to_be_bytes().to_vec(),
        }
    }
}

/// The CRC of an algorithm; none for the others, which can't be combined.
fn crc_algorithm(algorithm: ChecksumAlgorithm) -> Option<CrcAlgorithm> {
    match algorithm {
        ChecksumAlgorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
        ChecksumAlgorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
        ChecksumAlgorithm::Crc64nvme => Some(CrcAlgorithm::Crc64Nvme),
        _ => None,
    }
}

fn width_bytes(crc: CrcAlgorithm) -> usize {
    match crc {
        CrcAlgorithm::Crc64Nvme => 8,
        _ => 4,
    }
}

/// Forms the planned digests over bytes in order.
pub struct Digester {
    checksum: Option<(ChecksumAlgorithm, Summer)>,
    md5: Option<Md5>,
}

impl Digester {
    /// Of no bytes yet. An MD5 that is the checksum is formed once.
    pub fn new(plan: DigestPlan) -> Self {
        let is_md5 = plan.checksum == Some(ChecksumAlgorithm::Md5);
        Self {
            checksum: plan
                .checksum
                .map(|algorithm| (algorithm, Summer::new(algorithm))),
            md5: (plan.md5 && !is_md5).then(Md5::new),
        }
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        if let Some((_, summer)) = &mut self.checksum {
            summer.update(bytes);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
    }

    /// The digests of all bytes that were taken.
    pub fn finish(self) -> Digests {
        let mut md5 = self.md5.map(|md5| md5.finalize().into());
        let checksum = self.checksum.map(|(algorithm, summer)| {
            let sum = summer.finish();
            if algorithm == ChecksumAlgorithm::Md5 {
                md5 = sum.as_slice().try_into().ok();
            }
            Checksum {
                algorithm,
                kind: ChecksumKind::FullObject,
                value: BASE64.encode(sum),
            }
        });
        Digests { checksum, md5 }
    }
}

/// A checksum of a part, and how many bytes it covers.
pub(crate) struct PartSum<'a> {
    pub(crate) value: &'a str,
    pub(crate) size_bytes: u64,
}

/// The checksum of a multipart object from those of its parts; none where a value is not one of
/// this algorithm, or where the algorithm can't be combined (full-object SHA).
pub(crate) fn combine<'a>(
    algorithm: ChecksumAlgorithm,
    kind: ChecksumKind,
    parts: impl IntoIterator<Item = PartSum<'a>>,
) -> Option<Checksum> {
    let value = match kind {
        ChecksumKind::FullObject => {
            let crc = crc_algorithm(algorithm)?;
            let width_bytes = width_bytes(crc);
            let mut sum = crc_fast::Digest::new(crc).finalize();
            for part in parts {
                let bytes = BASE64.decode(part.value).ok()?;
                let bytes = (bytes.len() == width_bytes).then_some(bytes)?;
                let part_sum = bytes
                    .iter()
                    .fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
                sum = crc_fast::checksum_combine(crc, sum, part_sum, part.size_bytes);
            }
            BASE64.encode(&sum.to_be_bytes()[8 - width_bytes..])
        }
        ChecksumKind::Composite => {
            let mut summer = Summer::new(algorithm);
            let mut count = 0u32;
            for part in parts {
                summer.update(&BASE64.decode(part.value).ok()?);
                count += 1;
            }
            format!("{}-{count}", BASE64.encode(summer.finish()))
        }
    };
    Some(Checksum {
        algorithm,
        kind,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALGORITHMS: [(ChecksumAlgorithm, &str); 10] = [
        // Check values of "123456789": the CRC catalogue's, and those of sha1sum, sha256sum,
        // sha512sum, md5sum and xxhsum.
        (ChecksumAlgorithm::Crc32, "cbf43926"),
        (ChecksumAlgorithm::Crc32c, "e3069283"),
        (ChecksumAlgorithm::Crc64nvme, "ae8b14860a799888"),
        (
            ChecksumAlgorithm::Sha1,
            "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
        ),
        (
            ChecksumAlgorithm::Sha256,
            "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
        ),
        (
            ChecksumAlgorithm::Sha512,
            "d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274a\
             d27fcd5811b313d681f7e55ec02d73d499c95455b6b5bb503acf574fba8ffe85",
        ),
        (ChecksumAlgorithm::Md5, "25f9e794323b453885f5181f1b624d0b"),
        (ChecksumAlgorithm::Xxhash64, "8cb841db40e6ae83"),
        (ChecksumAlgorithm::Xxhash3, "72dcb18b67a17dff"),
        (
            ChecksumAlgorithm::Xxhash128,
            "33119477ede5dcd5e9716427681d5860",
        ),
    ];

    fn sum(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> String {
        let mut digester = Digester::new(DigestPlan {
            checksum: Some(algorithm),
            ..DigestPlan::default()
        });
        for piece in bytes.chunks(4) {
            digester.update(piece);
        }
        digester.finish().checksum.unwrap().value
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn checksums_are_the_published_ones() {
        for (algorithm, expected) in ALGORITHMS {
            let value = BASE64.decode(sum(algorithm, b"123456789")).unwrap();
            assert_eq!(hex(&value), expected, "{algorithm:?}");
        }
    }

    #[test]
    fn md5_is_the_published_one() {
        let of = |checksum, md5| {
            let mut digester = Digester::new(DigestPlan { checksum, md5 });
            digester.update(b"abc");
            digester.finish().md5
        };
        // RFC 1321, appendix A.5
        let expected = Some("900150983cd24fb0d6963f7d28e17f72".to_owned());
        let found = |checksum, md5| of(checksum, md5).map(|md5| hex(&md5));
        assert_eq!(found(None, true), expected);
        assert_eq!(found(Some(ChecksumAlgorithm::Md5), true), expected);
        assert_eq!(found(Some(ChecksumAlgorithm::Md5), false), expected);
        assert_eq!(found(Some(ChecksumAlgorithm::Sha1), false), None);
    }

    #[test]
    fn crcs_of_parts_combine_to_that_of_the_whole() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| (n * 7) as u8).collect();
        for (algorithm, _) in &ALGORITHMS[..3] {
            let pieces: Vec<_> = bytes
                .chunks(33_333)
                .map(|piece| (sum(*algorithm, piece), piece.len()))
                .collect();
            let parts = pieces.iter().map(|(value, length)| PartSum {
                value,
                size_bytes: *length as u64,
            });
            let whole = combine(*algorithm, ChecksumKind::FullObject, parts).unwrap();
            assert_eq!(whole.value, sum(*algorithm, &bytes), "{algorithm:?}");
        }
    }

    #[test]
    fn composite_checksums_are_over_the_values_of_the_parts() {
        let first = sum(ChecksumAlgorithm::Sha256, b"one");
        let second = sum(ChecksumAlgorithm::Sha256, b"two");
        let parts = [
            PartSum {
                value: &first,
                size_bytes: 3,
            },
            PartSum {
                value: &second,
                size_bytes: 3,
            },
        ];
        let whole = combine(ChecksumAlgorithm::Sha256, ChecksumKind::Composite, parts).unwrap();
        let values = [
            BASE64.decode(&first).unwrap(),
            BASE64.decode(&second).unwrap(),
        ]
        .concat();
        assert_eq!(
            whole.value,
            format!("{}-2", sum(ChecksumAlgorithm::Sha256, &values))
        );
    }

    #[test]
    fn a_full_object_checksum_of_parts_is_of_crcs_alone() {
        for (algorithm, _) in &ALGORITHMS[3..] {
            assert!(combine(*algorithm, ChecksumKind::FullObject, []).is_none());
        }
    }
}
