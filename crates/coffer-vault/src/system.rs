//! `system.db`: which buckets and subjects there are. Small, so all of it is held in memory; every
//! change is committed before it shows there.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use coffer_keys::LevelEntry;
use coffer_label::Label;
use coffer_seal::SecretKey;
use coffer_store::record::Id;
use coffer_store::{Database, StoreError};
use rusqlite::{Connection, params};

use crate::error::{Result, VaultError};
use crate::name::BucketName;

mod anchor;

mod subjects;

use self::subjects::Subjects;

/// "cofs", which tells this database from a catalog.
const APPLICATION_ID: i32 = 0x636f_6673;
const FORMAT_VERSION: i32 = 1;

const SCHEMA: &str = "
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

/// The system database and what it holds.
pub(crate) struct System {
    connection: Mutex<Connection>,
    buckets: RwLock<BTreeMap<BucketName, Arc<BucketRow>>>,
    subjects: RwLock<Subjects>,
}

impl System {
    /// Opens the database, or makes it where it is absent.
    pub(crate) fn open(path: &Path, key: &SecretKey) -> Result<Self> {
        let database = Database {
            application_id: APPLICATION_ID,
            format_version: FORMAT_VERSION,
        };
        let connection = if path.exists() {
            database.open(path, key)?
        } else {
            database.create(path, key, SCHEMA)?
        };
        Self::load(connection)
    }

    /// Opens the database without changing it.
    pub(crate) fn open_read_only(path: &Path, key: &SecretKey) -> Result<Self> {
        let database = Database {
            application_id: APPLICATION_ID,
            format_version: FORMAT_VERSION,
        };
        Self::load(database.open_read_only(path, key)?)
    }

    fn load(connection: Connection) -> Result<Self> {
        let buckets = load_buckets(&connection)?;
        let subjects = Subjects::load(&connection)?;
        Database::assure(&connection)?;
        Ok(Self {
            connection: Mutex::new(connection),
            buckets: RwLock::new(buckets),
            subjects: RwLock::new(subjects),
        })
    }

    pub(crate) fn bucket(&self, name: &BucketName) -> Option<Arc<BucketRow>> {
        self.buckets
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    /// All buckets by name.
    pub(crate) fn buckets(&self) -> Vec<Arc<BucketRow>> {
        self.buckets
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    pub(crate) fn add_bucket(&self, row: BucketRow) -> Result<()> {
        self.connection()
            .execute(
                "INSERT INTO bucket(id, name, level_id, created_ms) VALUES(?, ?, ?, ?)",
                params![row.id.0, row.name.as_str(), row.level_id, row.created_ms],
            )
            .map_err(StoreError::from)?;
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        buckets.insert(row.name.clone(), Arc::new(row));
        Ok(())
    }

    /// Removes a bucket's row. From then on its folder is to be removed once its key is gone, also
    /// by the next start.
    pub(crate) fn remove_bucket(&self, name: &BucketName) -> Result<()> {
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "DELETE FROM bucket_grant
                 WHERE bucket_id = (SELECT id FROM bucket WHERE name = ?)",
                params![name.as_str()],
            )?;
            transaction.execute(
                "INSERT OR IGNORE INTO doomed (bucket_id) SELECT id FROM bucket WHERE name = ?",
                params![name.as_str()],
            )?;
            transaction.execute("DELETE FROM bucket WHERE name = ?", params![name.as_str()])?;
            transaction.commit()
        };
        remove(&mut self.connection()).map_err(StoreError::from)?;
        self.buckets
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
        Ok(())
    }

    /// Takes buckets out of sight, and returns them. Their rows stay until the erase is finished.
    pub(crate) fn hide(&self, ids: &[Id]) -> Vec<Arc<BucketRow>> {
        let ids: HashSet<Id> = ids.iter().copied().collect();
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        let hidden = buckets.extract_if(.., |_, row| ids.contains(&row.id));
        hidden
            .map(|(_, row)| row)
            .inspect(|row| row.is_hidden.store(true, Ordering::SeqCst))
            .collect()
    }

    /// Shows hidden buckets again.
    pub(crate) fn show(&self, hidden: Vec<Arc<BucketRow>>) {
        let mut buckets = self.buckets.write().unwrap_or_else(PoisonError::into_inner);
        for row in &hidden {
            row.is_hidden.store(false, Ordering::SeqCst);
        }
        buckets.extend(hidden.into_iter().map(|row| (row.name.clone(), row)));
    }

    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic under the lock leaves SQLite's transaction to be rolled back, nothing half done.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn load_buckets(connection: &Connection) -> Result<BTreeMap<BucketName, Arc<BucketRow>>> {
    let mut buckets = BTreeMap::new();
    let mut statement = connection
        .prepare("SELECT id, name, level_id, created_ms FROM bucket")
        .map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let name: String = row.get(1).map_err(StoreError::from)?;
        let name = BucketName::new(&name).ok_or(VaultError::Damaged)?;
        let row = BucketRow {
            id: Id(row.get(0).map_err(StoreError::from)?),
            name: name.clone(),
            level_id: row.get(2).map_err(StoreError::from)?,
            created_ms: row.get(3).map_err(StoreError::from)?,
            level: OnceLock::new(),
            is_hidden: Arc::default(),
        };
        buckets.insert(name, Arc::new(row));
    }
    Ok(buckets)
}
