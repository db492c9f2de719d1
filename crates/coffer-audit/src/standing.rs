//! How far a log that no server has open has come, without changing anything.

use std::path::Path;

use crate::error::AuditError;
use crate::folder::Folder;
use crate::reader::Reader;
use crate::record::{AuditKey, Recorded};
use crate::tail::{Tail, find_tail, read_head, segments};

/// How a log stands to a record that it is known to have held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It has the record, or is damaged, which opening and verifying it tell.
    Current,
    /// It ends before the record, with this one; with 0, there is no log.
    Older(u64),
    /// It has another record of that number.
    Other,
}

/// How the log in a folder stands to a record.
///
/// # Errors
///
/// When a file can't be read, or is of a later version.
pub fn standing(folder: &Path, key: &AuditKey, known: &Recorded) -> Result<Standing, AuditError> {
    if known.sequence == 0 {
        return Ok(Standing::Current);
    }
    if !folder.exists() {
        return Ok(Standing::Older(0));
    }
    let disk = Folder::new(folder);
    let (head, numbers) = (read_head(&disk, key)?, segments(&disk)?);
    if numbers.is_empty() {
        return Ok(Standing::Older(0));
    }
    let last = match find_tail(&disk, key, head, &numbers)? {
        Tail::Whole { end, .. } => end.last,
        Tail::Damaged { .. } => return Ok(Standing::Current),
    };
    if last.sequence < known.sequence {
        return Ok(Standing::Older(last.sequence));
    }
    let found = match last.sequence == known.sequence {
        true => Some(last.hash),
        false => {
            let mut reader = Reader::open(folder, key.clone(), known.sequence);
            let record = reader.next().ok().flatten();
            let record = record.filter(|record| record.sequence == known.sequence);
            record.map(|record| record.hash)
        }
    };
    Ok(match found {
        Some(hash) if hash != known.hash => Standing::Other,
        _ => Standing::Current,
    })
}
