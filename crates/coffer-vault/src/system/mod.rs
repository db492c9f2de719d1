//! `system.db`: which buckets and subjects there are. Small, so all of it is held in memory; every
//! change is committed before it shows there.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use coffer_seal::SecretKey;
use coffer_store::{Database, LOG_DAMAGED, StoreError};
use parking_lot::{Mutex, MutexGuard, RwLock};
use rusqlite::{Connection, Transaction};

use crate::error::{Result, VaultError};

mod anchor;

mod configuration;

mod encryption;

mod buckets;

mod commits;

mod copy;

mod damage;

mod link;

mod quotas;

mod subjects;

mod upgrade;

mod key_releases;

mod documents;

mod lock_bound;

mod lock_time;

pub(crate) use self::buckets::{BucketRow, LevelTag};
pub(crate) use self::configuration::BucketDocuments;
pub use self::configuration::{BucketConfiguration, MD5_ETAGS};
pub use self::documents::ReceiptSummary;
pub(crate) use self::documents::{DocumentId, FenceNote, Kind, WentOn};
pub use self::encryption::BucketEncryption;
pub(crate) use self::key_releases::KeyReleases;
pub(crate) use self::lock_bound::{CoveredLock, Doubts, LockBound};
pub(crate) use self::lock_time::{Jump, LockTime};
pub(crate) use self::subjects::SubjectEntry;

use self::buckets::{Buckets, set_document};
use self::link::{Access, Link, OnSettled};
use self::subjects::Subjects;
use self::upgrade::{FORMAT_VERSION, schema, upgrade};

/// "cofs", which tells this database from a catalog.
const APPLICATION_ID: i32 = 0x636f_6673;
const DATABASE: Database = Database {
    application_id: APPLICATION_ID,
    format_version: FORMAT_VERSION,
};

/// The tables of format 1. What later formats added is in `upgrade.rs`.
const SCHEMA_1: &str = "
CREATE TABLE bucket(
    id BLOB PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    level_id BLOB NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE subject(
    access_key_id TEXT PRIMARY KEY NOT NULL,
    secret_access_key TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    clearance TEXT NOT NULL,
    roles TEXT NOT NULL,
    is_narrowed INTEGER NOT NULL,
    is_disabled INTEGER NOT NULL,
    expires_ms INTEGER,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE bucket_grant(
    access_key_id TEXT NOT NULL,
    bucket_id BLOB NOT NULL,
    rights TEXT NOT NULL,
    PRIMARY KEY(access_key_id, bucket_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE audit_anchor(
    only INTEGER PRIMARY KEY NOT NULL CHECK(only = 1),
    sequence INTEGER NOT NULL,
    hash BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE erase(id BLOB PRIMARY KEY NOT NULL, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE request(id BLOB PRIMARY KEY NOT NULL, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE rotation(id BLOB PRIMARY KEY NOT NULL, document TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE doomed(bucket_id BLOB PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE receipt(
    id TEXT PRIMARY KEY NOT NULL,
    signed_ms INTEGER NOT NULL,
    document TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The system database and what it holds.
pub(crate) struct System {
    link: Mutex<Link>,
    /// Whether a commit failed of which it is not known whether it stands.
    is_in_doubt: AtomicBool,
    /// From which commit to which nothing but the audit log's anchor moved, at the end.
    anchored: Mutex<Option<(u64, u64)>>,
    buckets: RwLock<Buckets>,
    subjects: RwLock<Subjects>,
}

impl System {
    /// Opens the database, or makes it where it is absent. One of an older format is brought to
    /// this one.
    pub(crate) fn open(path: &Path, key: &SecretKey) -> Result<Self> {
        if path.exists() {
            upgrade(
                &mut DATABASE
                    .open(path, key)
                    .map_err(|error| log_told(error, path))?,
            )?;
        } else {
            drop(DATABASE.create(path, key, &schema())?);
        }
        let system = Self::unread(path, key, Access::Change);
        *system.subjects_mut() = system.held().read(Subjects::load)?;
        system.read_buckets()
    }

    /// Opens the database without changing it, so it may be of an older format. Subjects, whose
    /// columns depend on that, are left out.
    pub(crate) fn open_read_only(path: &Path, key: &SecretKey) -> Result<Self> {
        // What `open` tells of a file that is not there, or is of another kind.
        DATABASE.open_read_only(path, key)?;
        Self::unread(path, key, Access::Look).read_buckets()
    }

    fn unread(path: &Path, key: &SecretKey, access: Access) -> Self {
        Self {
            link: Mutex::new(Link::new(path, key, access)),
            is_in_doubt: AtomicBool::new(false),
            anchored: Mutex::default(),
            buckets: RwLock::default(),
            subjects: RwLock::default(),
        }
    }

    fn read_buckets(self) -> Result<Self> {
        let buckets = self.held().read(Buckets::load)?;
        *self.buckets.write() = buckets;
        Ok(self)
    }

    /// Settles what is in doubt.
    ///
    /// # Errors
    /// [`VaultError::SystemInDoubt`] while that can't be done.
    pub(crate) fn assure_certain(&self) -> Result<()> {
        self.held().read(|_| Ok(()))
    }

    /// The database, which no other request reads or changes meanwhile.
    pub(crate) fn held(&self) -> Held<'_> {
        // A panic under the lock leaves SQLite's transaction to be rolled back, nothing half done.
        let link = self.link.lock();
        Held { system: self, link }
    }
}

/// The database, held for more than one step.
pub(crate) struct Held<'a> {
    system: &'a System,
    link: MutexGuard<'a, Link>,
}

impl Held<'_> {
    /// Reads. What is given out was sealed as it should be.
    pub(crate) fn read<T>(&mut self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let read = self.link.read(self.system, read);
        read.map_err(|error| error.of_file(&self.link.path))
    }

    /// Changes something in one transaction, durably.
    ///
    /// # Errors
    /// When it did not happen; [`VaultError::SystemInDoubt`] when it may have.
    pub(crate) fn change<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T>,
    ) -> Result<T> {
        self.change_then(change, Box::new(|_, _| ()))
    }

    /// As [`Held::change`]; `outcome` is told whether it happened, which may be later.
    fn change_then<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T>,
        outcome: OnSettled,
    ) -> Result<T> {
        let changed = self.link.change(self.system, change, outcome);
        changed.map_err(|error| error.of_file(&self.link.path))
    }
}

fn log_told(error: StoreError, path: &Path) -> VaultError {
    match error {
        StoreError::Damaged { what, .. } if what == LOG_DAMAGED => VaultError::SystemLogDamaged {
            path: path.display().to_string(),
        },
        other => other.into(),
    }
}
