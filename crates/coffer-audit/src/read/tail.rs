//! Finding where a log ends, from its head on, and whether it is whole there.

use std::io;

use crate::error::AuditError;
use crate::event::{CHECKPOINT, older_copy};
use crate::format::head::{HEAD_FILE_BYTES, HEAD_NAME, Head, HeadState, parse_head};
use crate::format::record::{AuditKey, Frame, Hash, Recorded};
use crate::format::segment::{Header, SegmentHeader, segment_name, segment_number};
use crate::limits::{FRAME_MIN_BYTES, GROUP_MAX_BYTES};
use crate::read::end::End;
use crate::read::walk::{Step, Walk, read_header};
use coffer_durable::Disk;

/// Where the log ends, or what is wrong with it.
pub(crate) enum Tail {
    Whole {
        end: End,
        /// To be cut off behind the end.
        torn_bytes: u64,
        /// Records were found that the head doesn't know.
        beyond: bool,
        is_signed: bool,
    },
    Damaged {
        what: String,
        /// The highest record that there is evidence of.
        last: Recorded,
    },
}

/// Reads the head's file.
pub(crate) fn read_head(disk: &dyn Disk, key: &AuditKey) -> Result<HeadState, AuditError> {
    match disk.read(HEAD_NAME, 0, HEAD_FILE_BYTES) {
        Ok(bytes) => Ok(parse_head(key, Some(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(parse_head(key, None)),
        Err(error) => Err(AuditError::io("read", HEAD_NAME)(error)),
    }
}

/// The segments that are there, in order.
pub(crate) fn segments(disk: &dyn Disk) -> Result<Vec<u32>, AuditError> {
    let names = disk.names().map_err(AuditError::io("list", "the folder"))?;
    let mut numbers: Vec<u32> = names
        .iter()
        .filter_map(|name| segment_number(name))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl Tail {
    /// Judges it by a record that the log is known to hold.
    pub(crate) fn knowing(self, known: Option<Recorded>) -> Self {
        match (self, known) {
            (Self::Whole { end, .. }, Some(known)) if end.last.sequence < known.sequence => {
                let what = older_copy(known.sequence);
                Self::Damaged { what, last: known }
            }
            (Self::Damaged { what, last }, Some(known)) if last.sequence < known.sequence => {
                Self::Damaged { what, last: known }
            }
            (tail, _) => tail,
        }
    }
}

/// Looks for the end.
pub(crate) fn find_tail(
    disk: &dyn Disk,
    key: &AuditKey,
    head: HeadState,
    numbers: &[u32],
) -> Result<Tail, AuditError> {
    match head {
        HeadState::Found { head, .. } => {
            let mut search = Search {
                disk,
                key,
                head,
                at: head.last,
                frame: None,
                beyond_bytes: 0,
            };
            search.run(numbers.last().copied().unwrap_or(0))
        }
        HeadState::Missing => without_head(disk, key, numbers, "head is missing"),
        _ => without_head(disk, key, numbers, "head does not open"),
    }
}

/// From the head's segment to the end.
struct Search<'a> {
    disk: &'a dyn Disk,
    key: &'a AuditKey,
    head: Head,
    /// The highest record that is known of.
    at: Recorded,
    /// The last one that was read.
    frame: Option<Frame>,
    /// What was found behind the head.
    beyond_bytes: u64,
}

/// Where a segment ends.
struct SegmentEnd {
    last: Recorded,
    offset_bytes: u64,
    /// What follows there and is no record.
    torn_bytes: u64,
}

impl Search<'_> {
    fn run(&mut self, last_number: u32) -> Result<Tail, AuditError> {
        let mut before = None;
        for number in self.head.segment..=last_number {
            let end = match self.segment(number, before)? {
                Ok(end) => end,
                Err(what) => return Ok(self.damaged(number, what)),
            };
            if end.last.sequence < self.head.last.sequence {
                let what = match end.torn_bytes {
                    0 => "the last records are missing",
                    _ => "a record was altered or is missing",
                };
                return Ok(self.damaged(number, what));
            }
            if number == last_number {
                return Ok(self.whole(number, &end));
            }
            if end.torn_bytes > 0 {
                return Ok(self.damaged(number, "a record was altered or is missing"));
            }
            before = Some(end.last);
        }
        Ok(self.damaged(self.head.segment, "it is missing"))
    }

    /// Goes through one segment; the error says what is wrong with it.
    fn segment(
        &mut self,
        number: u32,
        before: Option<Recorded>,
    ) -> Result<Result<SegmentEnd, &'static str>, AuditError> {
        let mut at = match self.header(number, before)? {
            Ok(header) => header.before,
            Err(what) => return Ok(Err(what)),
        };
        let mut walk = Walk::new(self.disk, number, None)?;
        loop {
            if at.sequence == self.head.last.sequence && at != self.head.last {
                return Ok(Err("a record is not the one in the head"));
            }
            let (offset_bytes, rest_bytes) = (walk.offset_bytes, walk.rest_bytes());
            let accepted = self.accept(walk.next(self.disk)?, &at);
            if at.sequence >= self.head.last.sequence {
                self.beyond_bytes += match accepted {
                    Some(_) => walk.offset_bytes - offset_bytes,
                    None => rest_bytes,
                };
                if self.beyond_bytes > GROUP_MAX_BYTES {
                    return Ok(Err("more follows the head than a crash leaves there"));
                }
            }
            let Some(frame) = accepted else {
                return Ok(Ok(SegmentEnd {
                    last: at,
                    offset_bytes,
                    torn_bytes: rest_bytes,
                }));
            };
            at = frame.recorded();
            if at.sequence > self.at.sequence {
                self.at = at;
            }
            self.frame = Some(frame);
        }
    }

    fn header(
        &self,
        number: u32,
        before: Option<Recorded>,
    ) -> Result<Result<SegmentHeader, &'static str>, AuditError> {
        let header = match read_header(self.disk, number) {
            Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Err("it is missing"));
            }
            header => header?,
        };
        Ok(match header {
            Header::Newer(found) => {
                let file = segment_name(number);
                return Err(AuditError::NewerFormat { file, found });
            }
            Header::Whole(header)
                if header.number == number
                    && header.keystore_id == self.key.keystore_id()
                    && before.is_none_or(|before| before == header.before)
                    // The head names the segment in which the next record would be, or a later one.
                    && (before.is_some() || header.before.sequence <= self.head.last.sequence) =>
            {
                Ok(header)
            }
            _ => Err("its header was altered"),
        })
    }

    /// The record, if it is the one that follows `at`. Up to the head the chain is enough, which
    /// the head ends; behind it, the seal must open as well.
    fn accept(&self, step: Step, at: &Recorded) -> Option<Frame> {
        let Step::Frame(frame) = step else {
            return None;
        };
        let follows = frame.sequence == at.sequence + 1 && frame.follows(&at.hash);
        let is_open = || {
            frame.sequence <= self.head.last.sequence
                || frame
                    .open_as(self.key, frame.sequence)
                    .is_some_and(|opening| opening.previous == at.hash)
        };
        (follows && is_open()).then_some(frame)
    }

    fn whole(&self, segment: u32, end: &SegmentEnd) -> Tail {
        let is_checkpoint = |frame: &Frame| {
            frame
                .open_as(self.key, frame.sequence)
                .is_some_and(|opening| opening.event.act == CHECKPOINT)
        };
        Tail::Whole {
            end: End {
                last: end.last,
                segment,
                offset_bytes: end.offset_bytes,
                cut: self.head.cut,
            },
            torn_bytes: end.torn_bytes,
            beyond: end.last.sequence > self.head.last.sequence || segment > self.head.segment,
            is_signed: end.last.sequence == 0 || self.frame.as_ref().is_some_and(is_checkpoint),
        }
    }

    fn damaged(&self, segment: u32, what: &str) -> Tail {
        Tail::Damaged {
            what: format!("{}: {what}", segment_name(segment)),
            last: self.at,
        }
    }
}

/// Without a head it is damage in any case; what is left is where to go on: behind any record that
/// there may have been, so that no number is used twice.
fn without_head(
    disk: &dyn Disk,
    key: &AuditKey,
    numbers: &[u32],
    what: &str,
) -> Result<Tail, AuditError> {
    let mut last = Recorded::NONE;
    for &number in numbers.iter().rev() {
        let Header::Whole(header) = read_header(disk, number)? else {
            continue;
        };
        if header.number != number || header.keystore_id != key.keystore_id() {
            continue;
        }
        last = header.before;
        let mut walk = Walk::new(disk, number, None)?;
        let mut rest_bytes = walk.rest_bytes();
        while let Step::Frame(frame) = walk.next(disk)? {
            if frame.sequence != last.sequence + 1 || !frame.follows(&last.hash) {
                break;
            }
            last = frame.recorded();
            rest_bytes = walk.rest_bytes();
        }
        if rest_bytes > 0 {
            last.sequence += rest_bytes / FRAME_MIN_BYTES as u64 + 1;
            last.hash = Hash::NONE;
        }
        break;
    }
    Ok(Tail::Damaged {
        what: what.to_owned(),
        last,
    })
}
