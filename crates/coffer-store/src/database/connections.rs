//! How a catalog's connections come to be, for as long as it is open.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use coffer_seal::SecretKey;
use rusqlite::Connection;

use crate::database::log::DurableCopy;
use crate::database::sealed::Database;
use crate::error::{Result, StoreError};

/// Opens connections to one database until it is told to stop.
pub(crate) struct Connections {
    database: Database,
    path: PathBuf,
    /// There is no writer, and nothing may change.
    is_still: bool,
    /// Whether what is in the log may not be on the disk.
    is_log_in_doubt: AtomicBool,
    /// SQLCipher holds the same key in every connection for as long.
    key: Mutex<Option<SecretKey>>,
}

impl Connections {
    pub(crate) fn new(database: Database, path: PathBuf, key: SecretKey, is_still: bool) -> Self {
        Self {
            database,
            path,
            is_still,
            is_log_in_doubt: AtomicBool::new(false),
            key: Mutex::new(Some(key)),
        }
    }

    /// A connection that may write. There is one at a time, and the log is not in doubt.
    pub(crate) fn open(&self) -> Result<Connection> {
        self.database.open_again(&self.path, &self.key()?)
    }

    /// A durable copy of the log, if that is in doubt.
    pub(crate) fn copy_log_in_doubt(&self) -> Result<Option<DurableCopy>> {
        let is_in_doubt = self.is_log_in_doubt.load(Ordering::Acquire);
        is_in_doubt
            .then(|| DurableCopy::make(&self.path))
            .transpose()
    }

    /// Puts the copy in the log's place, while there are no connections.
    pub(crate) fn settle_log(&self, copy: DurableCopy) -> Result<()> {
        copy.put()?;
        self.is_log_in_doubt.store(false, Ordering::Release);
        Ok(())
    }

    /// Writing to the log failed: what it holds is made durable before it is believed again.
    pub(crate) fn doubt_the_log(&self) {
        self.is_log_in_doubt.store(true, Ordering::Release);
    }

    /// A connection for reading only.
    pub(crate) fn open_read_only(&self) -> Result<Connection> {
        match self.is_still {
            true => self.database.open_read_only(&self.path, &self.key()?),
            false => self.database.open_beside(&self.path, &self.key()?),
        }
    }

    /// The database's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_none()
    }

    /// Lets go of the key: from now on everything answers [`StoreError::Closed`].
    pub(crate) fn close(&self) {
        self.lock().take();
    }

    /// The key, while it is open.
    pub(crate) fn key(&self) -> Result<SecretKey> {
        self.lock().clone().ok_or(StoreError::Closed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<SecretKey>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
