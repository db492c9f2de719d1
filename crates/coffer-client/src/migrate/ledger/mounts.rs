//! Folders of the source that were of other file systems than those around them.

use super::Ledger;
use super::lines::Line;
use crate::migrate::error::MigrateError;

impl Ledger {
    /// Notes one.
    pub(in crate::migrate) fn mount(&self, folder: &str) -> Result<(), MigrateError> {
        if self.known.lock().mounts.contains(folder) {
            return Ok(());
        }
        self.note(Line::Mount {
            folder: folder.to_owned(),
        })
    }

    /// Notes that all of them may be gone.
    pub(in crate::migrate) fn forget_mounts(&self) -> Result<(), MigrateError> {
        if self.known.lock().mounts.is_empty() {
            return Ok(());
        }
        self.note(Line::NoMounts)
    }

    /// All of them.
    pub(in crate::migrate) fn mounts(&self) -> Vec<String> {
        self.known.lock().mounts.iter().cloned().collect()
    }
}
