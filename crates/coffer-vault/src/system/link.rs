//! The connection to `system.db`, and whether it is certain what that holds.
//!
//! A commit that failed may stand all the same: its frames may be in the log although they could
//! not be synced, and the next that opens the database finds them. So a failed commit is *in
//! doubt*, unless the disk did not take its frames, for it is full or read-only: then certainly
//! nothing happened. Of one in doubt the connection is dropped, the log made durable as it is, and
//! the database opened anew: then the number of its commits tells whether the change happened.
//! Until that succeeds nothing is read or changed, and what the change was about is not used.
//!
//! A page whose seal does not verify spoils the connection, not the database: it is opened anew,
//! and whatever does not need that page works.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use coffer_seal::SecretKey;
use coffer_store::{Database, StoreError, ZeroizedGaps};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::files::Files;
use super::{DATABASE, System};
use crate::error::{AdministrationError, Result, VaultError};

mod files;
mod own_folder;

/// Told, once, whether a change has happened.
pub(super) type OnSettled = Box<dyn FnOnce(&System, bool) + Send>;

/// A change whose commit failed.
struct Doubt {
    /// The number of the commit, had it happened.
    number: i64,
    outcome: OnSettled,
}

/// What a database is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Change,
    /// It stays as it is, in whatever format it has.
    Look,
}

/// The connection, and what is known of it.
pub(super) struct Link {
    pub(super) path: PathBuf,
    key: SecretKey,
    access: Access,
    /// None when it was dropped: the next who needs it opens it.
    connection: Option<Connection>,
    /// How many commits there were; none where that can't be read.
    number: Option<i64>,
    /// The most commits that were ever seen: with fewer, an older copy was put back.
    highest: i64,
    doubt: Option<Doubt>,
    files: Files,
    /// What another program did to them, since that was found.
    written_over: Option<&'static str>,
    /// Whether the log was taken over, and no commit to it has failed since.
    is_log_durable: bool,
    #[cfg(test)]
    faults: Faults,
}

/// What a test has go wrong.
#[cfg(test)]
#[derive(Default)]
struct Faults {
    /// The next commit fails. Whether it stands all the same.
    commit: Option<bool>,
    is_unsettled: bool,
}

impl Link {
    /// With `Access::Change`, of a database that this process has opened before.
    pub(super) fn new(path: &Path, key: &SecretKey, access: Access) -> Self {
        Self {
            path: path.to_owned(),
            key: key.clone(),
            access,
            connection: None,
            number: None,
            highest: 0,
            doubt: None,
            files: Files::of(path),
            written_over: None,
            is_log_durable: true,
            #[cfg(test)]
            faults: Faults::default(),
        }
    }

    /// The connection, after whatever is in doubt has been settled.
    fn connection(&mut self, system: &System) -> Result<&mut Connection> {
        self.assure_own_folder()?;
        self.settle(system)?;
        if self.access == Access::Change {
            self.refuse_what_another_wrote()?;
        }
        if self.connection.is_none() {
            let connection = self.open().map_err(told)?;
            self.files.opened(&self.path, &connection);
            if let Some(number) = self.number {
                refuse_older(number, self.highest)?;
                self.highest = number;
            }
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or(VaultError::ShuttingDown)
    }

    /// Lets go of what is not as this process left it.
    ///
    /// # Errors
    /// [`VaultError::SystemRolledBack`] where an older copy is in its place,
    /// [`AdministrationError::SystemWrittenOver`] from the time on that it was mixed with one.
    fn refuse_what_another_wrote(&mut self) -> Result<()> {
        if self.written_over.is_none()
            && let Err(how) = self.files.check()
        {
            self.drop_connection();
            self.is_log_durable = false;
            // A copy with a log of its own tells itself how far it had come.
            refuse_older(self.count_anew()?, self.highest)?;
            tracing::error!(
                path = %self.path.display(),
                how,
                "ROLLBACK: system.db was written over while it was open: nothing of it is changed \
                 any more"
            );
            self.written_over = Some(how);
        }
        if let Some(how) = self.written_over {
            return Err(AdministrationError::SystemWrittenOver { how }.into());
        }
        if self.connection.is_some() && self.files.need_another_look(&self.path) {
            tracing::error!("system.db was written by another program: it is opened anew");
            self.drop_connection();
            self.is_log_durable = false;
        }
        Ok(())
    }

    /// How many commits it says that it has had, as it is now.
    fn count_anew(&mut self) -> Result<i64> {
        let connection = DATABASE.open(&self.path, &self.key).map_err(told)?;
        let number = number(&connection);
        self.connection = Some(connection);
        self.drop_connection();
        number
    }

    /// One more commit than there were, where it was written over: to be held, so that no start
    /// takes what is there now for what this process left.
    pub(super) fn beyond_written_over(&self) -> Option<u64> {
        self.written_over?;
        Some(self.highest.unsigned_abs() + 1)
    }

    fn open(&mut self) -> Result<Connection, StoreError> {
        if self.access == Access::Look {
            return DATABASE.open_read_only(&self.path, &self.key);
        }
        let open = |is_log_durable| {
            if is_log_durable {
                DATABASE.open_again(&self.path, &self.key)
            } else {
                DATABASE.open(&self.path, &self.key)
            }
        };
        let connection = open(self.is_log_durable)?;
        self.is_log_durable = true;
        match number(&connection) {
            Ok(number) => {
                self.number = Some(number);
                Ok(connection)
            }
            // It was spoiled by that. Nothing else needs the number, so the rest goes on without.
            Err(error) => {
                tracing::error!(%error, "the number of system.db's commits can't be read");
                self.number = None;
                open(true)
            }
        }
    }

    /// Finds out whether what is in doubt has happened, and tells who waits for it. Whether it did;
    /// `None` when nothing was in doubt.
    ///
    /// # Errors
    /// [`VaultError::SystemInDoubt`] while it can't be found out.
    fn settle(&mut self, system: &System) -> Result<Option<bool>> {
        let Some(Doubt { number: wanted, .. }) = self.doubt else {
            return Ok(None);
        };
        let look = || -> Result<(Connection, i64)> {
            #[cfg(test)]
            if self.faults.is_unsettled {
                return Err(VaultError::Damaged);
            }
            // That makes the log durable as it is found, before it is read.
            let connection = DATABASE.open(&self.path, &self.key)?;
            let number = number(&connection)?;
            Ok((connection, number))
        };
        let (connection, found) = match look() {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(%error, "whether a change of system.db stands is not known yet");
                return Err(VaultError::SystemInDoubt);
            }
        };
        refuse_older(found, self.highest)?;
        self.highest = found;
        self.is_log_durable = true;
        self.files.opened(&self.path, &connection);
        self.connection = Some(connection);
        self.number = Some(found);
        let has_happened = found == wanted;
        if let Some(doubt) = self.doubt.take() {
            (doubt.outcome)(system, has_happened);
            system.is_in_doubt.store(false, Ordering::SeqCst);
        }
        tracing::warn!(
            has_happened,
            "it was found out whether a change of system.db stands"
        );
        Ok(Some(has_happened))
    }

    /// Whether commits are counted.
    pub(super) fn counts(&self) -> bool {
        self.number.is_some()
    }

    /// Reads the number of commits anew, next time.
    pub(super) fn forget_number(&mut self) {
        self.drop_connection();
    }

    /// Reads. What is given out was sealed as it should be.
    pub(super) fn read<T>(
        &mut self,
        system: &System,
        read: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let connection = self.connection(system)?;
        let done = read(connection).and_then(|read| {
            Database::assure(connection)?;
            Ok(read)
        });
        // To verify and to copy it, its log is copied into it.
        self.files.note(&self.path);
        self.keep_if_sound(done)
    }

    /// Changes something in one transaction. `outcome` is told whether it happened: before this
    /// returns, or, when that is in doubt, as soon as it is known.
    ///
    /// # Errors
    /// Those of `change`, and of the database: then it certainly did not happen. Or
    /// [`VaultError::SystemInDoubt`].
    pub(super) fn change<T>(
        &mut self,
        system: &System,
        change: impl FnOnce(&Transaction<'_>) -> Result<T>,
        outcome: OnSettled,
    ) -> Result<T> {
        let done = self.transact(system, change);
        if self.connection.is_some() {
            self.files.note(&self.path);
        }
        let (value, failed) = match done {
            Ok(done) => done,
            Err(error) => {
                outcome(system, false);
                return self.keep_if_sound(Err(error));
            }
        };
        let next = self.number.map(|number| number + 1);
        let Some(error) = failed else {
            self.number = next;
            self.highest = next.unwrap_or(self.highest);
            outcome(system, true);
            return Ok(value);
        };
        self.drop_connection();
        self.is_log_durable = false;
        // Without a number it stays in doubt: no commit has this one.
        let number = next.unwrap_or(i64::MAX);
        system.is_in_doubt.store(true, Ordering::SeqCst);
        self.doubt = Some(Doubt { number, outcome });
        match self.settle(system)? {
            Some(true) => Ok(value),
            _ => Err(error),
        }
    }

    /// Does all of a transaction. The second is why its commit failed, if it did.
    fn transact<T>(
        &mut self,
        system: &System,
        change: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Option<VaultError>)> {
        self.connection(system)?;
        let (known, highest) = (self.number, self.highest);
        #[cfg(test)]
        let fault = self.faults.commit.take();
        let connection = self.connection(system)?;
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(StoreError::from)?;
        let _gaps = ZeroizedGaps::of(&transaction);
        if known.is_some() {
            refuse_older(number(&transaction)?, highest)?;
        }
        let value = change(&transaction)?;
        if known.is_some() {
            transaction
                .execute("UPDATE commits SET number = number + 1", ())
                .map_err(StoreError::from)?;
        }
        // Whatever it says: frames may be in the log.
        #[cfg(test)]
        if let Some(stands) = fault {
            if stands {
                transaction.commit().unwrap()
            } else {
                transaction.rollback().unwrap()
            }
            return Ok((value, Some(VaultError::Damaged)));
        }
        let Err(failed) = transaction.commit().map_err(StoreError::from) else {
            return Ok((value, None));
        };
        match Database::refused_commit(connection, &failed) {
            Some(refused) => Err(refused.into()),
            None => Ok((value, Some(failed.into()))),
        }
    }

    /// Drops the connection after an error of the database, which may have spoiled it. A write that
    /// the disk did not take has not, and on a disk that takes none no other could be opened.
    fn keep_if_sound<T>(&mut self, done: Result<T>) -> Result<T> {
        let is_midway = |connection: &Connection| !connection.is_autocommit();
        let is_spoiled = match &done {
            Err(VaultError::Damaged | VaultError::Store(_)) => true,
            Err(VaultError::StorageFull | VaultError::StorageReadOnly) => {
                self.connection.as_ref().is_some_and(is_midway)
            }
            _ => false,
        };
        if is_spoiled {
            self.drop_connection();
        }
        done
    }

    /// Without copying the log: what is in it must not change before it is known.
    fn drop_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            // It can't fail: the setting is there.
            let no_copy = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            let _ = connection.set_db_config(no_copy, true);
        }
    }
}

/// A database that was there at the start and does not open now has been damaged meanwhile.
fn told(error: StoreError) -> VaultError {
    match error {
        StoreError::Foreign => VaultError::Damaged,
        other => other.into(),
    }
}

/// Refuses a database of fewer commits than there were.
fn refuse_older(found: i64, highest: i64) -> Result<()> {
    if found >= highest {
        return Ok(());
    }
    Err(VaultError::SystemRolledBack {
        found: found.unsigned_abs(),
        held: highest.unsigned_abs(),
    })
}

fn number(connection: &Connection) -> Result<i64> {
    let number = connection
        .query_row("SELECT number FROM commits", (), |row| row.get(0))
        .map_err(StoreError::from)?;
    Database::assure(connection)?;
    Ok(number)
}

#[cfg(test)]
mod tests;
