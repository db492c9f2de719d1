//! A copy of `system.db` while it is in use.

use std::path::Path;

use coffer_store::{StoreError, copy_file};

use super::System;
use crate::error::{Result, VaultError};

impl System {
    /// Copies the database, which is the file `from`, and gives the number of commits that the copy
    /// has had. No request reads or changes anything meanwhile; it is small.
    pub(crate) fn copy_into(&self, from: &Path, to: &Path) -> Result<u64> {
        let mut held = self.held();
        held.read(|connection| {
            let row = |sql| connection.query_row(sql, (), |row| row.get::<_, i64>(0));
            // All is in the one file then. Its locks are lost with the copy: nothing else may have
            // it, for the folder is locked.
            let is_busy = row("PRAGMA wal_checkpoint(TRUNCATE)").map_err(StoreError::from)?;
            if is_busy != 0 {
                return Err(VaultError::SystemInDoubt);
            }
            let number = row("SELECT number FROM commits").map_err(StoreError::from)?;
            copy_file(from, to, &|| false)?;
            u64::try_from(number).map_err(|_| VaultError::Damaged)
        })
    }
}
