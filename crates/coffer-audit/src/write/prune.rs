//! Pruning: whole old segments are removed from the beginning, behind a signed record.
//!
//! First the record is durable, then the head that says where the log begins; only then files are
//! removed, the oldest first. What a stop leaves of them is removed when the log is opened.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::error::AuditError;
use crate::format::checkpoint::Pruning;
use crate::format::record::{AuditKey, Recorded};
use crate::format::segment::{Cut, Header, segment_name};
use crate::read::end::End;
use crate::read::reader::Reader;
use crate::read::walk::read_header;
use crate::write::open::remove_pruned;
use crate::write::writer::Writer;
use coffer_durable::Disk;
use parking_lot::Mutex;

/// What was pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// The first record that was removed.
    pub first: u64,
    /// The last one that was.
    pub through: Recorded,
    /// The record that says so.
    pub recorded: Recorded,
}

/// What is old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Old {
    /// Where the log can begin.
    pub(crate) cut: Cut,
    /// Old records share the last segment with younger ones.
    pub(crate) is_in_last: bool,
}

/// Reads on from the beginning, to the first record that is not from before this time. What does
/// not verify is not pruned.
pub(crate) fn find_old(
    disk: impl Fn() -> Box<dyn Disk>,
    key: &AuditKey,
    end: &Arc<Mutex<End>>,
    before_ms: i64,
) -> Result<Old, AuditError> {
    let known = *end.lock();
    let Cut {
        mut segment,
        before: mut at,
    } = known.cut;
    let mut cut = known.cut;
    let mut reader = Reader::new(disk(), key.clone(), at.sequence + 1, Some(end.clone()));
    while let Some(record) = reader.next()? {
        let follows = if record.segment == segment {
            true
        } else {
            match read_header(&*disk(), record.segment)? {
                Header::Whole(header) => header.before == at,
                _ => false,
            }
        };
        if !follows || record.sequence != at.sequence + 1 {
            return Err(AuditError::Unreadable {
                sequence: at.sequence + 1,
                file: segment_name(segment),
                what: "it is missing, so nothing from here on is pruned",
            });
        }
        if record.segment != segment {
            segment = record.segment;
            cut = Cut {
                segment,
                before: at,
            };
        }
        if record.time_ms >= before_ms {
            break;
        }
        at = Recorded {
            sequence: record.sequence,
            hash: record.hash,
        };
    }
    Ok(Old {
        cut,
        is_in_last: segment >= known.segment && at.sequence > cut.before.sequence,
    })
}

/// What the writing thread is to do.
pub(crate) struct Order {
    pub(crate) old: Old,
    /// Why: who asked for it, and how old it had to be.
    pub(crate) details: Vec<(&'static str, String)>,
    pub(crate) told: SyncSender<Result<Option<Pruned>, AuditError>>,
}

impl Order {
    /// Does it. `end` is where others read how far the log goes, and from where.
    pub(crate) fn run(self, writer: &mut Writer, end: &Mutex<End>) {
        let tell_end = |writer: &Writer| {
            *end.lock() = writer.end();
        };
        let done = prune(writer, self.old, self.details, tell_end);
        tell_end(writer);
        // Who asked may have gone.
        let _ = self.told.send(done);
    }
}

/// Prunes what is old; `None`: there is no whole segment of it.
pub(crate) fn prune(
    writer: &mut Writer,
    old: Old,
    details: Vec<(&'static str, String)>,
    begins: impl FnOnce(&Writer),
) -> Result<Option<Pruned>, AuditError> {
    let from = writer.end().cut;
    let mut pruned = None;
    if old.cut.segment > from.segment {
        let pruning = Pruning {
            cut: old.cut,
            from,
            details,
        };
        pruned = Some(Pruned {
            first: from.before.sequence + 1,
            through: old.cut.before,
            recorded: writer.prune(&pruning)?,
        });
    }
    if old.is_in_last {
        writer.end_segment()?;
    }
    // Those who read learn that it is gone before it is.
    begins(writer);
    let cut = writer.end().cut;
    remove_pruned(writer.settled_disk()?, cut)?;
    Ok(pruned)
}
