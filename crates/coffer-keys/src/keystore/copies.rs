//! The keystore file: two copies, of which one is always whole.
//!
//! Invariant: while one copy is being written, the other is whole on disk and is the newest that
//! anyone was told of. A change is written to the staler copy, made durable and read back; only
//! then the other is touched. So whenever power fails, the newest whole copy is the keystore as it
//! was before the change or as it is after it.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::KeysError;
use crate::keystore::slot::{Copy, FORMAT, Slot};
use crate::medium::Medium;

/// What opening a keystore had to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Nothing: both copies were whole and the same.
    None,
    /// Copy A was damaged or older, and was written anew from copy B.
    CopyA,
    /// Copy B was damaged or older, and was written anew from copy A.
    CopyB,
}

/// Both copies: the newest in memory, and how the slots stand.
pub(crate) struct Copies {
    medium: Box<dyn Medium>,
    path: PathBuf,
    newest: Copy,
    /// The slot that doesn't hold the newest copy, if one doesn't.
    stale: Option<Side>,
    /// How far each slot may hold other bytes than zeros.
    used_bytes: [usize; 2],
}

/// One of the two slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    A,
    B,
}

/// What examining a slot found.
struct Found {
    slot: Slot,
    used_bytes: usize,
    unreadable: Option<io::Error>,
}

impl Copies {
    /// Copies on an empty medium, neither of which is written yet: [`Copies::write_staler`] and
    /// [`Copies::mend`] follow.
    pub(crate) fn on_empty(medium: Box<dyn Medium>, path: &Path, first: Copy) -> Self {
        Self {
            medium,
            path: path.to_path_buf(),
            newest: first,
            stale: Some(Side::A),
            used_bytes: [0; 2],
        }
    }

    /// Finds the newest whole copy, and which slot doesn't hold it. Changes nothing.
    pub(crate) fn find(medium: Box<dyn Medium>, path: &Path) -> Result<Self, KeysError> {
        let [a, b] = [Side::A, Side::B].map(|side| Found::at(side, medium.as_ref()));
        let used_bytes = [a.used_bytes, b.used_bytes];
        let (newest, stale) = choose(a.slot, b.slot, path).map_err(|error| {
            // Why a copy couldn't be read says more than that it is damaged.
            match (error, a.unreadable.or(b.unreadable)) {
                (KeysError::Damaged { .. }, Some(source)) => KeysError::io("read", path)(source),
                (error, _) => error,
            }
        })?;
        let mut copies = Self {
            medium,
            path: path.to_path_buf(),
            newest,
            stale,
            used_bytes,
        };
        copies.stale = copies.stale.or_else(|| copies.with_remains());
        Ok(copies)
    }

    pub(crate) fn newest(&self) -> &Copy {
        &self.newest
    }

    /// Writes a change to the staler copy. When this returns, the change is what a restart finds;
    /// when it fails, the other copy is untouched and the change may or may not be found.
    pub(crate) fn write_staler(&mut self, copy: Copy) -> Result<(), KeysError> {
        let side = self.stale.unwrap_or(Side::A);
        self.stale = Some(side);
        self.write(side, copy.as_bytes())?;
        self.newest = copy;
        self.stale = Some(side.other());
        Ok(())
    }

    /// Brings the stale copy, if there is one, to the newest.
    pub(crate) fn mend(&mut self) -> Result<Repair, KeysError> {
        let mut repair = Repair::None;
        while let Some(side) = self.stale {
            let bytes = self.newest.as_bytes().to_vec();
            self.write(side, &bytes)?;
            self.stale = self.with_remains();
            if repair == Repair::None {
                repair = match side {
                    Side::A => Repair::CopyA,
                    Side::B => Repair::CopyB,
                };
            }
        }
        Ok(repair)
    }

    /// A slot where the newest copy is followed by what is left of an older and longer one: power
    /// failed while it shrank.
    fn with_remains(&self) -> Option<Side> {
        let copy_bytes = self.newest.as_bytes().len();
        [Side::A, Side::B]
            .into_iter()
            .find(|side| self.used_bytes[*side as usize] > copy_bytes)
    }

    /// Writes, syncs and reads back one slot; what an older and longer copy left behind this one
    /// becomes zeros.
    fn write(&mut self, side: Side, bytes: &[u8]) -> Result<(), KeysError> {
        let offset_bytes = side.offset_bytes(self.medium.as_ref());
        let used_bytes = &mut self.used_bytes[side as usize];
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().max(*used_bytes), 0);
        *used_bytes = padded.len();
        self.medium
            .write(offset_bytes, &padded)
            .map_err(KeysError::io("write", &self.path))?;
        self.medium
            .sync()
            .map_err(KeysError::io("sync", &self.path))?;
        let read_back = self
            .medium
            .read(offset_bytes, padded.len())
            .map_err(KeysError::io("read back", &self.path))?;
        if read_back != padded {
            return Err(KeysError::NotReadBack {
                path: self.path.clone(),
            });
        }
        self.used_bytes[side as usize] = bytes.len();
        Ok(())
    }
}

impl Found {
    /// A slot that can't be read is as good as a damaged one: the other copy may be whole.
    fn at(side: Side, medium: &dyn Medium) -> Self {
        let slot_bytes = medium.slot_bytes();
        match medium.read(side.offset_bytes(medium), slot_bytes) {
            Ok(bytes) => Self {
                slot: Slot::parse(&bytes),
                used_bytes: used_bytes(&bytes),
                unreadable: None,
            },
            Err(error) => Self {
                slot: Slot::Damaged,
                used_bytes: slot_bytes,
                unreadable: Some(error),
            },
        }
    }
}

impl Side {
    fn offset_bytes(self, medium: &dyn Medium) -> u64 {
        self as u64 * medium.slot_bytes() as u64
    }

    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

/// The newest whole copy, and the slot that doesn't hold it.
fn choose(a: Slot, b: Slot, path: &Path) -> Result<(Copy, Option<Side>), KeysError> {
    let newer = |found| KeysError::NewerFormat {
        found,
        known: FORMAT,
    };
    match (a, b) {
        // A whole copy of a newer format was put there on purpose.
        (Slot::Newer { found, whole: true }, _) | (_, Slot::Newer { found, whole: true }) => {
            Err(newer(found))
        }
        (Slot::Intact(a), Slot::Intact(b)) if a == b => Ok((a, None)),
        (Slot::Intact(a), Slot::Intact(b)) if a.generation() >= b.generation() => {
            Ok((a, Some(Side::B)))
        }
        (Slot::Intact(a), Slot::Damaged | Slot::Newer { .. }) => Ok((a, Some(Side::B))),
        (_, Slot::Intact(b)) => Ok((b, Some(Side::A))),
        // Neither is whole, but both say that they are newer: perhaps this version only doesn't
        // know how to check them.
        (Slot::Newer { found, .. }, Slot::Newer { found: same, .. }) if found == same => {
            Err(newer(found))
        }
        _ => Err(KeysError::Damaged {
            path: path.to_path_buf(),
        }),
    }
}

/// Up to and with the last byte that is not zero. Nearly all of a slot is zeros, so whole pages
/// are compared first.
fn used_bytes(slot: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let is_used = |page: &[u8]| page != &ZEROS[..page.len()];
    let Some(last_page) = slot.chunks(ZEROS.len()).rposition(is_used) else {
        return 0;
    };
    let start = last_page * ZEROS.len();
    let page = &slot[start..slot.len().min(start + ZEROS.len())];
    let last = page.iter().rposition(|byte| *byte != 0);
    start + last.map_or(0, |last| last + 1)
}
