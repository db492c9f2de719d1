//! What a catalog counts: what it holds, and its commits.

use rusqlite::{Connection, OptionalExtension};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_u64;
use crate::database::connections::Connections;
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

    /// Looks whether its file is still the one that was opened, and, where it was written since
    /// this was last asked, how many commits it has for who opens it anew: fewer than it had, where
    /// an older one was written over it.
    ///
    /// # Errors
    /// [`StoreError::Replaced`]; as any read.
    pub async fn look_at_file(&self) -> Result<Option<u64>> {
        if let Ok(writer) = self.writer() {
            writer.look_at_files().await?;
        }
        let look = |connections: &Connections| {
            connections.assure_own_file()?;
            if !connections.was_written() {
                return Ok(None);
            }
            commit_count_of(&connections.open_read_only()?).map(Some)
        };
        self.past(look).await
    }

    /// The newest commit, also where its file is another one by now; one more, where another
    /// program has written over it. 0 of a catalog that was opened for reading only.
    pub fn last_commit(&self) -> u64 {
        self.connections().last_commit()
    }

    /// Whether a commit is under way, or in doubt for now: one that readers see already may not be
    /// in [`last_commit`](Self::last_commit). To be asked before that.
    pub fn is_committing(&self) -> bool {
        self.connections().is_committing()
    }

    /// Has nothing more read or written: its file was found to be an older one.
    pub fn refuse_older(&self) {
        self.connections()
            .replaced("it has fewer commits than it had");
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
