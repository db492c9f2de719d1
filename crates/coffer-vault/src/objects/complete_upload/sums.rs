//! The checksums of a completion: of its parts, and of the whole.

use coffer_store::record::{Checksum, ChecksumAlgorithm, ChecksumKind, Part, Upload};

use super::CompletedPart;
use crate::digest::{PartSum, combine};
use crate::error::{ChecksumError, Result, VaultError};
use crate::objects::multipart::DEFAULT_CHECKSUM;

/// What a completion names its parts by must be what is stored of them. Of an upload that was begun
/// with an algorithm, another one proves nothing; and a checksum of the parts' checksums is formed
/// over what the client knows of them.
pub(super) fn check_sums_of_parts(
    announced: Option<(ChecksumAlgorithm, ChecksumKind)>,
    named: &[CompletedPart],
    stored: &[Part],
) -> Result<()> {
    for (named, stored) in named.iter().zip(stored) {
        let number = named.number;
        let sent = named.checksum.as_ref();
        match (announced, sent) {
            (Some((announced, ChecksumKind::Composite)), None) => {
                return Err(ChecksumError::MissingOfPart { number, announced }.into());
            }
            (Some((announced, _)), Some((sent, _))) if *sent != announced => {
                let sent = *sent;
                return Err(ChecksumError::OtherOfPart {
                    number,
                    announced,
                    sent,
                }
                .into());
            }
            (_, Some((algorithm, value))) => {
                let sum = stored.blob.checksum.as_ref();
                if !sum.is_some_and(|sum| sum.algorithm == *algorithm && sum.value == *value) {
                    return Err(VaultError::InvalidPart { number });
                }
            }
            (_, None) => {}
        }
    }
    Ok(())
}

/// The object's checksum from those of its parts. None where they don't all have one, which
/// can't be combined then.
pub(super) fn whole_checksum(upload: &Upload, parts: &[Part]) -> Option<Checksum> {
    let (algorithm, kind) = upload.checksum.unwrap_or(DEFAULT_CHECKSUM);
    let sums = parts
        .iter()
        .map(|part| {
            let checksum = part.blob.checksum.as_ref()?;
            (checksum.algorithm == algorithm).then_some(PartSum {
                value: &checksum.value,
                size_bytes: part.blob.plaintext_bytes,
            })
        })
        .collect::<Option<Vec<_>>>()?;
    combine(algorithm, kind, sums)
}

/// Compares the client's checksum of the whole with ours; a composite one may lack its count.
pub(super) fn check_whole(expected: Option<&str>, checksum: Option<&Checksum>) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let Some(checksum) = checksum else {
        return Err(VaultError::BadDigest { what: "checksum" });
    };
    let (algorithm, value) = (checksum.algorithm, checksum.value.as_str());
    let bare = match checksum.kind {
        ChecksumKind::Composite => value.rsplit_once('-').map_or(value, |(bare, _)| bare),
        ChecksumKind::FullObject => value,
    };
    if expected == value || expected == bare {
        Ok(())
    } else {
        Err(ChecksumError::OtherOfWhole { algorithm }.into())
    }
}
