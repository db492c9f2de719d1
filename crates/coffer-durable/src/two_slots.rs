//! A file of two slots, changed in place: while one is being written the other is whole.
//!
//! What is in a slot tells by itself whether it is whole (by a checksum, a seal or its form) and
//! how new it is: so reading both finds the newest whole one, whenever the power failed. Two ways
//! to write are in use. By turns, each change goes to the older slot alone. Or each change goes to
//! both, one after the other, and nothing of the content before is left: then each slot is
//! overwritten as far as it was ever used, and read back.

use std::io;

use zeroize::Zeroizing;

use crate::disk::DiskFile;
use crate::error::DurableError;

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// At the beginning.
    A,
    /// Behind it.
    B,
}

impl Slot {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// Such a file, open.
pub struct TwoSlots {
    file: Box<dyn DiskFile>,
    slot_bytes: usize,
    /// How far each slot may hold other bytes than zeros.
    used_bytes: [usize; 2],
}

impl TwoSlots {
    /// Both slots of a file, each of this length. They count as empty until they are read.
    pub fn new(file: Box<dyn DiskFile>, slot_bytes: usize) -> Self {
        Self {
            file,
            slot_bytes,
            used_bytes: [0; 2],
        }
    }

    /// What a slot holds: less than its length at the end of the file.
    ///
    /// # Errors
    ///
    /// When it can't be read: then all of it counts as used.
    pub fn read(&mut self, slot: Slot) -> io::Result<Vec<u8>> {
        self.used_bytes[slot as usize] = self.slot_bytes;
        let content = self.file.read(self.offset_bytes(slot), self.slot_bytes)?;
        self.used_bytes[slot as usize] = used_bytes(&content);
        Ok(content)
    }

    /// How far the slot may hold other bytes than zeros.
    pub fn used_bytes(&self, slot: Slot) -> usize {
        self.used_bytes[slot as usize]
    }

    /// The length of the whole file.
    ///
    /// # Errors
    ///
    /// When the system doesn't tell.
    pub fn length_bytes(&self) -> io::Result<u64> {
        self.file.length_bytes()
    }

    /// Makes what was read durable: a process that was killed may have left it in memory only.
    ///
    /// # Errors
    ///
    /// When it can't be synced.
    pub fn sync(&mut self) -> Result<(), DurableError> {
        self.file.sync().map_err(DurableError::io("sync"))
    }

    /// Writes to the beginning of a slot, durably. Longer content of before stays behind it.
    ///
    /// # Errors
    ///
    /// When that fails: the slot may hold anything then, the other one is as it was.
    ///
    /// # Panics
    ///
    /// When it is longer than a slot.
    pub fn write(&mut self, slot: Slot, content: &[u8]) -> Result<(), DurableError> {
        assert!(content.len() <= self.slot_bytes, "it fits its slot");
        let used_bytes = &mut self.used_bytes[slot as usize];
        *used_bytes = content.len().max(*used_bytes);
        let written = self.file.write(self.offset_bytes(slot), content);
        written.map_err(DurableError::io("write"))?;
        self.sync()
    }

    /// Makes a slot hold this and zeros, durably, and reads it back: nothing that it held is left.
    ///
    /// # Errors
    ///
    /// As [`TwoSlots::write`]; [`DurableError::NotReadBack`].
    ///
    /// # Panics
    ///
    /// When it is longer than a slot.
    pub fn overwrite(&mut self, slot: Slot, content: &[u8]) -> Result<(), DurableError> {
        let used_bytes = self.used_bytes[slot as usize];
        let mut padded = Zeroizing::new(vec![0; content.len().max(used_bytes)]);
        padded[..content.len()].copy_from_slice(content);
        let written = self.write(slot, &padded);
        self.file.drop_cache();
        written?;
        let read_back = self.file.read(self.offset_bytes(slot), padded.len());
        let read_back = Zeroizing::new(read_back.map_err(DurableError::io("read back"))?);
        if read_back != padded {
            return Err(DurableError::NotReadBack);
        }
        self.used_bytes[slot as usize] = content.len();
        Ok(())
    }

    /// Cuts off what lies behind this length, durably.
    ///
    /// # Errors
    ///
    /// When that fails.
    pub fn cut(&mut self, length_bytes: u64) -> Result<(), DurableError> {
        let cut = self.file.set_length(length_bytes);
        cut.map_err(DurableError::io("truncate"))?;
        self.sync()
    }

    fn offset_bytes(&self, slot: Slot) -> u64 {
        slot as u64 * self.slot_bytes as u64
    }
}

/// Up to and with the last byte that is not zero. A slot may be long and nearly all zeros, so whole
/// pages are compared first.
fn used_bytes(content: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let is_used = |page: &[u8]| page != &ZEROS[..page.len()];
    let Some(last_page) = content.chunks(ZEROS.len()).rposition(is_used) else {
        return 0;
    };
    let start = last_page * ZEROS.len();
    let page = &content[start..content.len().min(start + ZEROS.len())];
    let last = page.iter().rposition(|byte| *byte != 0);
    start + last.map_or(0, |last| last + 1)
}
