//! `system.db`: which buckets and subjects there are. Small, so all of it is held in memory; every
//! change is committed before it shows there.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use coffer_label::Clearance;
use coffer_seal::SecretKey;
use coffer_store::record::Id;
use coffer_store::{Database, StoreError};
use rusqlite::{Connection, params};
use zeroize::Zeroizing;

use crate::error::{Result, VaultError};
use crate::name::BucketName;
use crate::roles::Roles;
use crate::subject::Subject;

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
    clearance TEXT NOT NULL,
    roles TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// A bucket as the system knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketRow {
    pub(crate) id: Id,
    pub(crate) name: BucketName,
    pub(crate) level_id: [u8; 16],
    pub(crate) created_ms: i64,
}

struct SubjectRow {
    subject: Arc<Subject>,
    secret_access_key: Zeroizing<String>,
}

/// The system database and what it holds.
pub(crate) struct System {
    connection: Mutex<Connection>,
    buckets: RwLock<BTreeMap<BucketName, Arc<BucketRow>>>,
    subjects: RwLock<HashMap<String, SubjectRow>>,
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
        let subjects = load_subjects(&connection)?;
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

    pub(crate) fn remove_bucket(&self, name: &BucketName) -> Result<()> {
        self.connection()
            .execute("DELETE FROM bucket WHERE name = ?", params![name.as_str()])
            .map_err(StoreError::from)?;
        self.buckets
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(name);
        Ok(())
    }

    pub(crate) fn has_subjects(&self) -> bool {
        !self
            .subjects
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    pub(crate) fn subject(&self, access_key_id: &str) -> Option<Arc<Subject>> {
        let subjects = self.subjects.read().unwrap_or_else(PoisonError::into_inner);
        subjects.get(access_key_id).map(|row| row.subject.clone())
    }

    pub(crate) fn secret_access_key(&self, access_key_id: &str) -> Option<Zeroizing<String>> {
        let subjects = self.subjects.read().unwrap_or_else(PoisonError::into_inner);
        subjects
            .get(access_key_id)
            .map(|row| row.secret_access_key.clone())
    }

    pub(crate) fn add_subject(
        &self,
        subject: Subject,
        secret_access_key: Zeroizing<String>,
        created_ms: i64,
    ) -> Result<()> {
        self.connection()
            .execute(
                "INSERT INTO
                 subject(access_key_id, secret_access_key, clearance, roles, created_ms)
                 VALUES(?, ?, ?, ?, ?)",
                params![
                    subject.access_key_id,
                    *secret_access_key,
                    subject.clearance.to_string(),
                    subject.roles.to_string(),
                    created_ms
                ],
            )
            .map_err(StoreError::from)?;
        let id = subject.access_key_id.clone();
        let row = SubjectRow {
            subject: Arc::new(subject),
            secret_access_key,
        };
        self.subjects
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, row);
        Ok(())
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
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
        };
        buckets.insert(name, Arc::new(row));
    }
    Ok(buckets)
}

fn load_subjects(connection: &Connection) -> Result<HashMap<String, SubjectRow>> {
    let mut subjects = HashMap::new();
    let mut statement = connection
        .prepare("SELECT access_key_id, secret_access_key, clearance, roles FROM subject")
        .map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let access_key_id: String = row.get(0).map_err(StoreError::from)?;
        let secret_access_key = Zeroizing::new(row.get(1).map_err(StoreError::from)?);
        let clearance: String = row.get(2).map_err(StoreError::from)?;
        let clearance: Clearance = clearance.parse().map_err(|_| VaultError::Damaged)?;
        let roles: String = row.get(3).map_err(StoreError::from)?;
        let roles: Roles = roles.parse().map_err(|_| VaultError::Damaged)?;
        let subject = Arc::new(Subject {
            access_key_id: access_key_id.clone(),
            clearance,
            roles,
        });
        subjects.insert(
            access_key_id,
            SubjectRow {
                subject,
                secret_access_key,
            },
        );
    }
    Ok(subjects)
}
