//! Opening a log: finding its end, and what happened to it since it was closed.
//!
//! | found | what is done |
//! |---|---|
//! | no log | one is begun |
//! | records behind the head, whole | a crash came before the head was written: they count |
//! | anything else behind the head | a crash tore what was not acknowledged: it is cut off |
//! | anything else | damage: a new segment is begun, whose first record says so |
//!
//! Behind the head lies no more than one group, or else it is damage as well. What is damaged stays
//! as it was found. Only the segments from the head on are read here; `verify` reads all.

use crate::error::AuditError;
use crate::event::{CUT, DAMAGE, Event, Outcome, older_copy};
use crate::format::checkpoint::CheckpointSigner;
use crate::format::head::{HEAD_NAME, HeadState};
use crate::format::record::AuditKey;
use crate::format::segment::{Cut, FIRST_FRAME, Header, next_number, segment_name};
use crate::read::end::End;
use crate::read::tail::{Tail, find_tail, read_head, segments};
use crate::read::walk::read_header;
use crate::write::writer::{Options, Writer, open_segment, place_head, place_segment};
use coffer_durable::{Disk, Slot, now_ms, remove_durably};

/// What opening a log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// There was none: it was begun.
    pub is_new: bool,
    /// Bytes that a crash left at the end, of records not yet acknowledged, and that were cut
    /// off. A record says so.
    pub cut_bytes: u64,
    /// Damage: what was found. A record says so, and the log goes on in a new segment.
    pub damage: Option<String>,
    /// That is no more than that it is an older copy: whole, without the last records.
    pub is_older_copy: bool,
}

/// Opens the log on a disk, or begins one.
pub(crate) fn open_on(
    disk: Box<dyn Disk>,
    key: AuditKey,
    signer: Box<dyn CheckpointSigner>,
    options: Options,
) -> Result<(Writer, Opened), AuditError> {
    let head = read_head(&*disk, &key)?;
    if let HeadState::Newer(found) = head {
        let file = HEAD_NAME.to_owned();
        return Err(AuditError::NewerFormat { file, found });
    }
    let cut = beginning(&*disk, head)?;
    remove_pruned(&*disk, cut)?;
    let numbers = segments(&*disk)?;
    let mut opened = Opened::default();
    let mut own_events = Vec::new();

    if is_unbegun(&*disk, head, &numbers)? {
        let end = End::OF_NONE;
        begin(&*disk, &key, &end)?;
        if options.known.is_some() {
            let what = "the log is gone: there was one in this folder".to_owned();
            own_events.push(damage_event(&what));
            opened.damage = Some(what);
        }
        opened.is_new = true;
        let mut writer = Writer::new(disk, key, signer, options, end, Some(Slot::A));
        writer.begin(true, encoded(own_events)?);
        return Ok((writer, opened));
    }

    let (end, slot, is_signed) =
        match find_tail(&*disk, &key, head, &numbers)?.knowing(options.known) {
            Tail::Whole {
                end,
                torn_bytes,
                beyond,
                is_signed,
            } => {
                let slot = settle(&*disk, head, &end, torn_bytes, beyond)?;
                if torn_bytes > 0 {
                    opened.cut_bytes = torn_bytes;
                    own_events.push(Event::of_log(CUT).with("bytes", torn_bytes));
                }
                if let Some(what) = gap(&numbers, cut) {
                    own_events.push(damage_event(&what));
                    opened.damage = Some(what);
                }
                (end, slot, is_signed)
            }
            Tail::Damaged { what, last } => {
                let end = End {
                    last,
                    segment: next_number(highest(head, &numbers))?,
                    offset_bytes: FIRST_FRAME,
                    cut,
                };
                begin(&*disk, &key, &end)?;
                own_events.push(damage_event(&what));
                opened.is_older_copy = what == older_copy(last.sequence);
                opened.damage = Some(what);
                (end, Some(Slot::A), true)
            }
        };
    let mut writer = Writer::new(disk, key, signer, options, end, slot);
    writer.begin(is_signed, encoded(own_events)?);
    Ok((writer, opened))
}

/// Where the log begins, as its head says. Without one it is what is there, and `verify` judges.
fn beginning(disk: &dyn Disk, head: HeadState) -> Result<Cut, AuditError> {
    if let HeadState::Found { head, .. } = head {
        return Ok(head.cut);
    }
    let first = segments(disk)?.first().copied().filter(|first| *first > 1);
    let header = first.map(|first| read_header(disk, first)).transpose()?;
    Ok(match (first, header) {
        (Some(segment), Some(Header::Whole(header))) => Cut {
            segment,
            before: header.before,
        },
        _ => Cut::NONE,
    })
}

/// Removes the segments before the first one, the oldest first: a stop may have left some.
pub(crate) fn remove_pruned(disk: &dyn Disk, cut: Cut) -> Result<(), AuditError> {
    let numbers = segments(disk)?.into_iter();
    for number in numbers.filter(|number| *number < cut.segment) {
        let name = segment_name(number);
        remove_durably(disk, &name).map_err(AuditError::durable("remove", &name))?;
    }
    Ok(())
}

/// The first segment may be there, without a record, when a crash came before the head.
fn is_unbegun(disk: &dyn Disk, head: HeadState, numbers: &[u32]) -> Result<bool, AuditError> {
    Ok(match (head, numbers) {
        (HeadState::Missing, []) => true,
        (HeadState::Missing, [1]) => {
            let name = segment_name(1);
            let length_bytes = disk.length_bytes(&name);
            length_bytes.map_err(AuditError::io("read", &name))? <= FIRST_FRAME
        }
        _ => false,
    })
}

/// Begins a segment and then the head, so that the head never names one that is not there.
fn begin(disk: &dyn Disk, key: &AuditKey, end: &End) -> Result<(), AuditError> {
    place_segment(disk, key, end.segment, end.last)?;
    place_head(disk, key, end)
}

/// Cuts off what is torn; gives back the slot of the head to write next, if the head is whole and
/// names the end.
fn settle(
    disk: &dyn Disk,
    head: HeadState,
    end: &End,
    torn_bytes: u64,
    beyond: bool,
) -> Result<Option<Slot>, AuditError> {
    let name = segment_name(end.segment);
    if torn_bytes > 0 || beyond {
        let mut file = open_segment(disk, &name)?;
        if torn_bytes > 0 {
            let cut = file.set_length(end.offset_bytes);
            cut.map_err(AuditError::io("cut off the end of", &name))?;
        }
        // What was read may have been in memory only.
        file.sync().map_err(AuditError::io("sync", &name))?;
    }
    Ok(match head {
        HeadState::Found {
            slot,
            is_torn: false,
            ..
        } if !beyond => Some(slot.other()),
        _ => None,
    })
}

fn damage_event(what: &str) -> Event {
    let mut event = Event::of_log(DAMAGE).with("found", what);
    event.outcome = Outcome::Failed;
    event
}

fn encoded(events: Vec<Event>) -> Result<Vec<Vec<u8>>, AuditError> {
    let encode = |event: Event| event.encode_own(now_ms());
    events.into_iter().map(encode).collect()
}

/// What is said when a segment is missing; at each start, for it stays missing.
fn gap(numbers: &[u32], cut: Cut) -> Option<String> {
    let (missing, _) = (cut.segment..)
        .zip(numbers)
        .find(|(want, have)| want != *have)?;
    Some(format!("{} is missing", segment_name(missing)))
}

fn highest(head: HeadState, numbers: &[u32]) -> u32 {
    let last = numbers.last().copied().unwrap_or(0);
    match head {
        HeadState::Found { head, .. } => last.max(head.segment),
        _ => last,
    }
}
