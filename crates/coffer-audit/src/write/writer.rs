//! The one writer: it adds groups of records, and knows where the log is whole.
//!
//! A group is written and synced, then the head that names its last record; only then it counts as
//! recorded. What fails is undone before anything else is written:
//!
//! - A write that failed: the segment is cut back to where it was whole.
//! - A sync that failed: as well, and the segment is left for a new one. The system says only once
//!   that it lost what was written, and takes the pages for clean from then on, so another sync of
//!   the same file proves nothing.
//! - A head that failed: its file is made anew. The group stays where it is, for the head may be
//!   durable all the same.

use crate::error::AuditError;
use crate::format::checkpoint::{CheckpointSigner, Pruning, checkpoint, pruned};
use crate::format::head::{HEAD_NAME, HEAD_SLOT_BYTES};
use crate::format::record::{AuditKey, Recorded, write_frame};
use crate::format::segment::{Cut, FIRST_FRAME, SegmentHeader, next_number, segment_name};
use crate::limits::{CHECKPOINT_EVERY, GROUP_COUNT_MAX, GROUP_MAX_BYTES, SEGMENT_BYTES};
use crate::read::end::End;
use coffer_durable::{Access, Disk, DiskFile, Slot, TwoSlots, now_ms, write_atomically};

/// What can be chosen about a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// A segment ends with the group that brings it to this length, in bytes.
    pub segment_bytes: u64,
    /// A checkpoint follows this many records at the latest.
    pub checkpoint_every: u32,
    /// A record that the log is known to hold: without it, the log was replaced, which is damage.
    pub known: Option<Recorded>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES,
            checkpoint_every: CHECKPOINT_EVERY,
            known: None,
        }
    }
}

/// What must be done before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    /// Cutting off what a write that failed left.
    Cut,
    /// That, and going on in another segment.
    Leave,
    /// Making the head anew.
    Head,
}

pub(crate) struct Writer {
    disk: Box<dyn Disk>,
    key: AuditKey,
    signer: Box<dyn CheckpointSigner>,
    options: Options,
    end: End,
    /// Events of the log itself that come before any other.
    own: Vec<Vec<u8>>,
    /// Records since the last checkpoint.
    unsigned_count: u32,
    /// The slot of the head that is written next.
    head_slot: Slot,
    due: Due,
}

/// Bytes of a group that is being put together.
struct Group {
    bytes: Vec<u8>,
    /// It has the log's own events that waited.
    has_own: bool,
    last: Recorded,
    unsigned_count: u32,
    /// Where the log begins once the group is there.
    cut: Cut,
}

impl Writer {
    /// Goes on at `end`, which is whole, durable, and named by the head in the other slot than
    /// `head_slot`; without one, the head is made anew first.
    pub(crate) fn new(
        disk: Box<dyn Disk>,
        key: AuditKey,
        signer: Box<dyn CheckpointSigner>,
        options: Options,
        end: End,
        head_slot: Option<Slot>,
    ) -> Self {
        Self {
            disk,
            key,
            signer,
            options,
            end,
            own: Vec::new(),
            unsigned_count: 0,
            head_slot: head_slot.unwrap_or(Slot::A),
            due: head_slot.map_or(Due::Head, |_| Due::Nothing),
        }
    }

    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Records these events, of which there are [`GROUP_COUNT_MAX`] at most; all of them, or as far
    /// as is acknowledged none.
    pub(crate) fn write(&mut self, events: &[Vec<u8>]) -> Result<Vec<Recorded>, AuditError> {
        debug_assert!(events.len() <= GROUP_COUNT_MAX);
        self.recover()?;
        if self.end.offset_bytes > FIRST_FRAME
            && self.end.offset_bytes >= self.options.segment_bytes
        {
            self.begin_segment()?;
        }
        let mut group = self.group();
        for event in &self.own {
            self.add(&mut group, event);
        }
        group.has_own = true;
        if events.is_empty() && group.bytes.is_empty() {
            return Ok(Vec::new());
        }
        let mut recorded = Vec::with_capacity(events.len());
        for event in events {
            recorded.push(self.add(&mut group, event));
            if group.unsigned_count >= self.options.checkpoint_every {
                self.add_checkpoint(&mut group)?;
            }
        }
        let length_bytes = self.end.offset_bytes + group.bytes.len() as u64;
        if length_bytes >= self.options.segment_bytes {
            self.add_checkpoint(&mut group)?;
        }
        self.commit(group)?;
        Ok(recorded)
    }

    /// Records that the log begins at another place from now on; what is before it can be removed
    /// when this returns.
    pub(crate) fn prune(&mut self, pruning: &Pruning) -> Result<Recorded, AuditError> {
        self.recover()?;
        let mut group = self.group();
        let event = pruned(&*self.signer, self.key.keystore_id(), pruning)?;
        let recorded = self.add(&mut group, &event.encode_own(now_ms())?);
        self.add_checkpoint(&mut group)?;
        group.cut = pruning.cut;
        self.commit(group)?;
        Ok(recorded)
    }

    /// Goes on in another segment, if there is a record in this one.
    pub(crate) fn end_segment(&mut self) -> Result<(), AuditError> {
        self.recover()?;
        if self.end.offset_bytes == FIRST_FRAME {
            return Ok(());
        }
        self.sign()?;
        // Once that has begun, nothing is added to this one any more.
        self.due = Due::Leave;
        self.recover()?;
        self.write_head()
    }

    /// The disk, once what is due is done: the head that is durable is the last one.
    pub(crate) fn settled_disk(&mut self) -> Result<&dyn Disk, AuditError> {
        self.recover()?;
        Ok(&*self.disk)
    }

    /// Records a checkpoint, unless the last record is covered by one.
    pub(crate) fn sign(&mut self) -> Result<(), AuditError> {
        self.recover()?;
        let mut group = self.group();
        self.add_checkpoint(&mut group)?;
        if group.bytes.is_empty() {
            return Ok(());
        }
        self.commit(group)
    }

    /// The last checkpoint, and the head in both places: nothing is left that could be torn.
    pub(crate) fn close(&mut self) -> Result<(), AuditError> {
        self.sign()?;
        self.write_head()
    }

    /// What is there needs a checkpoint, and then come these events. They are written now if they
    /// can be, or else before whatever comes next.
    pub(crate) fn begin(&mut self, is_signed: bool, own: Vec<Vec<u8>>) {
        self.own = own;
        if !is_signed {
            self.unsigned_count = self.options.checkpoint_every;
        }
        let written = if is_signed { Ok(()) } else { self.sign() };
        if let Err(error) = written.and_then(|()| self.write(&[]).map(drop)) {
            tracing::warn!(%error, "the audit log can't be written yet");
        }
    }

    fn group(&self) -> Group {
        Group {
            bytes: Vec::new(),
            has_own: false,
            last: self.end.last,
            unsigned_count: self.unsigned_count,
            cut: self.end.cut,
        }
    }

    fn add(&self, group: &mut Group, event: &[u8]) -> Recorded {
        group.last = write_frame(&self.key, &group.last, event, &mut group.bytes);
        group.unsigned_count += 1;
        group.last
    }

    fn add_checkpoint(&self, group: &mut Group) -> Result<(), AuditError> {
        if group.unsigned_count == 0 {
            return Ok(());
        }
        let event = checkpoint(&*self.signer, self.key.keystore_id(), &group.last)?;
        self.add(group, &event.encode_own(now_ms())?);
        group.unsigned_count = 0;
        Ok(())
    }

    fn commit(&mut self, group: Group) -> Result<(), AuditError> {
        debug_assert!(group.bytes.len() as u64 <= GROUP_MAX_BYTES);
        let name = segment_name(self.end.segment);
        let mut file = open_segment(&*self.disk, &name)?;
        self.due = Due::Cut;
        let written = file.write(self.end.offset_bytes, &group.bytes);
        written.map_err(AuditError::io("write", &name))?;
        self.due = Due::Leave;
        file.sync().map_err(AuditError::io("sync", &name))?;
        self.end.offset_bytes += group.bytes.len() as u64;
        self.end.last = group.last;
        self.end.cut = group.cut;
        self.unsigned_count = group.unsigned_count;
        if group.has_own {
            self.own.clear();
        }
        self.write_head()
    }

    fn write_head(&mut self) -> Result<(), AuditError> {
        self.due = Due::Head;
        let bytes = self.end.head().to_bytes(&self.key);
        let file = self.disk.open(HEAD_NAME, Access::Write);
        let file = file.map_err(AuditError::io("open", HEAD_NAME))?;
        let written = TwoSlots::new(file, HEAD_SLOT_BYTES).write(self.head_slot, &bytes);
        written.map_err(AuditError::durable("write", HEAD_NAME))?;
        self.head_slot = self.head_slot.other();
        self.due = Due::Nothing;
        Ok(())
    }

    /// Does what is due. After an error it stays due.
    fn recover(&mut self) -> Result<(), AuditError> {
        match self.due {
            Due::Nothing => {}
            Due::Cut | Due::Leave if self.end.offset_bytes == FIRST_FRAME => {
                // Nothing is in it yet that would have to be kept.
                self.place_segment(self.end.segment)?;
            }
            Due::Cut => self.cut()?,
            Due::Leave => {
                self.cut()?;
                self.begin_segment()?;
            }
            Due::Head => place_head(&*self.disk, &self.key, &self.end)?,
        }
        self.due = Due::Nothing;
        Ok(())
    }

    fn cut(&mut self) -> Result<(), AuditError> {
        let name = segment_name(self.end.segment);
        let mut file = open_segment(&*self.disk, &name)?;
        let cut = file.set_length(self.end.offset_bytes);
        cut.map_err(AuditError::io("cut off the end of", &name))?;
        file.sync().map_err(AuditError::io("sync", &name))
    }

    fn begin_segment(&mut self) -> Result<(), AuditError> {
        let number = next_number(self.end.segment)?;
        self.place_segment(number)?;
        self.end.segment = number;
        self.end.offset_bytes = FIRST_FRAME;
        Ok(())
    }

    fn place_segment(&mut self, number: u32) -> Result<(), AuditError> {
        place_segment(&*self.disk, &self.key, number, self.end.last)
    }
}

/// Begins a segment after the record `before`.
pub(crate) fn place_segment(
    disk: &dyn Disk,
    key: &AuditKey,
    number: u32,
    before: Recorded,
) -> Result<(), AuditError> {
    let header = SegmentHeader {
        keystore_id: key.keystore_id(),
        number,
        before,
    };
    let name = segment_name(number);
    let placed = write_atomically(disk, &name, &header.to_bytes());
    placed.map_err(AuditError::durable("create", &name))
}

/// Makes the head's file anew.
pub(crate) fn place_head(disk: &dyn Disk, key: &AuditKey, end: &End) -> Result<(), AuditError> {
    let placed = write_atomically(disk, HEAD_NAME, &end.head().to_file(key));
    placed.map_err(AuditError::durable("replace", HEAD_NAME))
}

/// Opens a segment by name each time, so that a log that was moved away is noticed; what is written
/// is synced through the same handle, which the system tells of an error of writing back.
pub(crate) fn open_segment(disk: &dyn Disk, name: &str) -> Result<Box<dyn DiskFile>, AuditError> {
    disk.open(name, Access::Write)
        .map_err(AuditError::io("open", name))
}
