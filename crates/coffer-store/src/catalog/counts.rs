//! What a catalog counts: what it holds, and its commits.

use rusqlite::{Connection, OptionalExtension};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_u64;
use crate::error::{Result, StoreError};

/// How much a bucket holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects. Parts of uploads under way are none yet.
    pub objects: u64,
    /// Bytes that those have together.
    pub bytes: u64,
}

impl Catalog {
    /// How much the bucket holds, as its last commit left it. Nothing is walked over for it.
    pub async fn totals(&self) -> Result<Totals> {
        self.point(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT (SELECT value FROM meta WHERE name = 'object_count'),
                        (SELECT value FROM meta WHERE name = 'object_bytes')",
            )?;
            let (objects, bytes): (i64, i64) =
                statement.query_row((), |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(Totals {
                objects: decode_u64(objects)?,
                bytes: decode_u64(bytes)?,
            })
        })
        .await
    }

    /// How many transactions that changed something have been committed. It only ever rises, so of
    /// two states of one catalog the one with the higher count is the newer. 0 in a catalog of
    /// format 1 that is opened for reading only.
    pub async fn commit_count(&self) -> Result<u64> {
        self.point(commit_count_of).await
    }

    /// Raises the count of commits to this at least: of an older state that is gone on from, so
    /// that it is not taken for an older one again.
    ///
    /// # Errors
    /// As any write.
    pub async fn raise_commit_count(&self, count: u64) -> Result<()> {
        let count = i64::try_from(count).map_err(|_| StoreError::damaged_catalog())?;
        self.write(move |session| {
            session.execute(
                "UPDATE meta SET value = max(value, ?) WHERE name = 'commit_count'",
                [count],
            )?;
            Ok(())
        })
        .await
    }
}

/// As [`Catalog::commit_count`], of a catalog whose database the caller has opened.
///
/// # Errors
/// When it can't be read.
pub fn commit_count_of(connection: &Connection) -> Result<u64> {
    let sql = "SELECT value FROM meta WHERE name = 'commit_count'";
    let mut statement = connection.prepare_cached(sql)?;
    let count: Option<i64> = statement.query_row((), |row| row.get(0)).optional()?;
    decode_u64(count.unwrap_or(0))
}
