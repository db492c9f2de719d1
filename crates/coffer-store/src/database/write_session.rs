//! The connection that writes: transactions, the write-ahead log, and ids.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use coffer_durable::check_own_folder;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use crate::admission::Change;
use crate::database::cipher;
use crate::database::gaps::ZeroizedGaps;
use crate::database::own_files::OwnFiles;
use crate::database::page_tap::Tapped;
use crate::database::sealed::Database;
use crate::error::{Result, StoreError};
use crate::limits::{
    BUSY_TIMEOUT_MS, CHECKPOINT_FORCED_PAGES, CHECKPOINT_PAGES, FREE_PAGES_MIN, PAGE_BYTES,
    TIDY_BUSY_MS,
};

/// What a write works with: the connection, within a transaction, and the next free id.
pub(crate) struct Session {
    connection: Connection,
    /// Told after each write.
    own_files: Arc<OwnFiles>,
    /// Told before the log is copied.
    tapped: Arc<Tapped>,
    /// The page of the database that counts its commits.
    count_page: u32,
    next_object_id: Cell<Option<i64>>,
    /// How much of the log is not known to be in the database, in pages.
    log_pages: Cell<u32>,
    /// How long the log must be for the next attempt to copy it, in pages.
    checkpoint_at: Cell<u32>,
    /// By how much the transaction under way changes the count of objects, and of their bytes.
    counted: Cell<(i64, i64)>,
    /// The same of uploads under way, which are not counted in the database, and of their bytes.
    counted_uploads: Cell<(i64, i64)>,
    /// How many transactions have been committed, once that was needed.
    commit_count: Cell<Option<u64>>,
    /// Whether something was removed whose old pages may still be in the log.
    has_removed: Cell<bool>,
}

const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

thread_local! {
    /// How long the log was after the last commit on this thread that wrote to it, in pages.
    static LOG_PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Session {
    /// Takes a connection that may write.
    pub(crate) fn new(
        connection: Connection,
        own_files: Arc<OwnFiles>,
        tapped: Arc<Tapped>,
    ) -> Result<Self> {
        connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
        connection.wal_hook(Some(|_, pages| {
            LOG_PAGES.set(u32::try_from(pages).ok());
            Ok(())
        }));
        let count_page = "SELECT rootpage FROM sqlite_schema WHERE name = 'meta'";
        let count_page = connection.query_row(count_page, (), |row| row.get(0))?;
        own_files.note(count_page, 0);
        tapped.reopened();
        Ok(Self {
            connection,
            own_files,
            tapped,
            count_page,
            next_object_id: Cell::new(None),
            log_pages: Cell::new(0),
            checkpoint_at: Cell::new(CHECKPOINT_PAGES),
            counted: Cell::new((0, 0)),
            counted_uploads: Cell::new((0, 0)),
            commit_count: Cell::new(None),
            has_removed: Cell::new(false),
        })
    }

    /// Counts what the transaction under way adds to the objects and their bytes.
    pub(crate) fn count(&self, objects: i64, bytes: i64) {
        let (all, all_bytes) = self.counted.get();
        self.counted.set((all + objects, all_bytes + bytes));
    }

    /// Counts what it adds to the uploads under way and the bytes of their parts.
    pub(crate) fn count_uploads(&self, uploads: i64, bytes: i64) {
        let (all, all_bytes) = self.counted_uploads.get();
        self.counted_uploads.set((all + uploads, all_bytes + bytes));
    }

    /// What the transaction under way has added so far.
    pub(crate) fn change(&self) -> Change {
        let ((objects, bytes), (uploads, part_bytes)) =
            (self.counted.get(), self.counted_uploads.get());
        Change {
            objects,
            bytes: bytes + part_bytes,
            uploads,
        }
    }

    /// Remembers that something was removed which must not stay in the log for long.
    pub(crate) fn note_removed(&self) {
        self.has_removed.set(true);
    }

    /// Whether something was removed since the log was last emptied.
    pub(crate) fn has_removed(&self) -> bool {
        self.has_removed.get()
    }

    /// Copies all of the log and empties it, so that no page in it shows what was removed. Whether
    /// it could: readers that don't end soon prevent it.
    pub(crate) fn tidy(&self) -> bool {
        let wait = |ms| self.busy_timeout(Duration::from_millis(ms));
        // Writers wait meanwhile, so not for long.
        let is_done = wait(TIDY_BUSY_MS).is_ok() && self.checkpoint(TRUNCATE);
        let _ = wait(BUSY_TIMEOUT_MS);
        if is_done {
            self.has_removed.set(false);
        }
        is_done
    }

    /// An id that no object has yet. Ids rise, so that new rows go to the end of their tables; one
    /// whose write is undone is skipped.
    pub(crate) fn next_object_id(&self) -> Result<i64> {
        let id = match self.next_object_id.get() {
            Some(id) => id,
            None => self.query_row(
                // Delete markers have numbers, too, and no content.
                "SELECT 1 + max(ifnull((SELECT max(object_id) FROM inline), 0),
                                ifnull((SELECT max(object_id) FROM blob), 0),
                                ifnull((SELECT max(id) FROM version), 0))",
                (),
                |row| row.get(0),
            )?,
        };
        self.next_object_id.set(Some(id + 1));
        Ok(id)
    }

    /// Does `work` in one transaction and makes it durable; or nothing at all; or, as
    /// [`StoreError::InDoubt`] says, one of both.
    ///
    /// SQLCipher gives zeros for a page whose seal does not verify and remembers the error: a
    /// transaction that has met one ends before it is committed.
    pub(crate) fn transact(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.counted.set((0, 0));
        self.counted_uploads.set((0, 0));
        let before = LOG_PAGES.take();
        let (changes, opened) = (self.total_changes(), cipher::pages_opened(self));
        let done = self.step("BEGIN IMMEDIATE");
        let _gaps = ZeroizedGaps::of(self);
        let done = done.and_then(|()| work());
        let done = done.and_then(|()| {
            if self.total_changes() == changes {
                Ok(())
            } else {
                self.write_counts()
            }
        });
        let done = done.and_then(|()| {
            if cipher::pages_opened(self) == opened {
                Ok(())
            } else {
                Database::assure(self)
            }
        });
        let done = done.and_then(|()| self.commit());
        let has_counted = done.is_ok() && self.total_changes() != changes;
        let count = self.commit_count.take();
        let count = count.map(|count| count + u64::from(has_counted));
        self.commit_count.set(count.filter(|_| done.is_ok()));
        if done.is_err() && !self.is_autocommit() {
            // Fails only when SQLite has rolled back by itself.
            let _ = self.execute_batch("ROLLBACK");
        }
        // Also after a failure: it may have written all the same.
        let pages = LOG_PAGES.get();
        LOG_PAGES.set(pages.or(before));
        self.own_files.note(self.count_page, pages.unwrap_or(0));
        done
    }

    /// How many transactions that changed something have been committed.
    pub(crate) fn commit_count(&self) -> Result<u64> {
        let count = match self.commit_count.get() {
            Some(count) => count,
            None => {
                let sql = "SELECT value FROM meta WHERE name = 'commit_count'";
                let count: i64 = self.prepare_cached(sql)?.query_row((), |row| row.get(0))?;
                u64::try_from(count).map_err(|_| StoreError::damaged_catalog())?
            }
        };
        self.commit_count.set(Some(count));
        Ok(count)
    }

    /// Counts the transaction, and keeps the catalog's other counts in step with its rows, in the
    /// same transaction: so how much it holds is known without a walk over the catalog.
    fn write_counts(&self) -> Result<()> {
        let done = match self.counted.get() {
            (0, 0) => self
                .prepare_cached("UPDATE meta SET value = value + 1 WHERE name = 'commit_count'")
                .and_then(|mut statement| Ok(statement.execute(())? == 1)),
            (objects, bytes) => self
                .prepare_cached(
                    "UPDATE meta SET value = value + CASE name WHEN 'commit_count' THEN 1
                         WHEN 'object_count' THEN ?1 ELSE ?2 END
                     WHERE name IN ('commit_count', 'object_count', 'object_bytes')",
                )
                .and_then(|mut statement| Ok(statement.execute([objects, bytes])? == 3)),
        };
        if done.map_err(|error| self.of_system(error.into()))? {
            Ok(())
        } else {
            Err(StoreError::damaged_catalog())
        }
    }

    fn commit(&self) -> Result<()> {
        let done = self
            .prepare_cached("COMMIT")
            .and_then(|mut statement| statement.execute(()));
        let Err(error) = done.map_err(StoreError::from) else {
            return Ok(());
        };
        if let Some(refused) = Database::refused_commit(self, &error) {
            return Err(refused);
        }
        tracing::error!(%error, "a commit failed half-way: its writes are in doubt");
        Err(StoreError::InDoubt)
    }

    fn step(&self, sql: &str) -> Result<()> {
        let done = self
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(()));
        done.map(drop).map_err(|error| self.of_system(error.into()))
    }

    /// A full disk does not always come as SQLite's own "full": a quota or the shared-memory file
    /// say so through the system's error only. For errors before the commit: after it began, "full"
    /// would promise that nothing was stored.
    pub(crate) fn of_system(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Database { .. } => cipher::refused_by_disk(self).unwrap_or(error),
            other => other,
        }
    }

    /// Whether deletions have left room for new rows in the database itself.
    pub(crate) fn has_free_pages(&self) -> bool {
        let count = self
            .prepare_cached("PRAGMA freelist_count")
            .and_then(|mut statement| statement.query_row((), |row| row.get::<_, u32>(0)));
        count.is_ok_and(|count| count >= FREE_PAGES_MIN)
    }

    /// How much of the log is not known to be in the database, in bytes.
    pub(crate) fn log_bytes(&self) -> u64 {
        u64::from(self.log_pages.get()) * u64::from(PAGE_BYTES)
    }

    /// Copies the log into the database when it has grown.
    pub(crate) fn checkpoint_when_due(&self) {
        let Some(pages) = LOG_PAGES.take() else {
            return;
        };
        self.log_pages.set(pages);
        if pages < self.checkpoint_at.get() {
            return;
        }
        let is_done = if pages >= CHECKPOINT_FORCED_PAGES {
            // Waits for the readers there are. Those that begin meanwhile find all pages in the
            // database and don't hold the log.
            self.checkpoint("PRAGMA wal_checkpoint(RESTART)")
        } else {
            self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)")
        };
        // A log that readers hold is not tried again after every commit.
        let next = if is_done {
            CHECKPOINT_PAGES
        } else {
            pages + CHECKPOINT_PAGES / 4
        };
        self.checkpoint_at.set(next);
    }

    /// Copies what can be copied, for the log can then begin anew in space that it has already.
    pub(crate) fn make_space(&self) {
        self.checkpoint("PRAGMA wal_checkpoint(PASSIVE)");
    }

    /// Copies all of the log and empties it, before the connection is closed. Where another data
    /// folder has the name, the log of what is there would be removed by that.
    pub(crate) fn finish(self) {
        if check_own_folder(self.own_files.path()).is_err() {
            return self.abandon();
        }
        if self.checkpoint(TRUNCATE) {
            self.tapped.closed_whole();
        }
    }

    /// Lets go of the connection without copying the log.
    pub(crate) fn abandon(self) {
        // It only saves time: should it fail, closing copies the log.
        let no_copy = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        let _ = self.set_db_config(no_copy, true);
    }

    /// Whether the log was copied to its end, so that it can begin anew.
    fn checkpoint(&self, sql: &str) -> bool {
        self.tapped.note();
        let done = self.prepare_cached(sql).and_then(|mut statement| {
            statement.query_row((), |row| {
                let (is_busy, log_pages, copied_pages): (bool, i64, i64) = row.try_into()?;
                Ok(!is_busy && log_pages == copied_pages)
            })
        });
        let is_done = done.unwrap_or_else(|error| {
            // The commits stand in the log, and it is tried again.
            tracing::warn!(%error, "a catalog's log could not be copied");
            false
        });
        if is_done {
            self.log_pages.set(0);
        }
        self.own_files.note(self.count_page, 0);
        is_done
    }
}

impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}
