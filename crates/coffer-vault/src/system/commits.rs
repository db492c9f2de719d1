//! How many commits the database has had, so that an older copy of it is told from a newer one.

use coffer_store::StoreError;
use rusqlite::{Connection, Transaction};

use super::{Held, System};
use crate::error::{Result, VaultError};

impl System {
    /// How many commits it has had: only ever more. 0 in one of format 1 that is only read, and one
    /// more than there were in one that another program has written over.
    ///
    /// # Errors
    /// While a commit is in doubt; when it can't be read.
    pub(crate) fn commit_count(&self) -> Result<u64> {
        self.held().commit_count()
    }

    /// How many it had had when anything was changed last by which requests are answered: since
    /// then the audit log's anchor may have moved, as it does each second while anything is
    /// recorded.
    ///
    /// # Errors
    /// As [`System::commit_count`]; where commits can't be counted.
    pub(crate) fn shown_commit_count(&self) -> Result<u64> {
        let mut held = self.held();
        let count = held.commit_count()?;
        if !held.link.counts() {
            return Err(VaultError::SystemInDoubt);
        }
        let anchored = *self.anchored.lock();
        let shown = anchored.filter(|(_, to)| *to == count);
        Ok(shown.map_or(count, |(from, _)| from))
    }
}

/// Raises the count to this at least, beside what else is changed. The link remembers another
/// number then, and is to forget it.
pub(super) fn raise_count(transaction: &Transaction<'_>, count: u64) -> Result<()> {
    let count = i64::try_from(count).map_err(|_| VaultError::Damaged)?;
    let sql = "UPDATE commits SET number = max(number, ?)";
    let raised = transaction.execute(sql, [count]);
    raised.map_err(StoreError::from)?;
    Ok(())
}

impl Held<'_> {
    fn commit_count(&mut self) -> Result<u64> {
        let read = |connection: &Connection| -> rusqlite::Result<i64> {
            if connection.table_exists(Some("main"), "commits")? {
                connection.query_row("SELECT number FROM commits", (), |row| row.get(0))
            } else {
                Ok(0)
            }
        };
        let count = self.read(|connection| Ok(read(connection).map_err(StoreError::from)?));
        if let Some(beyond) = self.link.beyond_written_over() {
            return Ok(beyond);
        }
        u64::try_from(count?).map_err(|_| VaultError::Damaged)
    }

    /// Does what moves the audit log's anchor, in one commit.
    pub(super) fn anchoring(
        &mut self,
        move_anchor: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let before = self.commit_count();
        move_anchor(self)?;
        if let Ok(before) = before {
            let mut anchored = self.system.anchored.lock();
            let from = anchored.filter(|(_, to)| *to == before);
            let from = from.map_or(before, |(from, _)| from);
            *anchored = Some((from, before + 1));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use coffer_audit::{Hash, Recorded};
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
        let mut held = system.held();
        held.change(|transaction| raise_count(transaction, 1_000))
            .unwrap();
        held.link.forget_number();
        drop(held);
        assert_eq!(system.commit_count().unwrap(), 1_001);
        system.fail_next_commit(true, true);
        system.forget_doomed(BucketId([1; 16])).unwrap();
        assert_eq!(system.commit_count().unwrap(), 1_002, "it stands");
        assert_eq!(system.shown_commit_count().unwrap(), 1_002);
        drop(system);
        let system = System::open_read_only(&path, &key).unwrap();
        assert_eq!(system.commit_count().unwrap(), 1_002);
    }

    #[test]
    fn that_the_audit_logs_anchor_moved_shows_to_none_who_asks() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("system.db"), SecretKey::generate());
        let system = System::open(&path, &key).unwrap();
        let move_to = |sequence| {
            let hash = Hash([7; 32]);
            system.set_audit_anchor(&Recorded { sequence, hash })
        };
        let counts = || {
            let shown = system.shown_commit_count().unwrap();
            (shown, system.commit_count().unwrap())
        };
        system.doom(BucketId([1; 16])).unwrap();
        assert_eq!(counts(), (1, 1));
        move_to(1).unwrap();
        move_to(2).unwrap();
        assert_eq!(counts(), (1, 3));
        system.doom(BucketId([2; 16])).unwrap();
        assert_eq!(counts(), (4, 4));
        move_to(3).unwrap();
        assert_eq!(counts(), (4, 5));
        // In doubt, it may be anything.
        system.fail_next_commit(true, true);
        move_to(4).unwrap();
        system.fail_next_commit(false, true);
        assert!(move_to(5).is_err());
        assert_eq!(counts().1, 6);
        system.doom(BucketId([3; 16])).unwrap();
        assert_eq!(counts(), (7, 7));
    }
}
