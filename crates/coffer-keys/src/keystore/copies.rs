//! The keystore file: two copies, of which one is always whole.
//!
//! Invariant: while one copy is being written, the other is whole on disk and is the newest that
//! was reported as written. A change goes to the staler copy, is made durable and read back; only
//! then the other is touched. So whenever power fails, the newest whole copy is the keystore as it
//! was before the change or as it is after it.

use std::path::{Path, PathBuf};

use coffer_durable::{Slot, TwoSlots};

use crate::error::KeysError;
use crate::keystore::copy::{Copy, FORMAT, FoundCopy};

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
    slots: TwoSlots,
    path: PathBuf,
    newest: Copy,
    /// The slot that doesn't hold the newest copy, if one doesn't.
    stale: Option<Slot>,
}

impl Copies {
    /// Copies in empty slots, neither of which is written yet: [`Copies::write_staler`] and
    /// [`Copies::mend`] follow.
    pub(crate) fn on_empty(slots: TwoSlots, path: &Path, first: Copy) -> Self {
        Self {
            slots,
            path: path.to_path_buf(),
            newest: first,
            stale: Some(Slot::A),
        }
    }

    /// Finds the newest whole copy, and which slot doesn't hold it. Changes nothing.
    pub(crate) fn find(mut slots: TwoSlots, path: &Path) -> Result<Self, KeysError> {
        let mut unreadable = None;
        // A slot that can't be read is as good as a damaged one: the other copy may be whole.
        let [a, b] = Slot::BOTH.map(|slot| match slots.read(slot) {
            Ok(content) => FoundCopy::parse(&content),
            Err(error) => {
                unreadable.get_or_insert(error);
                FoundCopy::Damaged
            }
        });
        let (newest, stale) = choose(a, b, path).map_err(|error| match (error, unreadable) {
            // Why a copy couldn't be read says more than that it is damaged.
            (KeysError::Damaged { .. }, Some(source)) => KeysError::io("read", path)(source),
            (error, _) => error,
        })?;
        let mut copies = Self {
            slots,
            path: path.to_path_buf(),
            newest,
            stale,
        };
        copies.stale = copies.stale.or_else(|| copies.with_remains());
        Ok(copies)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn newest(&self) -> &Copy {
        &self.newest
    }

    /// Writes a change to the staler copy. When this returns, the change is what a restart finds;
    /// when it fails, the other copy is untouched and the change may or may not be found.
    pub(crate) fn write_staler(&mut self, copy: Copy) -> Result<(), KeysError> {
        let slot = self.stale.unwrap_or(Slot::A);
        self.stale = Some(slot);
        self.write(slot, copy.as_bytes())?;
        self.newest = copy;
        self.stale = Some(slot.other());
        Ok(())
    }

    /// Brings the stale copy, if there is one, to the newest.
    pub(crate) fn mend(&mut self) -> Result<Repair, KeysError> {
        let mut repair = Repair::None;
        while let Some(slot) = self.stale {
            let bytes = self.newest.as_bytes().to_vec();
            self.write(slot, &bytes)?;
            self.stale = self.with_remains();
            if repair == Repair::None {
                repair = match slot {
                    Slot::A => Repair::CopyA,
                    Slot::B => Repair::CopyB,
                };
            }
        }
        Ok(repair)
    }

    /// A slot where the newest copy is followed by what is left of an older and longer one: power
    /// failed while it shrank.
    fn with_remains(&self) -> Option<Slot> {
        let copy_bytes = self.newest.as_bytes().len();
        let has_remains = |slot: &Slot| self.slots.used_bytes(*slot) > copy_bytes;
        Slot::BOTH.into_iter().find(has_remains)
    }

    fn write(&mut self, slot: Slot, bytes: &[u8]) -> Result<(), KeysError> {
        let written = self.slots.overwrite(slot, bytes);
        written.map_err(KeysError::durable(&self.path))
    }
}

/// The newest whole copy, and the slot that doesn't hold it.
fn choose(a: FoundCopy, b: FoundCopy, path: &Path) -> Result<(Copy, Option<Slot>), KeysError> {
    let newer = |found| KeysError::NewerFormat {
        found,
        known: FORMAT,
    };
    match (a, b) {
        // A whole copy of a newer format was put there on purpose.
        (FoundCopy::Newer { found, whole: true }, _)
        | (_, FoundCopy::Newer { found, whole: true }) => Err(newer(found)),
        (FoundCopy::Intact(a), FoundCopy::Intact(b)) if a == b => Ok((a, None)),
        (FoundCopy::Intact(a), FoundCopy::Intact(b)) if a.generation() >= b.generation() => {
            Ok((a, Some(Slot::B)))
        }
        (FoundCopy::Intact(a), FoundCopy::Damaged | FoundCopy::Newer { .. }) => {
            Ok((a, Some(Slot::B)))
        }
        (_, FoundCopy::Intact(b)) => Ok((b, Some(Slot::A))),
        // Neither is whole, but both say that they are newer: perhaps this version only doesn't
        // know how to check them.
        (FoundCopy::Newer { found, .. }, FoundCopy::Newer { found: same, .. }) if found == same => {
            Err(newer(found))
        }
        _ => Err(KeysError::Damaged {
            path: path.to_path_buf(),
        }),
    }
}
