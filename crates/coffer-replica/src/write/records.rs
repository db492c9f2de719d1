//! Records between heads: one conditional creation each.

use std::sync::Arc;

use super::CopyWriter;
use super::end::{LogEnd, Settled};
use crate::error::Result;
use crate::head::KnownHead;
use crate::head::record::{NewRecord, Record, RecordPlace};
use crate::names;
use crate::store::{Copy, create};

/// Writes records into a log, beside the writer of its heads.
#[derive(Clone)]
pub struct RecordWriter {
    copy: Copy,
    end: Arc<LogEnd>,
}

impl CopyWriter {
    /// What writes records, in the same start of a writer.
    pub fn records(&self) -> RecordWriter {
        RecordWriter {
            copy: self.copy.clone(),
            end: self.end.clone(),
        }
    }
}

impl RecordWriter {
    /// The copy.
    pub fn copy(&self) -> &Copy {
        &self.copy
    }

    /// Writes the next record: it follows what was written last, whatever that is by then. How many
    /// bytes it has. Nothing is asked of the store but that, as long as it answers.
    ///
    /// # Errors
    /// As [`CopyWriter::commit`]. After one that passes the same, with whatever has changed since,
    /// is to be tried again: the one that failed may come late.
    pub async fn append(&self, new: NewRecord) -> Result<(KnownHead, u64)> {
        let term = &self.end.term;
        let _turn = self.end.turn().await;
        let mut record = Record {
            place: RecordPlace {
                number: 0,
                epoch: term.epoch,
                writer: term.writer.clone(),
                previous: String::new(),
                written_ms: (self.copy.clock)(),
                head: 0,
            },
            holds: new,
        };
        loop {
            let last = self.end.last();
            let number = last.known.number + 1;
            let (place, holds) = (&mut record.place, &mut record.holds);
            (place.number, place.head) = (number, last.head);
            place.previous.clone_from(&last.known.sha256);
            // Times never go back.
            holds.as_of_ms = holds.as_of_ms.max(last.as_of_ms);
            holds.after_ms = holds.after_ms.clamp(last.as_of_ms, holds.as_of_ms);
            let (bytes, known) = record.seal(&self.copy.key, self.copy.id)?;
            let length_bytes = bytes.len() as u64;
            let created = create(&*self.copy.store, &names::head(number), bytes).await;
            let settled = match created {
                Ok(true) => Settled::Ours,
                // In doubt, or there: it is read what lies there.
                created => self.end.settle(&self.copy, created, &known).await?,
            };
            match settled {
                Settled::Ours => {
                    let as_of_ms = record.holds.as_of_ms;
                    self.end.went_on(known.clone(), as_of_ms, false);
                    return Ok((known, length_bytes));
                }
                Settled::Earlier(entry) => self.end.found(&entry),
            }
        }
    }
}
