//! What is wrong at a place where another record was expected.

use crate::error::AuditError;
use crate::format::record::{AuditKey, Frame};
use crate::read::walk::{Step, Walk};
use crate::verify::finding::Wrong;
use coffer_durable::Disk;

/// Says what is wrong when `frame` stands where record `expected` belongs.
pub(crate) fn diagnose(
    disk: &dyn Disk,
    key: &AuditKey,
    segment: u32,
    expected: u64,
    frame: &Frame,
) -> Result<Wrong, AuditError> {
    let found = frame.sequence;
    if found == expected || frame.open_as(key, found).is_none() {
        return Ok(Wrong::Altered);
    }
    // A record of this log, at another place.
    if found < expected || holds(disk, key, segment, expected)? {
        return Ok(Wrong::Reordered { found });
    }
    Ok(Wrong::Missing { through: found - 1 })
}

/// Whether a record is anywhere in the segment.
fn holds(disk: &dyn Disk, key: &AuditKey, segment: u32, sequence: u64) -> Result<bool, AuditError> {
    let mut walk = Walk::new(disk, segment, None)?;
    while let Step::Frame(frame) = walk.next(disk)? {
        if frame.sequence == sequence && frame.open_as(key, sequence).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
