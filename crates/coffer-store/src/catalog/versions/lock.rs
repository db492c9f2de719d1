//! What keeps versions from being deleted, as rows.

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_u64;
use crate::catalog::versions::find::{lock_of, table_of, why_absent};
use crate::catalog::versions::place::update_row;
use crate::error::Result;
use crate::lock::{Lock, LockChange, LockTest, Locked};
use crate::record::ObjectName;
use crate::version::{Absent, VersionId, Which};

impl Catalog {
    /// Changes what keeps a version from being deleted. Tells what the version is called.
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
    ) -> Result<Result<VersionId, Absent>> {
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
            update_row(session, &name, which, columns, &[&bits, &until_ms])
        })
        .await
    }

    /// What keeps versions of the bucket from being deleted. Only those that have a lock are walked
    /// over.
    pub async fn locked(&self) -> Result<Locked> {
        self.long(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT lock, count(*), max(retain_until_ms) FROM object
                 WHERE lock IS NOT NULL GROUP BY lock
                 UNION ALL SELECT lock, count(*), max(retain_until_ms) FROM version
                 WHERE lock IS NOT NULL GROUP BY lock",
            )?;
            let mut rows = statement.query(())?;
            let mut locked = Locked::default();
            while let Some(row) = rows.next()? {
                let lock = Lock::of_columns(row.get(0)?, row.get(2)?)?;
                locked.add(decode_u64(row.get(1)?)?, lock);
            }
            Ok(locked)
        })
        .await
    }
}
