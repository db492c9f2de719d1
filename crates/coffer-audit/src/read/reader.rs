//! Reading records, also while others are written.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::AuditError;
use crate::format::record::{AuditKey, Frame, Record, Recorded};
use crate::format::segment::{Header, segment_name};
use crate::read::end::End;
use crate::read::tail::segments;
use crate::read::walk::{Step, Walk, read_header};
use coffer_durable::{Disk, Folder};
use parking_lot::Mutex;

/// Reads records in their order. It blocks; async callers use a blocking task.
pub struct Reader {
    disk: Box<dyn Disk>,
    key: AuditKey,
    /// Where the log ends; `None`: where its files do, for there is no writer.
    end: Option<Arc<Mutex<End>>>,
    /// The first record that is wanted, of those that were not read.
    from: u64,
    at: Option<Position>,
    /// The first segment of the log, when that was looked up last.
    first: u32,
}

struct Position {
    segment: u32,
    walk: Walk,
    before: Recorded,
    /// The rest of the segment can't be read.
    is_broken: bool,
}

impl Reader {
    /// Reads a log that no server has open, from record `from` on.
    pub fn open(folder: &Path, key: AuditKey, from: u64) -> Self {
        Self::new(Box::new(Folder::new(folder)), key, from, None)
    }

    pub(crate) fn new(
        disk: Box<dyn Disk>,
        key: AuditKey,
        from: u64,
        end: Option<Arc<Mutex<End>>>,
    ) -> Self {
        let mut reader = Self {
            disk,
            key,
            end,
            from,
            at: None,
            first: 1,
        };
        reader.first = reader.end().map_or(1, |end| end.cut.segment);
        reader
    }

    /// The next record; `None` when there is none yet: later there may be.
    ///
    /// # Errors
    ///
    /// [`AuditError::Unreadable`] when it does not open; the next call goes on with the segment
    /// that follows. Otherwise when a file can't be read.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would not go on after its end"
    )]
    pub fn next(&mut self) -> Result<Option<Record>, AuditError> {
        loop {
            let end = self.end();
            let read = self.read(end);
            let first = self.end().map_or(1, |end| end.cut.segment);
            match &read {
                Ok(Some(record)) => self.from = record.sequence + 1,
                // It was pruned while it was read: what is left goes on.
                Err(AuditError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && first > self.first =>
                {
                    self.first = first;
                    self.at = None;
                    continue;
                }
                _ => {}
            }
            return read;
        }
    }

    fn read(&mut self, end: Option<End>) -> Result<Option<Record>, AuditError> {
        loop {
            let mut position = match self.at.take() {
                Some(position) => position,
                None => match self.first_position()? {
                    Some(position) => position,
                    None => return Ok(None),
                },
            };
            match self.step(&mut position, end) {
                Ok(Some(record)) => {
                    self.at = Some(position);
                    return Ok(Some(record));
                }
                Ok(None) => {
                    let next = self.position_after(position.segment, end);
                    let has_next = matches!(next, Ok(Some(_)));
                    self.at = next?.or(Some(position));
                    if !has_next {
                        return Ok(None);
                    }
                }
                Err(error) => {
                    position.is_broken = true;
                    self.at = Some(position);
                    return Err(error);
                }
            }
        }
    }

    fn end(&self) -> Option<End> {
        let end = self.end.as_ref()?;
        Some(*end.lock())
    }

    /// The next wanted record of a segment.
    fn step(
        &self,
        position: &mut Position,
        end: Option<End>,
    ) -> Result<Option<Record>, AuditError> {
        let until_bytes = match end {
            Some(end) if end.segment < position.segment => return Ok(None),
            Some(end) if end.segment == position.segment => Some(end.offset_bytes),
            _ => None,
        };
        if position.is_broken {
            return Ok(None);
        }
        position.walk.extend(&*self.disk, until_bytes)?;
        loop {
            let frame = match position.walk.next(&*self.disk)? {
                Step::End => return Ok(None),
                Step::Frame(frame) if frame.sequence == position.before.sequence + 1 => frame,
                Step::Frame(_) => return Err(unreadable(position, "another one stands there")),
                Step::Broken { .. } => {
                    return Err(unreadable(position, "it is cut off or altered"));
                }
            };
            let record = if frame.sequence < self.from {
                None
            } else {
                let record = self.record(position, &frame);
                Some(record.ok_or_else(|| unreadable(position, "it was altered"))?)
            };
            position.before = frame.recorded();
            if record.is_some() {
                return Ok(record);
            }
        }
    }

    fn record(&self, position: &Position, frame: &Frame) -> Option<Record> {
        let opening = frame.open_as(&self.key, frame.sequence)?;
        let follows =
            opening.previous == position.before.hash && frame.follows(&position.before.hash);
        follows.then_some(Record {
            sequence: frame.sequence,
            hash: frame.hash,
            segment: position.segment,
            time_ms: opening.time_ms,
            event: opening.event,
        })
    }

    /// The last segment that begins with `from` or before; the first one if there is none.
    fn first_position(&self) -> Result<Option<Position>, AuditError> {
        let mut first = None;
        for number in segments(&*self.disk)?.into_iter().rev() {
            if let Some(position) = self.position(number)? {
                let begins_before = position.before.sequence < self.from;
                first = Some(position);
                if begins_before {
                    break;
                }
            }
        }
        Ok(first)
    }

    fn position_after(
        &self,
        segment: u32,
        end: Option<End>,
    ) -> Result<Option<Position>, AuditError> {
        if end.is_some_and(|end| end.segment <= segment) {
            return Ok(None);
        }
        for number in segments(&*self.disk)? {
            if number > segment
                && let Some(position) = self.position(number)?
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// The beginning of a segment; `None` when its header says nothing.
    fn position(&self, segment: u32) -> Result<Option<Position>, AuditError> {
        Ok(match read_header(&*self.disk, segment)? {
            Header::Whole(header) => Some(Position {
                segment,
                walk: Walk::new(&*self.disk, segment, None)?,
                before: header.before,
                is_broken: false,
            }),
            Header::Newer(found) => {
                let file = segment_name(segment);
                return Err(AuditError::NewerFormat { file, found });
            }
            Header::Malformed => None,
        })
    }
}

fn unreadable(position: &Position, what: &'static str) -> AuditError {
    AuditError::Unreadable {
        sequence: position.before.sequence + 1,
        file: segment_name(position.segment),
        what,
    }
}
