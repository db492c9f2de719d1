//! A bucket's catalog: names, descriptions, small objects, and which blobs hold the others.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use coffer_durable::check_own_folder;
use coffer_seal::{BucketId, SecretKey};
use rusqlite::{Connection, OptionalExtension};

use crate::admission::Admission;
use crate::catalog::tables::columns::decode_u64;
use crate::catalog::tables::schema::{NEWEST, as_newest, of_new, upgrade};
use crate::catalog::tables::unverified::has_unverified;
use crate::catalog::tables::versioning::{KnownVersioning, state_of};
use crate::database::connections::Connections;
use crate::database::doubt::{Newest, is_in_doubt, keep_in_doubt};
use crate::database::group_commit::Writer;
use crate::database::held::Held;
use crate::database::log::has_log;
use crate::database::readers::{Readers, blocking};
use crate::database::sealed::Database;
use crate::database::write_session::Session;
use crate::error::{NO_BUCKET, Result, StoreError};

/// The file in a bucket's folder.
pub const CATALOG_FILE: &str = "catalog.db";

/// "cofc", and the newest format. Format 1 has no count of commits and remembers no finished
/// uploads, format 2 does not know who began an upload, format 3 has no versions, format 4 knows
/// fewer checksums; all become the newest when they are opened for writing.
pub const CATALOG: Database = Database {
    application_id: 0x636f_6663,
    format_version: NEWEST,
};

/// A cheap handle to one bucket's catalog, open.
///
/// It holds the key it was opened with until it is closed, as SQLCipher does, to open read
/// connections when they are needed.
#[derive(Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

type OnDamage = Box<dyn Fn(&StoreError) + Send + Sync>;

struct Inner {
    bucket: BucketId,
    bucket_name: String,
    is_in_doubt: bool,
    /// `None` when opened for reading only.
    writer: Option<Writer>,
    readers: Readers,
    connections: Arc<Connections>,
    /// Who is told of damage.
    on_damage: OnceLock<OnDamage>,
    versioning: KnownVersioning,
    has_unverified: AtomicBool,
}

impl Catalog {
    /// Makes the catalog of a new bucket in `dir`, the bucket's folder, which is made when it is
    /// absent. Durable when this returns.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when there is one.
    pub async fn create(dir: &Path, key: &SecretKey, bucket_name: &str) -> Result<Self> {
        let (dir, key, bucket_name) = (dir.to_owned(), key.clone(), bucket_name.to_owned());
        blocking(move || {
            let made = check_own_folder(&dir).and_then(|()| fs::create_dir_all(&dir));
            made.map_err(|error| StoreError::io("make a folder", &dir, error))?;
            let (held, path) = (Held::take(&dir)?, dir.join(CATALOG_FILE));
            let connection = CATALOG.create(&path, &key, &of_new(&bucket_name))?;
            Self::with(&dir, path, key, connection, Some(held))
        })
        .await
    }

    /// Opens the catalog in `dir`, a bucket's folder. What a crash left in its log is taken over.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] when the key does not open it, [`StoreError::NewerFormat`].
    pub async fn open(dir: &Path, key: &SecretKey) -> Result<Self> {
        let (dir, key) = (dir.to_owned(), key.clone());
        blocking(move || {
            let path = dir.join(CATALOG_FILE);
            let open = || {
                let held = Held::take(&dir)?;
                let connection = CATALOG.open(&path, &key)?;
                upgrade(&connection)?;
                Self::with(&dir, path.clone(), key.clone(), connection, Some(held))
            };
            open().map_err(|error| error.of_bucket(bucket_of(&dir)))
        })
        .await
    }

    /// Opens the catalog in `dir`, which is not open elsewhere, for reading only, and leaves every
    /// file as it is: for looking into the data of a stopped server. Every write answers
    /// [`StoreError::ReadOnly`].
    ///
    /// # Errors
    /// As [`Catalog::open`].
    pub async fn open_read_only(dir: &Path, key: &SecretKey) -> Result<Self> {
        let (dir, key) = (dir.to_owned(), key.clone());
        blocking(move || {
            let path = dir.join(CATALOG_FILE);
            let connection = CATALOG.open_read_only(&path, &key)?;
            Self::with(&dir, path, key, connection, None)
        })
        .await
    }

    fn with(
        dir: &Path,
        path: PathBuf,
        key: SecretKey,
        connection: Connection,
        held: Option<Held>,
    ) -> Result<Self> {
        let is_writable = held.is_some();
        let bucket_name = connection
            .query_row(
                "SELECT value FROM meta WHERE name = 'bucket_name'",
                (),
                |row| row.get(0),
            )
            .optional()?
            .ok_or_else(StoreError::damaged_catalog)?;
        let versioning = KnownVersioning::new(state_of(&connection)?);
        let has_unverified = AtomicBool::new(has_unverified(&connection)?);
        let connections = Connections::new(CATALOG, path, key, held);
        let connections = Arc::new(connections.showing(as_newest));
        let readers = Readers::new(connections.clone());
        let has_log = has_log(connections.path());
        let mut is_in_doubt = is_in_doubt(dir);
        let writer = if is_writable {
            let newest = Newest::open(dir);
            let count = commit_count(&connection)?;
            connections.committed(count);
            is_in_doubt |= is_behind(dir, count, &newest);
            Some(Writer::new(
                connections.clone(),
                readers.clone(),
                connection,
                newest,
            )?)
        } else {
            None
        };
        if let Some(writer) = writer.as_ref().filter(|_| has_log) {
            writer.tidy_soon();
        }
        let bucket = bucket_of(dir);
        Ok(Self {
            inner: Arc::new(Inner {
                bucket,
                bucket_name,
                is_in_doubt,
                writer,
                readers,
                connections,
                on_damage: OnceLock::new(),
                versioning,
                has_unverified,
            }),
        })
    }

    /// The bucket's name, kept in here so that a stopped server's folder can tell it.
    pub fn bucket_name(&self) -> &str {
        &self.inner.bucket_name
    }

    /// Whether it may lack commits that it had: see [`keep_in_doubt`](crate::keep_in_doubt). As of
    /// when it was opened.
    pub fn is_in_doubt(&self) -> bool {
        self.inner.is_in_doubt
    }

    /// Has `tell` told of all damage that reads and writes meet. The first one told stays.
    pub fn on_damage(&self, tell: impl Fn(&StoreError) + Send + Sync + 'static) {
        let _ = self.inner.on_damage.set(Box::new(tell));
    }

    /// Has writes admitted, and told how they end, from now on: said once, before any is made.
    pub fn admit_by(&self, admission: Arc<dyn Admission>) {
        if let Ok(writer) = self.writer() {
            writer.admit_by(admission);
        }
    }

    /// Gives the bucket another name, for the next time that the catalog is opened.
    pub async fn rename_bucket(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write(move |session| {
            session.execute(
                "UPDATE meta SET value = ? WHERE name = 'bucket_name'",
                [&name],
            )?;
            Ok(())
        })
        .await
    }

    /// Ends what is queued, copies the log into the database and lets go of every connection and
    /// of the key. Whatever is asked later answers [`StoreError::Closed`].
    pub async fn close(&self) {
        // Readers first, for the last to close removes the log, and that must be one who may.
        self.inner.readers.close().await;
        if let Some(writer) = self.inner.writer.clone() {
            let connections = self.inner.connections.clone();
            let close = move || {
                writer.close();
                connections.let_go();
            };
            // A runtime that shuts down closes by dropping; nothing acknowledged is lost by it.
            let _ = tokio::task::spawn_blocking(close).await;
        }
    }

    /// Lets go of every connection and of the key at once: what is queued is refused, and the log
    /// is left as it is. Long reads are cut off. For a catalog whose key is being destroyed.
    pub async fn abandon(&self) {
        if let Some(writer) = self.inner.writer.clone() {
            let _ = tokio::task::spawn_blocking(move || writer.abandon()).await;
        }
        self.inner.readers.abandon().await;
        self.inner.connections.let_go();
    }

    /// Checks how the pages hang together. That can't be altered from outside without breaking a
    /// seal, so it is for tests: the whole catalog is read in one go, and the log grows meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Damaged`].
    #[doc(hidden)]
    pub async fn check_structure(&self) -> Result<()> {
        self.long(|connection| {
            let check = "PRAGMA integrity_check(1)";
            let verdict: String = connection.query_row(check, (), |row| row.get(0))?;
            if verdict == "ok" {
                Ok(())
            } else {
                Err(StoreError::damaged_catalog())
            }
        })
        .await
    }

    /// A write that adds data: refused when the disk is nearly full.
    pub(crate) async fn add<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Session) -> Result<T> + Send + 'static,
    {
        self.commit(true, work).await
    }

    /// A write that takes data away, or changes little.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Session) -> Result<T> + Send + 'static,
    {
        self.commit(false, work).await
    }

    async fn commit<T, F>(&self, adds: bool, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Session) -> Result<T> + Send + 'static,
    {
        self.inner.connections.refuse_replaced()?;
        self.told(self.writer()?.write(adds, work).await)
    }

    /// Sees to it that reads show what stands: what is in doubt is settled before.
    ///
    /// # Errors
    /// [`StoreError::InDoubt`] while that can't be done, [`StoreError::NoRoomForLog`].
    pub async fn settle(&self) -> Result<()> {
        match &self.inner.writer {
            Some(writer) => self.told(writer.settle().await),
            None => Ok(()),
        }
    }

    pub(crate) fn writer(&self) -> Result<&Writer> {
        self.inner.writer.as_ref().ok_or(StoreError::ReadOnly)
    }

    pub(crate) async fn point<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.inner.connections.refuse_replaced()?;
        self.told(self.inner.readers.point(read).await)
    }

    pub(crate) async fn long<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.inner.connections.refuse_replaced()?;
        self.told(self.inner.readers.long(read).await)
    }

    /// As [`long`](Self::long), for who reads the database's file past all connections. It must end
    /// soon when the connections are closed.
    pub(crate) async fn past<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connections) -> Result<T> + Send + 'static,
    {
        self.inner.connections.refuse_replaced()?;
        self.told(self.inner.readers.past(read).await)
    }

    /// Says in which bucket damage is, and tells who wants to know.
    fn told<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| {
            let error = error.of_bucket(self.inner.bucket);
            let error = error.of_file(self.inner.connections.path());
            if let (StoreError::Damaged { .. }, Some(tell)) = (&error, self.inner.on_damage.get()) {
                tell(&error);
            }
            error
        })
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.inner.connections
    }

    /// Whether the bucket keeps versions, as it was last read.
    pub(crate) fn known_versioning(&self) -> KnownVersioning {
        self.inner.versioning.clone()
    }

    pub(crate) fn has_unverified(&self) -> &AtomicBool {
        &self.inner.has_unverified
    }

    /// The bucket, as its folder is called.
    pub(crate) fn bucket(&self) -> BucketId {
        self.inner.bucket
    }
}

/// Whether the catalog lacks commits that its folder remembers; it is in doubt from then on.
fn is_behind(dir: &Path, count: u64, newest: &Newest) -> bool {
    let known = newest.read();
    if known > count {
        let why = format!("the catalog has {count} commits and had {known}: it is an older one");
        match keep_in_doubt(dir, &why) {
            // From here on it is remembered by that.
            Ok(()) => newest.write(count),
            Err(error) => tracing::warn!(%error, "a bucket is in doubt: it is noted next time"),
        }
    }
    known > count
}

fn commit_count(connection: &Connection) -> Result<u64> {
    let sql = "SELECT value FROM meta WHERE name = 'commit_count'";
    decode_u64(connection.query_row(sql, (), |row| row.get(0))?)
}

/// The folder of a bucket bears its id; one of another name (a copy, a test) has none to tell.
fn bucket_of(dir: &Path) -> BucketId {
    let name = dir.file_name().and_then(|name| name.to_str());
    name.and_then(BucketId::from_hex).unwrap_or(NO_BUCKET)
}
