//! Whether a log that no server has open is as new as it is known to have been; nothing is changed.

use std::path::Path;

use crate::error::AuditError;
use crate::format::record::{AuditKey, Recorded};
use crate::read::reader::Reader;
use crate::read::tail::{Tail, find_tail, read_head, segments};
use coffer_durable::Folder;

/// How a log stands to a record that it is known to have held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recency {
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
pub fn recency(folder: &Path, key: &AuditKey, known: &Recorded) -> Result<Recency, AuditError> {
    if known.sequence == 0 {
        return Ok(Recency::Current);
    }
    if !folder.exists() {
        return Ok(Recency::Older(0));
    }
    let disk = Folder::new(folder);
    let (head, numbers) = (read_head(&disk, key)?, segments(&disk)?);
    if numbers.is_empty() {
        return Ok(Recency::Older(0));
    }
    let last = match find_tail(&disk, key, head, &numbers)? {
        Tail::Whole { end, .. } => end.last,
        Tail::Damaged { .. } => return Ok(Recency::Current),
    };
    if last.sequence < known.sequence {
        return Ok(Recency::Older(last.sequence));
    }
    let found = if last.sequence == known.sequence {
        Some(last.hash)
    } else {
        let mut reader = Reader::open(folder, key.clone(), known.sequence);
        let record = reader.next().ok().flatten();
        let record = record.filter(|record| record.sequence == known.sequence);
        record.map(|record| record.hash)
    };
    Ok(match found {
        Some(hash) if hash != known.hash => Recency::Other,
        _ => Recency::Current,
    })
}
