//! Digests of bytes as they pass: hashing, not encryption, decides what an upload costs, so only
//! what the client asked for is formed, and CRC-64/NVME where it asked for nothing.

use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_store::record::{Checksum, ChecksumAlgorithm, ChecksumKind};
use crc_fast::CrcAlgorithm;
use md5::{Digest as _, Md5};

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
    /// MD5.
    pub md5: Option<[u8; 16]>,
}

enum Summer {
    Crc {
        digest: Box<crc_fast::Digest>,
        width_bytes: usize,
    },
    Sha(digest::Context),
}

impl Summer {
    fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::Sha1 => {
                Self::Sha(digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY))
            }
            ChecksumAlgorithm::Sha256 => Self::Sha(digest::Context::new(&digest::SHA256)),
            crc => {
                let (crc, width_bytes) = crc_algorithm(crc).expect("all but the SHAs are CRCs");
                Self::Crc {
                    digest: Box::new(crc_fast::Digest::new(crc)),
                    width_bytes,
                }
            }
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc { digest, .. } => digest.update(bytes),
            Self::Sha(context) => context.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc {
                digest,
                width_bytes,
            } => digest.finalize().to_be_bytes()[8 - width_bytes..].to_vec(),
            Self::Sha(context) => context.finish().as_ref().to_vec(),
        }
    }
}

/// The CRC of an algorithm and its width; none for the SHAs, which can't be combined.
fn crc_algorithm(algorithm: ChecksumAlgorithm) -> Option<(CrcAlgorithm, usize)> {
    match algorithm {
        ChecksumAlgorithm::Crc32 => Some((CrcAlgorithm::Crc32IsoHdlc, 4)),
        ChecksumAlgorithm::Crc32c => Some((CrcAlgorithm::Crc32Iscsi, 4)),
        ChecksumAlgorithm::Crc64nvme => Some((CrcAlgorithm::Crc64Nvme, 8)),
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => None,
    }
}

/// Forms the planned digests over bytes in order.
pub(crate) struct Digester {
    checksum: Option<(ChecksumAlgorithm, Summer)>,
    md5: Option<Md5>,
}

impl Digester {
    pub(crate) fn new(plan: DigestPlan) -> Self {
        Self {
            checksum: plan
                .checksum
                .map(|algorithm| (algorithm, Summer::new(algorithm))),
            md5: plan.md5.then(Md5::new),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        if let Some((_, summer)) = &mut self.checksum {
            summer.update(bytes);
        }
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
    }

    pub(crate) fn finish(self) -> Digests {
        Digests {
            checksum: self.checksum.map(|(algorithm, summer)| Checksum {
                algorithm,
                kind: ChecksumKind::FullObject,
                value: BASE64.encode(summer.finish()),
            }),
            md5: self.md5.map(|md5| md5.finalize().into()),
        }
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
            let (crc, width_bytes) = crc_algorithm(algorithm)?;
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

    const ALGORITHMS: [(ChecksumAlgorithm, &str); 5] = [
        // Check values of "123456789": the CRC catalogue's, and those of sha1sum and sha256sum.
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
        let mut digester = Digester::new(DigestPlan {
            md5: true,
            ..DigestPlan::default()
        });
        digester.update(b"abc");
        let md5 = digester.finish().md5.unwrap();
        assert_eq!(hex(&md5), "900150983cd24fb0d6963f7d28e17f72"); // RFC 1321, appendix A.5
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
    fn a_full_object_sha_of_parts_is_not_to_be_had() {
        assert!(combine(ChecksumAlgorithm::Sha1, ChecksumKind::FullObject, []).is_none());
    }
}
