//! Folders of the source that may only seem to be emptied: those with nothing in them, as the place
//! of a mount whose disk is away, and those of another file system once that are none any more.
//! What came from below them is deleted only where that was said.

use crate::migrate::Migration;
use crate::migrate::error::MigrateError;
use crate::migrate::names::{Folder, Hidden};
use crate::migrate::place::Place;
use crate::migrate::plan::Both;

/// Of what came, that is not listed: what is not known to be gone.
#[derive(Default)]
pub(super) struct Doubts {
    /// Below what can't be read, or is passed over.
    pub(super) hidden: Hidden,
    /// Below folders that seem to be emptied.
    emptied: Hidden,
    /// Of those, the last one that was told.
    told: Option<String>,
}

impl Migration {
    /// Mounts that were there in earlier runs are not, until they are found.
    ///
    /// # Errors
    /// When it can't be noted that they may be gone, as was said.
    pub(super) fn doubts(&self, place: &Place) -> Result<Doubts, MigrateError> {
        let mut doubts = Doubts::default();
        if self.options.delete_all {
            place.ledger.forget_mounts()?;
        }
        if self.asks_of_emptied() {
            let mounts = place.ledger.mounts().into_iter();
            mounts.for_each(|name| doubts.emptied.add(name));
        }
        Ok(doubts)
    }

    /// Whether folders that seem to be emptied keep what came from them.
    pub(super) fn asks_of_emptied(&self) -> bool {
        self.options.delete && !self.options.delete_all
    }

    /// Takes a folder of the source into account.
    ///
    /// # Errors
    /// When it can't be noted.
    pub(super) fn folder(
        &self,
        place: &Place,
        folder: Folder,
        doubts: &mut Doubts,
    ) -> Result<(), MigrateError> {
        if folder.is_mount {
            doubts.emptied.remove(&folder.key);
            place.ledger.mount(&folder.key)?;
        }
        if folder.is_empty && self.asks_of_emptied() {
            doubts.emptied.add(folder.key);
        }
        Ok(())
    }

    /// Whether what came of a name that is not listed stays, as all from that folder, which is told
    /// once.
    pub(super) fn stays(&self, place: &Place, both: &Both, doubts: &mut Doubts) -> bool {
        let emptied = doubts.emptied.over(&both.key);
        let Some(folder) = emptied.filter(|_| both.from.is_empty() && !both.is_hidden) else {
            return false;
        };
        let mut there = both.there.iter();
        if !there.any(|there| place.ledger.is_ours(&both.key, there)) {
            return false;
        }
        if doubts.told.as_deref() != Some(folder) {
            doubts.told = Some(folder.to_owned());
            let root = place.folder.clone().unwrap_or_default();
            place.count(|tally| tally.missing += 1);
            let what = root.join(folder).display().to_string();
            self.missing(&what, &MigrateError::EmptiedFolder);
        }
        true
    }
}
