//! What the destruction of older keys waits for: copies that a keystore goes along with.
//!
//! A copy has one keystore, the newest. Were it to come without keys that the catalogs of the
//! newest head need, and nothing after it, what they wrapped would be lost with the server.

use coffer_seal::BucketId;

use super::registry::Entry;
use super::{Copies, Running};
use crate::error::{CopyError, Result};

impl Copies {
    /// Those that a keystore goes along with and that lack any of these catalogs as they were with
    /// so many commits.
    ///
    /// # Errors
    /// [`CopyError::Registry`] where it is not known which copies there are.
    pub(crate) fn without_catalogs(&self, wanted: &[(BucketId, u64)]) -> Result<Vec<String>> {
        self.carrying(|_, running| {
            let wanted = wanted.iter().copied();
            running.is_some_and(|running| running.progress.has_catalogs(wanted))
        })
    }

    /// Those that a keystore goes along with and that have not taken this generation of it.
    ///
    /// # Errors
    /// As [`Copies::without_catalogs`].
    pub(crate) fn without_keystore(&self, generation: u64) -> Result<Vec<String>> {
        self.carrying(|entry, _| {
            let with = entry.keystore.as_ref();
            with.is_some_and(|with| with.has_taken(generation))
        })
    }

    /// Those of them that this is not true of.
    fn carrying(&self, is_done: impl Fn(&Entry, Option<&Running>) -> bool) -> Result<Vec<String>> {
        if !self.is_readable {
            return Err(CopyError::Registry.into());
        }
        let mut entries = self.registry.current();
        entries.retain(|entry| entry.keystore.is_some());
        let running = self.running.lock();
        let behind = entries
            .into_iter()
            .filter(|entry| !is_done(entry, running.get(&entry.name)));
        Ok(behind.map(|entry| entry.name).collect())
    }
}
