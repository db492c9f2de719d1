//! What the keystore holds, and what holds the keystore: see `freshness.rs`.

use std::path::Path;
use std::sync::Arc;

use coffer_durable::{Access, TwoSlots, now_ms};

use crate::error::KeysError;
use crate::freshness::{Held, HeldGeneration, Keeping, KeystoreRollback, Outside};
use crate::keystore::copies::{Copies, Repair};
use crate::keystore::state::{Keystore, open_slots};
use crate::limits::ROLLBACK_STEP;
use crate::root::source::RootSource;

impl Keystore {
    /// As [`Keystore::open`]; `accepts_rollback`: also an older copy than the source holds
    /// ([`Keystore::accepted`]). It stays older until [`Keystore::go_on_from_older`].
    ///
    /// # Errors
    ///
    /// As [`Keystore::open`]; [`KeysError::RolledBack`].
    pub fn open_accepting(
        path: &Path,
        source: Box<dyn RootSource>,
        accepts_rollback: bool,
    ) -> Result<(Self, Repair), KeysError> {
        let slots = open_slots(path, Access::Write)?;
        Self::open_held(slots, path, vec![source.into()], accepts_rollback)
    }

    /// Opens with the first source that can, and judges by what that holds, before anything is
    /// changed.
    pub(crate) fn open_held(
        slots: TwoSlots,
        path: &Path,
        sources: Vec<Arc<dyn RootSource>>,
        accepts_rollback: bool,
    ) -> Result<(Self, Repair), KeysError> {
        let copies = Copies::find(slots, path)?;
        let keystore = Self::from_copies(copies, sources, true)?;
        let outside = keystore.outside()?;
        let rollback = keystore.older_than(&outside);
        if let Some(rollback) = rollback.clone().filter(|_| !accepts_rollback) {
            return Err(KeysError::RolledBack { rollback });
        }
        keystore.note_absence(&outside);
        let (keystore, repair) = Self::settle_opened(keystore)?;
        keystore.state().accepted = rollback;
        Ok((keystore, repair))
    }

    /// What this keystore holds of the things below it.
    pub fn held(&self) -> Held {
        self.state().contents.held
    }

    /// Of which generation all keys, levels and buckets are that there are: later ones hold other
    /// counts of what is below, and nothing else. The newest, as long as none was changed since it
    /// was opened.
    pub fn keys_generation(&self) -> u64 {
        self.state().keys_generation
    }

    /// Holds these versions in place of the ones before. Durable in both copies when this returns.
    /// Whether the source holds the keystore is noted by itself.
    ///
    /// # Errors
    ///
    /// When the keystore can't be written.
    pub fn hold(&self, held: Held) -> Result<(), KeysError> {
        let mut state = self.settled()?;
        let is_outside = state.is_held_outside;
        let keys_generation = state.keys_generation;
        let (mut contents, root) = (state.contents.clone(), state.root.clone());
        contents.held = Held { is_outside, ..held };
        state.put(contents, root)?;
        state.keys_generation = keys_generation;
        state.settle()
    }

    /// How the source of the root key holds the keystore's generation.
    pub fn keeping(&self) -> Keeping {
        self.source().keeping()
    }

    /// Has the source of the root key hold the keystore's generation, where it can.
    ///
    /// # Errors
    ///
    /// When the source can't be written. The keystore goes on as it is.
    pub fn hold_outside(&self) -> Result<(), KeysError> {
        let mut state = self.state();
        if state.source.keeping() == Keeping::Nowhere {
            return Ok(());
        }
        let generation = HeldGeneration {
            generation: state.copies.newest().generation(),
            held_ms: now_ms(),
        };
        state.source.hold_outside(self.id(), generation)?;
        state.is_held_outside = state.source.keeping() != Keeping::InMemory;
        Ok(())
    }

    /// By how much this keystore is older than its source holds, if it is.
    ///
    /// # Errors
    ///
    /// When the source can't be read.
    pub fn rollback(&self) -> Result<Option<KeystoreRollback>, KeysError> {
        Ok(self.older_than(&self.outside()?))
    }

    /// The older copy that was accepted when this keystore was opened.
    pub fn accepted(&self) -> Option<KeystoreRollback> {
        self.state().accepted.clone()
    }

    /// Goes on from the older copy that was accepted when this was opened, if one was: as a
    /// generation that neither it nor what was put aside has had. Before that, what follows from
    /// an older one must be noted: afterwards none finds it older.
    ///
    /// # Errors
    ///
    /// When the keystore can't be written.
    pub fn go_on_from_older(&self) -> Result<(), KeysError> {
        let mut state = self.settled()?;
        let Some(rollback) = state.accepted.clone() else {
            return Ok(());
        };
        let generation = rollback.held.generation.saturating_add(ROLLBACK_STEP);
        if state.copies.newest().generation() >= generation {
            return Ok(());
        }
        tracing::warn!(
            found = rollback.found,
            held = rollback.held.generation,
            "ROLLBACK ACCEPTED: an older copy of the keystore is gone on from"
        );
        let (contents, root) = (state.contents.clone(), state.root.clone());
        state.put_as(generation, contents, root)?;
        state.settle()
    }

    fn outside(&self) -> Result<Outside, KeysError> {
        self.source().outside(self.id())
    }

    fn older_than(&self, outside: &Outside) -> Option<KeystoreRollback> {
        let Outside::Held(held) = *outside else {
            return None;
        };
        let found = self.generation();
        (found < held.generation).then(|| KeystoreRollback {
            found,
            held,
            place: self.source().describe(),
        })
    }

    /// Remembers whether the source holds the keystore. One that does no more may be another one:
    /// that is told, for it can't be judged by it. A keyring forgets with every reboot.
    fn note_absence(&self, outside: &Outside) {
        let mut state = self.state();
        let is_held = matches!(outside, Outside::Held(_));
        if !is_held && state.contents.held.is_outside {
            tracing::warn!(
                source = state.source.describe(),
                "the source of the root key held how new the keystore is, and does no more: \
                 unless it was replaced or restored on purpose, find out why"
            );
        }
        state.is_held_outside = is_held && state.source.keeping() != Keeping::InMemory;
    }
}

#[cfg(test)]
mod tests;
