//! How many commits the database has had, so that an older copy of it is told from a newer one.

use coffer_store::StoreError;
use rusqlite::Connection;

use super::System;
use crate::error::{Result, VaultError};

impl System {
    /// How many commits it has had: only ever more. 0 in one of format 1 that is only read, and one
    /// more than there were in one that another program has written over.
    ///
    /// # Errors
    /// While a commit is in doubt; when it can't be read.
    pub(crate) fn commit_count(&self) -> Result<u64> {
        let read = |connection: &Connection| -> rusqlite::Result<i64> {
            if connection.table_exists(Some("main"), "commits")? {
                connection.query_row("SELECT number FROM commits", (), |row| row.get(0))
            } else {
                Ok(0)
            }
        };
        let mut held = self.held();
        let count = held.read(|connection| Ok(read(connection).map_err(StoreError::from)?));
        if let Some(beyond) = held.link.beyond_written_over() {
            return Ok(beyond);
        }
        let count = count?;
        u64::try_from(count).map_err(|_| VaultError::Damaged)
    }

    /// Raises the count to this at least.
    pub(crate) fn raise_commit_count(&self, count: u64) -> Result<()> {
        let count = i64::try_from(count).map_err(|_| VaultError::Damaged)?;
        let mut held = self.held();
        held.change(|transaction| {
            let sql = "UPDATE commits SET number = max(number, ?)";
            transaction
                .execute(sql, [count])
                .map_err(StoreError::from)?;
            Ok(())
        })?;
        // It counted one.
        held.link.forget_number();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use coffer_seal::{BucketId, SecretKey};

    use super::*;

    #[test]
    fn every_commit_is_counted_and_a_raised_count_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("system.db"), SecretKey::generate());
        let system = System::open(&path, &key).unwrap();
        assert_eq!(system.commit_count().unwrap(), 0);
        system.doom(BucketId([1; 16])).unwrap();
        assert_eq!(system.commit_count().unwrap(), 1);
        system.raise_commit_count(1_000).unwrap();
        assert_eq!(system.commit_count().unwrap(), 1_001);
        system.fail_next_commit(true, true);
        system.forget_doomed(BucketId([1; 16])).unwrap();
        assert_eq!(system.commit_count().unwrap(), 1_002, "it stands");
        drop(system);
        let system = System::open_read_only(&path, &key).unwrap();
        assert_eq!(system.commit_count().unwrap(), 1_002);
    }
}
