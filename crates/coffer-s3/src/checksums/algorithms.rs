//! The checksum algorithms of S3: their names, headers and values.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_vault::record::{ChecksumAlgorithm, ChecksumKind};
use coffer_vault::{DigestPlan, Digester};
use s3s::dto::ChecksumType;
use s3s::{S3Result, s3_error};

/// An algorithm as S3 writes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Algorithm {
    pub(crate) algorithm: ChecksumAlgorithm,
    pub(crate) name: &'static str,
    pub(crate) header: &'static str,
    pub(crate) element: &'static str,
    /// Whether types of s3s have a field for it.
    pub(crate) is_known_to_s3s: bool,
    value_bytes: usize,
}

/// A row of the table: what S3 writes in small letters, in capitals, and in elements.
macro_rules! algorithm {
    ($algorithm:ident $name:literal $word:literal $bytes:literal $is_known:literal) => {
        Algorithm {
            algorithm: ChecksumAlgorithm::$algorithm,
            name: $name,
            header: concat!("x-amz-checksum-", $word),
            element: concat!("Checksum", $name),
            is_known_to_s3s: $is_known,
            value_bytes: $bytes,
        }
    };
}

/// In the order of their names, which is that of S3's messages.
pub(crate) const ALGORITHMS: [Algorithm; 10] = [
    algorithm!(Crc32 "CRC32" "crc32" 4 true),
    algorithm!(Crc32c "CRC32C" "crc32c" 4 true),
    algorithm!(Crc64nvme "CRC64NVME" "crc64nvme" 8 true),
    algorithm!(Md5 "MD5" "md5" 16 false),
    algorithm!(Sha1 "SHA1" "sha1" 20 true),
    algorithm!(Sha256 "SHA256" "sha256" 32 true),
    algorithm!(Sha512 "SHA512" "sha512" 64 false),
    algorithm!(Xxhash128 "XXHASH128" "xxhash128" 16 false),
    algorithm!(Xxhash3 "XXHASH3" "xxhash3" 8 false),
    algorithm!(Xxhash64 "XXHASH64" "xxhash64" 8 false),
];

pub(crate) fn row(algorithm: ChecksumAlgorithm) -> &'static Algorithm {
    ALGORITHMS
        .iter()
        .find(|row| row.algorithm == algorithm)
        .expect("the table has them all")
}

/// The row of an algorithm by its name in small letters.
pub(crate) fn by_word(word: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|row| row.algorithm.word() == word)
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
             types: [CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, \
             XXHASH64]"
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

/// Computes one algorithm where the vault computes another.
pub(crate) fn digester(algorithm: ChecksumAlgorithm) -> Digester {
    Digester::new(DigestPlan {
        checksum: Some(algorithm),
        md5: false,
    })
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
            let word = row.name.to_lowercase();
            assert_eq!(row.algorithm.word(), word);
            assert_eq!(row.header, format!("x-amz-checksum-{word}"));
            assert_eq!(by_word(&word), Some(row));
            let mut digester = digester(row.algorithm);
            digester.update(b"x");
            let found = digester.finish().checksum.unwrap();
            assert!(is_value(row.algorithm, &found.value));
        }
        assert!(by_name("MD4").is_err());
    }
}
