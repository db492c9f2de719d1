//! Verifying a whole log.

use std::io;
use std::path::Path;

use crate::error::AuditError;
use crate::event::{CHECKPOINT, DAMAGE, Event, PRUNED};
use crate::format::checkpoint::{PUBLIC_KEY_BYTES, is_signed, signed_cut};
use crate::format::head::{HEAD_NAME, HeadState};
use crate::format::record::{AuditKey, Opening, Recorded};
use crate::format::segment::{Cut, Header, segment_name};
use crate::limits::{FINDINGS_MAX, GROUP_MAX_BYTES};
use crate::read::end::End;
use crate::read::tail::{read_head, segments};
use crate::read::walk::{Step, Walk, read_header};
use crate::verify::diagnosis::diagnose;
use crate::verify::finding::{Report, Wrong};
use crate::verify::rollbacks::Rollbacks;
use coffer_durable::{Disk, Folder};

/// Verifies the log in a folder that no server has open: every record, every checkpoint with this
/// Ed25519 public key, and the end with the head. `wanted`: also that this record is in it, such as
/// the one that a receipt names.
///
/// # Errors
///
/// When a file can't be read, or is of a later version. What is wrong with the log is in the
/// report.
pub fn verify(
    folder: &Path,
    key: &AuditKey,
    public_key: &[u8; PUBLIC_KEY_BYTES],
    wanted: Option<&Recorded>,
) -> Result<Report, AuditError> {
    verify_on(&Folder::new(folder), key, public_key, wanted, None)
}

/// The last record of the log in a folder that no server has open, as its head says; `None` when
/// the head can't be read.
///
/// # Errors
///
/// When its file can't be read.
pub fn last(folder: &Path, key: &AuditKey) -> Result<Option<Recorded>, AuditError> {
    Ok(match read_head(&Folder::new(folder), key)? {
        HeadState::Found { head, .. } => Some(head.last),
        _ => None,
    })
}

/// As [`verify`], on any disk. `end`: where the log ends, by who is writing it; what follows is not
/// looked at, nor is the head.
pub(crate) fn verify_on(
    disk: &dyn Disk,
    key: &AuditKey,
    public_key: &[u8; PUBLIC_KEY_BYTES],
    wanted: Option<&Recorded>,
    end: Option<&End>,
) -> Result<Report, AuditError> {
    let mut verifying = Verifying {
        disk,
        key,
        public_key,
        wanted,
        has_wanted: wanted.is_none(),
        at: Some(Recorded::NONE),
        beyond: Beyond::default(),
        base: Cut::NONE,
        signed: None,
        rollbacks: Rollbacks::default(),
        report: Report::EMPTY,
    };
    verifying.run(end)?;
    verifying.rollbacks.explain(&mut verifying.report);
    Ok(verifying.report)
}

/// What lies behind the head.
#[derive(Default)]
struct Beyond {
    head: Option<Recorded>,
    length_bytes: u64,
}

struct Verifying<'a> {
    disk: &'a dyn Disk,
    key: &'a AuditKey,
    public_key: &'a [u8; PUBLIC_KEY_BYTES],
    wanted: Option<&'a Recorded>,
    has_wanted: bool,
    /// The last record, while the chain holds.
    at: Option<Recorded>,
    beyond: Beyond,
    /// Where the log begins, by what is there.
    base: Cut,
    /// Where it begins, by the last record that was signed for it.
    signed: Option<Cut>,
    rollbacks: Rollbacks,
    report: Report,
}

impl Verifying<'_> {
    fn run(&mut self, end: Option<&End>) -> Result<(), AuditError> {
        let numbers = match segments(self.disk) {
            // The folder is gone: what is known of the log says what it had.
            Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Vec::new()
            }
            numbers => numbers?,
        };
        let mut last_number = numbers.last().copied().unwrap_or(0);
        let mut head_wrong = None;
        let head = if let Some(end) = end {
            last_number = end.segment;
            Some(end.head())
        } else {
            match read_head(self.disk, self.key)? {
                HeadState::Found { head, .. } => {
                    last_number = last_number.max(head.segment);
                    Some(head)
                }
                HeadState::Newer(found) => {
                    let file = HEAD_NAME.to_owned();
                    return Err(AuditError::NewerFormat { file, found });
                }
                HeadState::Missing => {
                    head_wrong = Some(Wrong::HeadMissing);
                    None
                }
                HeadState::Unreadable => {
                    head_wrong = Some(Wrong::HeadAltered);
                    None
                }
            }
        };
        self.beyond.head = head.map(|head| head.last);
        self.find_base(&numbers)?;
        for number in self.base.segment..=last_number {
            let until_bytes = end
                .filter(|end| end.segment == number)
                .map(|end| end.offset_bytes);
            // A gap is told once, however long it is.
            if numbers.binary_search(&number).is_err() {
                if number == self.base.segment || numbers.binary_search(&(number - 1)).is_ok() {
                    self.report.add(number, None, Wrong::SegmentMissing);
                }
                self.at = None;
                continue;
            }
            self.segment(number, number == last_number, until_bytes)?;
        }
        if let Some(wrong) = head_wrong {
            self.report.add(last_number, None, wrong);
        }
        self.check_base();
        self.check_end(last_number);
        if let (false, Some(wanted)) = (self.has_wanted, self.wanted) {
            let sequence = Some(wanted.sequence);
            let through = self.report.pruned_through;
            let wrong = if wanted.sequence <= through {
                Wrong::Pruned { through }
            } else {
                Wrong::NotInLog
            };
            self.report.add(last_number, sequence, wrong);
        }
        Ok(())
    }

    /// A log whose first segments are gone is read from those on that are there. Whether they may
    /// be gone is known when all of it was read.
    fn find_base(&mut self, numbers: &[u32]) -> Result<(), AuditError> {
        let Some(&first) = numbers.first().filter(|first| **first > 1) else {
            return Ok(());
        };
        if let Header::Whole(header) = read_header(self.disk, first)? {
            self.base = Cut {
                segment: first,
                before: header.before,
            };
            self.at = Some(header.before);
            self.has_wanted |= self.wanted == Some(&header.before);
        }
        Ok(())
    }

    /// Whether what is gone from the beginning was pruned: no more than was signed for. A stop may
    /// have left more than that.
    fn check_base(&mut self) {
        if self.base == Cut::NONE {
            return;
        }
        let is_signed = self.signed.is_some_and(|signed| {
            signed == self.base
                || signed.segment > self.base.segment
                    && signed.before.sequence > self.base.before.sequence
        });
        if is_signed {
            self.report.pruned_through = self.base.before.sequence
        } else {
            let mut findings = std::mem::take(&mut self.report.findings);
            self.report.add(1, None, Wrong::SegmentMissing);
            self.report.findings.append(&mut findings);
            self.report.findings.truncate(FINDINGS_MAX);
        }
    }

    fn check_end(&mut self, last_number: u32) {
        let (Some(head), Some(at)) = (self.beyond.head, self.at) else {
            return;
        };
        if at.sequence < head.sequence {
            let through = head.sequence;
            let wrong = Wrong::Truncated { through };
            self.report.add(last_number, Some(at.sequence + 1), wrong);
        }
        if self.beyond.length_bytes > GROUP_MAX_BYTES {
            self.report.add(last_number, None, Wrong::HeadOld);
        }
    }

    fn segment(
        &mut self,
        number: u32,
        is_last: bool,
        until_bytes: Option<u64>,
    ) -> Result<(), AuditError> {
        let header = match read_header(self.disk, number) {
            Err(AuditError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                self.report.add(number, None, Wrong::SegmentMissing);
                self.at = None;
                return Ok(());
            }
            header => header?,
        };
        self.report.segment_count += 1;
        let header = match header {
            Header::Newer(found) => {
                let file = segment_name(number);
                return Err(AuditError::NewerFormat { file, found });
            }
            Header::Whole(header)
                if header.number == number && header.keystore_id == self.key.keystore_id() =>
            {
                Some(header)
            }
            _ => None,
        };
        match (header, self.at) {
            (None, _) => self.report.add(number, None, Wrong::HeaderAltered),
            (Some(header), Some(at)) if header.before != at => {
                self.elsewhere(number, &header.before, &at);
                self.at = Some(header.before);
            }
            (Some(header), _) => self.at = Some(header.before),
        }
        self.records(number, is_last, until_bytes)
    }

    /// A segment begins elsewhere than where the one before it ended.
    fn elsewhere(&mut self, number: u32, before: &Recorded, at: &Recorded) {
        let (segment, wrong) = if before.sequence > at.sequence {
            let through = before.sequence;
            (number - 1, Wrong::Missing { through })
        } else {
            (number, Wrong::HeaderElsewhere)
        };
        self.report
            .add(segment.max(1), Some(at.sequence + 1), wrong);
    }

    fn records(
        &mut self,
        number: u32,
        is_last: bool,
        until_bytes: Option<u64>,
    ) -> Result<(), AuditError> {
        // With neither a header nor what was before, nothing says where its records belong.
        let Some(mut at) = self.at else {
            return Ok(());
        };
        let mut walk = Walk::new(self.disk, number, until_bytes)?;
        loop {
            let (offset_bytes, rest_bytes) = (walk.offset_bytes, walk.rest_bytes());
            let head = self.beyond.head;
            let is_beyond = head.is_some_and(|head| at.sequence >= head.sequence);
            let step = walk.next(self.disk)?;
            if matches!(step, Step::End) {
                break;
            }
            let Some((recorded, opening)) = self.expected(&step, &at) else {
                if is_beyond && is_last && until_bytes.is_none() {
                    // It was not acknowledged: a crash while it was written.
                    self.beyond.length_bytes += rest_bytes;
                    self.report.torn_bytes = rest_bytes;
                    break;
                }
                self.tell_wrong(number, is_last, &at, step)?;
                self.at = None;
                return Ok(());
            };
            if is_beyond {
                self.beyond.length_bytes += walk.offset_bytes - offset_bytes;
            }
            let (event, time_ms) = (&opening.event, opening.time_ms);
            self.rollbacks.look_at(recorded.sequence, time_ms, event);
            self.count(number, &recorded, event, &at);
            at = recorded;
        }
        self.at = Some(at);
        Ok(())
    }

    /// The record that follows `at`, if it is that.
    fn expected(&self, step: &Step, at: &Recorded) -> Option<(Recorded, Opening)> {
        let Step::Frame(frame) = step else {
            return None;
        };
        let opening = frame.open_as(self.key, at.sequence + 1)?;
        let follows = frame.sequence == at.sequence + 1
            && opening.previous == at.hash
            && frame.follows(&at.hash);
        follows.then(|| (frame.recorded(), opening))
    }

    fn tell_wrong(
        &mut self,
        number: u32,
        is_last: bool,
        at: &Recorded,
        step: Step,
    ) -> Result<(), AuditError> {
        let expected = at.sequence + 1;
        let wrong = match step {
            Step::Frame(frame) => diagnose(self.disk, self.key, number, expected, &frame)?,
            Step::Broken { is_cut: true } => {
                let through = self.last_of(number, is_last);
                let through = through.filter(|through| *through >= expected);
                through.map_or(Wrong::Altered, |through| Wrong::Truncated { through })
            }
            _ => Wrong::Altered,
        };
        self.report.add(number, Some(expected), wrong);
        Ok(())
    }

    /// The last record of a segment, as the head or the next segment has it.
    fn last_of(&self, number: u32, is_last: bool) -> Option<u64> {
        if is_last {
            return self.beyond.head.map(|head| head.sequence);
        }
        match read_header(self.disk, number + 1) {
            Ok(Header::Whole(header)) => Some(header.before.sequence),
            _ => None,
        }
    }

    /// A record that follows the one before.
    fn count(&mut self, number: u32, recorded: &Recorded, event: &Event, before: &Recorded) {
        self.report.record_count += 1;
        self.report.last = *recorded;
        self.has_wanted |= self.wanted == Some(recorded);
        let head = self.beyond.head;
        if head.is_some_and(|head| head.sequence == recorded.sequence && head != *recorded) {
            let sequence = Some(recorded.sequence);
            self.report.add(number, sequence, Wrong::Altered);
        }
        self.look_at(number, recorded, event, before);
    }

    fn look_at(&mut self, number: u32, recorded: &Recorded, event: &Event, before: &Recorded) {
        let sequence = Some(recorded.sequence);
        if event.act == CHECKPOINT {
            if is_signed(event, self.key.keystore_id(), before, self.public_key) {
                self.report.checkpoint_count += 1;
            } else {
                self.report.add(number, sequence, Wrong::NotSigned);
            }
        }
        if event.act == PRUNED {
            match signed_cut(event, self.key.keystore_id(), self.public_key) {
                Some(cut) => self.signed = Some(cut),
                None => self.report.add(number, sequence, Wrong::NotSigned),
            }
        }
        if event.act == DAMAGE {
            let found = event.details.get("found").cloned().unwrap_or_default();
            self.report
                .add(number, sequence, Wrong::DamageRecorded { found });
        }
    }
}
