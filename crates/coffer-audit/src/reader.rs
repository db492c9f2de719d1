//! Reading records, also while others are written.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::Disk;
use crate::error::AuditError;
use crate::folder::Folder;
use crate::record::{AuditKey, Frame, Record, Recorded};
use crate::segment::{Header, segment_name};
use crate::tail::segments;
use crate::walk::{Step, Walk, read_header};
use crate::writer::End;

/// Reads records in their order. It blocks; async callers use a blocking task.
pub struct Reader {
    disk: Box<dyn Disk>,
    key: AuditKey,
    /// Where the log ends; `None`: where its files do, for nobody writes.
    end: Option<Arc<Mutex<End>>>,
    /// The first record that is wanted, of those that were not read.
    from: u64,
    at: Option<Place>,
    /// The first segment of the log, when that was looked up last.
    first: u32,
}

struct Place {
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
            let mut place = match self.at.take() {
                Some(place) => place,
                None => match self.first_place()? {
                    Some(place) => place,
                    None => return Ok(None),
                },
            };
            match self.step(&mut place, end) {
                Ok(Some(record)) => {
                    self.at = Some(place);
                    return Ok(Some(record));
                }
                Ok(None) => {
                    let next = self.place_after(place.segment, end);
                    let has_next = matches!(next, Ok(Some(_)));
                    self.at = next?.or(Some(place));
                    if !has_next {
                        return Ok(None);
                    }
                }
                Err(error) => {
                    place.is_broken = true;
                    self.at = Some(place);
                    return Err(error);
                }
            }
        }
    }

    fn end(&self) -> Option<End> {
        let end = self.end.as_ref()?;
        Some(*end.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next wanted record of a segment.
    fn step(&self, place: &mut Place, end: Option<End>) -> Result<Option<Record>, AuditError> {
        let until_bytes = match end {
            Some(end) if end.segment < place.segment => return Ok(None),
            Some(end) if end.segment == place.segment => Some(end.offset_bytes),
            _ => None,
        };
        if place.is_broken {
            return Ok(None);
        }
        place.walk.extend(&*self.disk, until_bytes)?;
        loop {
            let frame = match place.walk.next(&*self.disk)? {
                Step::End => return Ok(None),
                Step::Frame(frame) if frame.sequence == place.before.sequence + 1 => frame,
                Step::Frame(_) => return Err(unreadable(place, "another one stands there")),
                Step::Broken { .. } => return Err(unreadable(place, "it is cut off or altered")),
            };
            let record = if frame.sequence < self.from {
                None
            } else {
                let record = self.record(place, &frame);
                Some(record.ok_or_else(|| unreadable(place, "it was altered"))?)
            };
            place.before = frame.recorded();
            if record.is_some() {
                return Ok(record);
            }
        }
    }

    fn record(&self, place: &Place, frame: &Frame) -> Option<Record> {
        let opening = frame.open_as(&self.key, frame.sequence)?;
        let follows = opening.previous == place.before.hash && frame.follows(&place.before.hash);
        follows.then_some(Record {
            sequence: frame.sequence,
            hash: frame.hash,
            segment: place.segment,
            time_ms: opening.time_ms,
            event: opening.event,
        })
    }

    /// The last segment that begins with `from` or before; the first one if there is none.
    fn first_place(&self) -> Result<Option<Place>, AuditError> {
        let mut first = None;
        for number in segments(&*self.disk)?.into_iter().rev() {
            if let Some(place) = self.place(number)? {
                let begins_before = place.before.sequence < self.from;
                first = Some(place);
                if begins_before {
                    break;
                }
            }
        }
        Ok(first)
    }

    fn place_after(&self, segment: u32, end: Option<End>) -> Result<Option<Place>, AuditError> {
        if end.is_some_and(|end| end.segment <= segment) {
            return Ok(None);
        }
        for number in segments(&*self.disk)? {
            if number > segment
                && let Some(place) = self.place(number)?
            {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// The beginning of a segment; `None` when its header says nothing.
    fn place(&self, segment: u32) -> Result<Option<Place>, AuditError> {
        Ok(match read_header(&*self.disk, segment)? {
            Header::Whole(header) => Some(Place {
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

fn unreadable(place: &Place, what: &'static str) -> AuditError {
    AuditError::Unreadable {
        sequence: place.before.sequence + 1,
        file: segment_name(place.segment),
        what,
    }
}
