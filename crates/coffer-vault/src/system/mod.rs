//! `system.db`: which buckets and subjects there are. Small, so all of it is held in memory; every
//! change is committed before it shows there.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use coffer_keys::LevelEntry;
use coffer_label::Label;
use coffer_seal::SecretKey;
use coffer_store::record::Id;
use coffer_store::{Database, LOG_DAMAGED, StoreError};
use rusqlite::{Connection, Transaction};

use crate::access::BucketName;
use crate::error::{Result, VaultError};
use crate::locks::{lock, read, write};

mod anchor;

mod commits;

mod damage;

mod link;

mod subjects;

mod upgrade;

mod documents;

pub(crate) use self::documents::Kind;
pub use self::documents::ReceiptSummary;

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

/// A bucket as the system knows it.
#[derive(Clone, Debug)]
pub(crate) struct BucketRow {
    pub(crate) id: Id,
    pub(crate) name: BucketName,
    pub(crate) level_id: [u8; 16],
    pub(crate) created_ms: i64,
    /// Looked up when first needed.
    pub(crate) level: OnceLock<LevelTag>,
    /// Whether an erase has taken it out of sight, also for those who had looked it up before.
    pub(crate) is_hidden: Arc<AtomicBool>,
}

/// What never changes of a level.
#[derive(Clone, Debug)]
pub(crate) struct LevelTag {
    pub(crate) name: String,
    pub(crate) label: Label,
    /// Whether reads and writes of its objects are recorded.
    pub(crate) is_watched: bool,
}

impl LevelTag {
    pub(crate) fn of(level: LevelEntry) -> Self {
        Self {
            name: level.name,
            label: level.label,
            is_watched: level.options.audit_data,
        }
    }
}

/// All buckets that are in sight, by name and by id.
#[derive(Default)]
struct Buckets {
    by_name: BTreeMap<BucketName, Arc<BucketRow>>,
    by_id: HashMap<Id, Arc<BucketRow>>,
}

impl Buckets {
    fn insert(&mut self, row: Arc<BucketRow>) {
        self.by_id.insert(row.id, row.clone());
        self.by_name.insert(row.name.clone(), row);
    }

    fn remove(&mut self, id: Id) -> Option<Arc<BucketRow>> {
        let row = self.by_id.remove(&id)?;
        self.by_name.remove(&row.name);
        Some(row)
    }
}

/// The system database and what it holds.
pub(crate) struct System {
    link: Mutex<Link>,
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
            buckets: RwLock::default(),
            subjects: RwLock::default(),
        }
    }

    fn read_buckets(self) -> Result<Self> {
        let buckets = self.held().read(load_buckets)?;
        *self.buckets_mut() = buckets;
        Ok(self)
    }

    pub(crate) fn bucket(&self, name: &BucketName) -> Option<Arc<BucketRow>> {
        self.rows().by_name.get(name).cloned()
    }

    /// The bucket of this id.
    pub(crate) fn bucket_of_id(&self, id: Id) -> Option<Arc<BucketRow>> {
        self.rows().by_id.get(&id).cloned()
    }

    /// All buckets by name.
    pub(crate) fn buckets(&self) -> Vec<Arc<BucketRow>> {
        self.rows().by_name.values().cloned().collect()
    }

    /// How many buckets there are.
    pub(crate) fn bucket_count(&self) -> usize {
        self.rows().by_id.len()
    }

    fn rows(&self) -> RwLockReadGuard<'_, Buckets> {
        read(&self.buckets)
    }

    fn buckets_mut(&self) -> RwLockWriteGuard<'_, Buckets> {
        write(&self.buckets)
    }

    /// Adds a bucket. One whose row is in doubt appears as soon as it is known to be there.
    pub(crate) fn add_bucket(&self, row: BucketRow) -> Result<()> {
        let params = (row.id.0, row.name.to_string(), row.level_id, row.created_ms);
        let add = move |transaction: &Transaction<'_>| {
            let sql = "INSERT INTO bucket(id, name, level_id, created_ms) VALUES(?, ?, ?, ?)";
            transaction.execute(sql, params).map_err(StoreError::from)?;
            Ok(())
        };
        let appear = move |system: &Self, is_added: bool| {
            if is_added {
                system.show(vec![Arc::new(row)]);
            }
        };
        self.held().change_then(add, Box::new(appear))
    }

    /// Removes a bucket's row. From then on its folder is to be removed once its key is gone, also
    /// by the next start.
    ///
    /// From the beginning the bucket is out of use, and stays so while it is in doubt whether it is
    /// removed. `kept` is called once it is certain that it is not.
    pub(crate) fn remove_bucket(
        &self,
        row: &Arc<BucketRow>,
        kept: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        row.is_hidden.store(true, Ordering::SeqCst);
        let id = row.id.0;
        let remove = move |transaction: &Transaction<'_>| {
            let run = |sql| transaction.execute(sql, [id]).map_err(StoreError::from);
            run("DELETE FROM bucket_grant WHERE bucket_id = ?")?;
            run("INSERT OR IGNORE INTO doomed(bucket_id) VALUES(?)")?;
            run("DELETE FROM bucket WHERE id = ?")?;
            Ok(())
        };
        let row = row.clone();
        let settle = move |system: &Self, is_removed: bool| {
            if is_removed {
                system.hide(&[row.id]);
            } else {
                kept();
                row.is_hidden.store(false, Ordering::SeqCst);
            }
        };
        self.held().change_then(remove, Box::new(settle))
    }

    /// Takes buckets out of sight, and returns them. Their rows stay until the erase is finished.
    pub(crate) fn hide(&self, ids: &[Id]) -> Vec<Arc<BucketRow>> {
        let mut buckets = self.buckets_mut();
        let hidden = ids.iter().filter_map(|id| buckets.remove(*id));
        hidden
            .inspect(|row| row.is_hidden.store(true, Ordering::SeqCst))
            .collect()
    }

    /// Shows hidden buckets again.
    pub(crate) fn show(&self, hidden: Vec<Arc<BucketRow>>) {
        let mut buckets = self.buckets_mut();
        for row in hidden {
            row.is_hidden.store(false, Ordering::SeqCst);
            buckets.insert(row);
        }
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
        let link = lock(&self.link);
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
        self.link.read(self.system, read)
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
        self.link.change(self.system, change, outcome)
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

fn load_buckets(connection: &Connection) -> Result<Buckets> {
    let mut buckets = Buckets::default();
    let mut statement = connection
        .prepare("SELECT id, name, level_id, created_ms FROM bucket")
        .map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let name: String = row.get(1).map_err(StoreError::from)?;
        let name = BucketName::new(&name).ok_or(VaultError::Damaged)?;
        let row = BucketRow {
            id: Id(row.get(0).map_err(StoreError::from)?),
            name,
            level_id: row.get(2).map_err(StoreError::from)?,
            created_ms: row.get(3).map_err(StoreError::from)?,
            level: OnceLock::new(),
            is_hidden: Arc::default(),
        };
        buckets.insert(Arc::new(row));
    }
    Ok(buckets)
}
