//! What keeps versions from being deleted, as rows.

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_u64;
use crate::catalog::versions::find::{lock_of, table_of, why_absent};
use crate::catalog::versions::place::update_row;
use crate::error::Result;
use crate::lock::{ChangedLock, Lock, LockChange, LockTest, Locked, StandingLocks};
use crate::record::ObjectName;
use crate::version::{Absent, Which};

impl Catalog {
    /// Changes what keeps a version from being deleted.
    ///
    /// # Errors
    /// [`StoreError::Locked`](crate::StoreError::Locked) when what keeps it now does not allow
    /// that; that there is no such version is the inner result.
    pub async fn change_lock(
        &self,
        name: &ObjectName,
        which: Which,
        change: LockChange,
        test: LockTest,
    ) -> Result<Result<ChangedLock, Absent>> {
        let name = name.clone();
        self.write(move |session| {
            let table = match table_of(session, &name, which)? {
                Ok(table) => table,
                Err(absent) => return Ok(Err(absent)),
            };
            let Some(lock) = lock_of(session, &name, table)? else {
                return why_absent(session, &name).map(Err);
            };
            let (bits, until_ms) = lock.changed(change, test)?.to_columns();
            let columns = "lock = ?2, retain_until_ms = ?3";
            let updated = update_row(session, &name, which, columns, &[&bits, &until_ms])?;
            let overridden = lock.overridden_by(change, test);
            let changed = |version| ChangedLock {
                version,
                overridden,
            };
            Ok(updated.map(changed))
        })
        .await
    }

    /// What keeps versions of the bucket from being deleted. Only those that have a lock are walked
    /// over.
    pub async fn locked(&self) -> Result<Locked> {
        self.locked_at(0).await.map(|(locked, _)| locked)
    }

    /// The same, and which locks stand by this time, in milliseconds since 1970.
    pub async fn locked_at(&self, now_ms: i64) -> Result<(Locked, StandingLocks)> {
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT lock, count(*), max(retain_until_ms), ifnull(sum(retain_until_ms > ?1), 0)
                 FROM object WHERE lock IS NOT NULL GROUP BY lock
                 UNION ALL
                 SELECT lock, count(*), max(retain_until_ms), ifnull(sum(retain_until_ms > ?1), 0)
                 FROM version WHERE lock IS NOT NULL GROUP BY lock",
            )?;
            let mut rows = statement.query([now_ms])?;
            let (mut locked, mut standing) = (Locked::default(), StandingLocks::default());
            while let Some(row) = rows.next()? {
                let lock = Lock::of_columns(row.get(0)?, row.get(2)?)?;
                if lock.is_none() {
                    continue; // its hold is off
                }
                let count = decode_u64(row.get(1)?)?;
                locked.add(count, lock);
                standing.add(count, lock, decode_u64(row.get(3)?)?);
            }
            Ok((locked, standing))
        })
        .await
    }
}
