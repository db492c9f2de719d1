//! The checksum algorithms of S3: their names, headers and values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::record::{ChecksumAlgorithm, ChecksumKind};
use s3s::checksum::ChecksumHasher;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::dto::ChecksumType;
use s3s::{S3Result, s3_error};

/// An algorithm as S3 writes it.
pub(crate) struct Algorithm {
    pub(crate) algorithm: ChecksumAlgorithm,
    pub(crate) name: &'static str,
    pub(crate) header: &'static str,
    value_bytes: usize,
}

pub(crate) const ALGORITHMS: [Algorithm; 5] = [
    Algorithm {
        algorithm: ChecksumAlgorithm::Crc32,
        name: "CRC32",
        header: "x-amz-checksum-crc32",
        value_bytes: 4,
    },
    Algorithm {
        algorithm: ChecksumAlgorithm::Crc32c,
        name: "CRC32C",
        header: "x-amz-checksum-crc32c",
        value_bytes: 4,
    },
    Algorithm {
        algorithm: ChecksumAlgorithm::Crc64nvme,
        name: "CRC64NVME",
        header: "x-amz-checksum-crc64nvme",
        value_bytes: 8,
    },
    Algorithm {
        algorithm: ChecksumAlgorithm::Sha1,
        name: "SHA1",
        header: "x-amz-checksum-sha1",
        value_bytes: 20,
    },
    Algorithm {
        algorithm: ChecksumAlgorithm::Sha256,
        name: "SHA256",
        header: "x-amz-checksum-sha256",
        value_bytes: 32,
    },
];

pub(crate) fn row(algorithm: ChecksumAlgorithm) -> &'static Algorithm {
    ALGORITHMS
        .iter()
        .find(|row| row.algorithm == algorithm)
        .expect("the table has them all")
}

/// S3's name of an algorithm.
pub(crate) fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    row(algorithm).name
}

/// The algorithm of a name, in any case.
pub(crate) fn by_name(name: &str) -> S3Result<ChecksumAlgorithm> {
    let found = ALGORITHMS
        .iter()
        .find(|row| row.name.eq_ignore_ascii_case(name));
    found.map(|row| row.algorithm).ok_or_else(|| {
        s3_error!(
            InvalidRequest,
            "Checksum algorithm provided is unsupported. Please try again with any of the valid \
             types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]"
        )
    })
}

/// Whether a checksum covers the object or its parts, as S3 writes it.
pub(crate) fn kind(kind: ChecksumKind) -> ChecksumType {
    ChecksumType::from_static(match kind {
        ChecksumKind::FullObject => ChecksumType::FULL_OBJECT,
        ChecksumKind::Composite => ChecksumType::COMPOSITE,
    })
}

/// Puts a checksum into the field that an output has for its algorithm.
macro_rules! set_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some(checksum) = $checksum {
            let field = match checksum.algorithm {
                coffer_vault::record::ChecksumAlgorithm::Crc32 => &mut $output.checksum_crc32,
                coffer_vault::record::ChecksumAlgorithm::Crc32c => &mut $output.checksum_crc32c,
                coffer_vault::record::ChecksumAlgorithm::Crc64nvme => {
                    &mut $output.checksum_crc64nvme
                }
                coffer_vault::record::ChecksumAlgorithm::Sha1 => &mut $output.checksum_sha1,
                coffer_vault::record::ChecksumAlgorithm::Sha256 => &mut $output.checksum_sha256,
            };
            *field = Some(checksum.value.clone());
        }
    };
}
pub(crate) use set_checksum;

/// Computes one algorithm where the vault computes another.
pub(crate) fn hasher(algorithm: ChecksumAlgorithm) -> ChecksumHasher {
    let mut hasher = ChecksumHasher::default();
    match algorithm {
        ChecksumAlgorithm::Crc32 => hasher.crc32 = Some(Crc32::new()),
        ChecksumAlgorithm::Crc32c => hasher.crc32c = Some(Crc32c::new()),
        ChecksumAlgorithm::Crc64nvme => hasher.crc64nvme = Some(Crc64Nvme::new()),
        ChecksumAlgorithm::Sha1 => hasher.sha1 = Some(Sha1::new()),
        ChecksumAlgorithm::Sha256 => hasher.sha256 = Some(Sha256::new()),
    }
    hasher
}

/// The value of a hasher of one algorithm.
pub(crate) fn value(hasher: ChecksumHasher) -> String {
    let sums = hasher.finalize();
    sums.checksum_crc32
        .or(sums.checksum_crc32c)
        .or(sums.checksum_crc64nvme)
        .or(sums.checksum_sha1)
        .or(sums.checksum_sha256)
        .unwrap_or_default()
}

/// Whether a text is Base64 of as many bytes as the algorithm has; `-PARTS` may follow.
pub(crate) fn is_value(algorithm: ChecksumAlgorithm, text: &str) -> bool {
    let bare = match text.rsplit_once('-') {
        Some((bare, parts)) if parts.parse::<u32>().is_ok() => bare,
        _ => text,
    };
    BASE64
        .decode(bare)
        .is_ok_and(|bytes| bytes.len() == row(algorithm).value_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_length_of_their_algorithm() {
        assert!(is_value(ChecksumAlgorithm::Crc32, "y/Q5Jg=="));
        assert!(is_value(ChecksumAlgorithm::Crc32, "y/Q5Jg==-3"));
        assert!(!is_value(ChecksumAlgorithm::Crc32, "y/Q5Jg==-x"));
        assert!(!is_value(ChecksumAlgorithm::Crc64nvme, "y/Q5Jg=="));
    }

    #[test]
    fn names_are_read_in_any_case() {
        for row in &ALGORITHMS {
            assert_eq!(by_name(&row.name.to_lowercase()).unwrap(), row.algorithm);
            assert_eq!(name(row.algorithm), row.name);
            let mut hasher = hasher(row.algorithm);
            hasher.update(b"x");
            assert!(is_value(row.algorithm, &value(hasher)));
        }
        assert!(by_name("MD4").is_err());
    }
}
