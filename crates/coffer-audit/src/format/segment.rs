//! Segments: their names and headers.

use coffer_seal::KeystoreId;

use crate::error::AuditError;
use crate::format::record::{Hash, Recorded};
use crate::limits::{HASH_BYTES, SEGMENT_HEADER_BYTES, SEGMENT_NUMBER_MAX};

/// The newest format of segments that is known here.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: &[u8; 8] = b"cofferAL";

/// The first bytes of a segment, in the clear: each of them follows from what was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) keystore_id: KeystoreId,
    /// From 1.
    pub(crate) number: u32,
    /// The record before the first of this segment.
    pub(crate) before: Recorded,
}

/// What the first bytes of a segment are.
pub(crate) enum Header {
    /// A header.
    Whole(SegmentHeader),
    /// One of a later version.
    Newer(u32),
    /// None.
    Malformed,
}

impl SegmentHeader {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [
            MAGIC,
            &FORMAT.to_be_bytes()[..],
            &self.keystore_id.0,
            &self.number.to_be_bytes(),
            &(self.before.sequence + 1).to_be_bytes(),
            &self.before.hash.0,
        ]
        .concat()
    }
}

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self::whole_or_newer(bytes).unwrap_or(Self::Malformed)
    }

    fn whole_or_newer(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (format, rest) = rest.split_first_chunk::<4>()?;
        let format = u32::from_be_bytes(*format);
        if format > FORMAT {
            return Some(Self::Newer(format));
        }
        if format == 0 {
            return None;
        }
        let (keystore_id, rest) = rest.split_first_chunk::<16>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let (hash, _) = rest.split_first_chunk::<HASH_BYTES>()?;
        let before = Recorded {
            sequence: u64::from_be_bytes(*first).checked_sub(1)?,
            hash: Hash(*hash),
        };
        Some(Self::Whole(SegmentHeader {
            keystore_id: KeystoreId(*keystore_id),
            number: u32::from_be_bytes(*number),
            before,
        }))
    }
}

/// Where a log begins: what was before was pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first segment that there is.
    pub(crate) segment: u32,
    /// The record before the first of it.
    pub(crate) before: Recorded,
}

impl Cut {
    /// Of a log from which nothing was removed.
    pub(crate) const NONE: Self = Self {
        segment: 1,
        before: Recorded::NONE,
    };
}

/// Where a segment's first record begins, in bytes.
pub(crate) const FIRST_FRAME: u64 = SEGMENT_HEADER_BYTES as u64;

/// A segment's file.
pub(crate) fn segment_name(number: u32) -> String {
    format!("{number:08}.log")
}

/// The segment that a file is, if it is one.
pub(crate) fn segment_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".log")?.parse().ok()?;
    (number > 0 && segment_name(number) == name).then_some(number)
}

/// The segment that follows.
pub(crate) fn next_number(number: u32) -> Result<u32, AuditError> {
    if number >= SEGMENT_NUMBER_MAX {
        return Err(AuditError::Exhausted);
    }
    Ok(number + 1)
}
