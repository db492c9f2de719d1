//! How a sealed database is made and opened: catalogs, and the vault's own.
//!
//! All settings are here, so that a measurement of "bare SQLCipher" measures the same database.

use std::fs::{self, File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use coffer_durable::{check_own_folder, sync_folder};
use coffer_seal::SecretKey;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use crate::database::cipher::{self, Salt};
use crate::database::gaps::let_gaps_be_zeroized;
use crate::database::log::{self, has_log};
use crate::database::sqlite_heap::zeroize_what_sqlite_frees;
use crate::error::{Result, StoreError};
use crate::limits::{
    BUSY_TIMEOUT_MS, CHECKPOINT_PAGES, DATABASE_MEMORY_BYTES, JOURNAL_KEPT_BYTES, PAGE_BYTES,
    PAGE_CACHE_KIB, STATEMENT_CACHE,
};

/// A kind of database: its mark and the format that this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Database {
    /// SQLite's `application_id`, which tells one kind from another.
    pub application_id: i32,
    /// SQLite's `user_version`: the format's number, from 1.
    pub format_version: i32,
}

impl Database {
    /// Makes a database with the tables of `schema` (SQL) and opens it. It appears under `path`
    /// only when it is whole and durable.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when there is something at `path`.
    pub fn create(&self, path: &Path, key: &SecretKey, schema: &str) -> Result<Connection> {
        let path = absolute(path)?;
        if path.exists() {
            return Err(StoreError::Exists);
        }
        assure_own_folder(&path)?;
        let unfinished = path.with_extension("unfinished");
        remove_if_there(&unfinished)?;
        let filled = self.fill(&unfinished, key, schema);
        filled.map_err(|error| error.of_file(&unfinished))?;
        fs::rename(&unfinished, &path)
            .map_err(|error| StoreError::io("rename a new database", &path, error))?;
        sync_parent(&path)?;
        self.open(&path, key)
    }

    /// Opens a database for reading and writing, which is not open elsewhere. What a killed
    /// process left in its log is made durable before it is believed.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] when the key does not open it or it is of another kind,
    /// [`StoreError::NewerFormat`], [`StoreError::Damaged`] when commits of its log lie behind a
    /// damaged place, [`StoreError::NoRoomForLog`].
    pub fn open(&self, path: &Path, key: &SecretKey) -> Result<Connection> {
        let absolute = absolute(path)?;
        assure_own_folder(&absolute)?;
        log::take_over(&absolute)?;
        // The index of the log, which earlier versions kept in a file. It is of no use.
        let _ = fs::remove_file(with_suffix(&absolute, "-shm"));
        self.open_as(path, key, Access::Write)
    }

    /// Opens a database for reading and writing whose log this process has taken over, and no
    /// commit to which has failed since.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_again(&self, path: &Path, key: &SecretKey) -> Result<Connection> {
        self.open_as(path, key, Access::Write)
    }

    /// Opens a database that is not open elsewhere for reading, and leaves it and its folder
    /// exactly as they are: for looking into the data of a stopped server. What a killed one left
    /// in the log is read, too.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_read_only(&self, path: &Path, key: &SecretKey) -> Result<Connection> {
        self.open_as(path, key, Access::Still)
    }

    /// Opens a database for reading beside others who read and write. On a file system that takes
    /// no writes it sees what there is now, whatever is committed later.
    pub(crate) fn open_beside(&self, path: &Path, key: &SecretKey) -> Result<Connection> {
        self.open_as(path, key, Access::Read)
    }

    /// Makes sure that everything this connection has read so far was sealed as it should be. To be
    /// called after reading and before what was read is used.
    ///
    /// SQLCipher finds a page whose seal does not verify, but it does not fail the statement that
    /// asked for it: it hands it zeros and fails whatever is asked next. Of a page in the middle of
    /// a table SQLite notices that; of the last page of a long value it does not, and the value
    /// would end in zeros.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it was not. The connection can't be used any more then.
    pub fn assure(connection: &Connection) -> Result<()> {
        let touch_a_page = "SELECT 1 FROM sqlite_schema LIMIT 1";
        let touched = connection
            .prepare_cached(touch_a_page)
            .and_then(|mut statement| statement.query_row((), |_| Ok(())));
        touched.map_err(|_| StoreError::damaged_catalog())
    }

    /// Why a commit that failed has certainly not happened; `None` where it may have.
    ///
    /// The log gets its frames in order, of which the last one commits. So where there was no room
    /// for all of them, or the file system became read-only, nothing is committed, and the
    /// connection goes on from before. Any other failure may come after that frame: while it is
    /// synced, or entered into the log's index, for which there may be no room either.
    pub fn refused_commit(connection: &Connection, failed: &StoreError) -> Option<StoreError> {
        match failed {
            StoreError::Full => Some(StoreError::Full),
            StoreError::DiskReadOnly => Some(StoreError::DiskReadOnly),
            StoreError::Database {
                code: ffi::SQLITE_IOERR_WRITE,
                ..
            } => cipher::refused_by_disk(connection),
            _ => None,
        }
    }

    fn open_as(&self, path: &Path, key: &SecretKey, access: Access) -> Result<Connection> {
        let opened = self.open_file(path, key, access);
        opened.map_err(|error| error.of_file(path))
    }

    fn open_file(&self, path: &Path, key: &SecretKey, access: Access) -> Result<Connection> {
        let path = absolute(path)?;
        assure_own_folder(&path)?;
        fs::metadata(&path).map_err(|error| StoreError::io("open a database", &path, error))?;
        // With the first page everything opens, or nothing.
        let with = |salt| {
            let connection = connect(&path, key, salt, access)?;
            self.check(&connection).map(|()| connection)
        };
        // Without a log there was no write to the first page: its salt is right, or it was
        // altered.
        let salt_of_key = has_log(&path).then(|| with(Salt::OfKey));
        let connection = match salt_of_key.and_then(Result::ok) {
            Some(connection) => connection,
            None => with(Salt::Stored).map_err(foreign_if_damaged)?,
        };
        settle(&connection)?;
        if access == Access::Write {
            // The first read has made a log where there was none. SQLite syncs its name with the
            // first commit and goes on where that fails.
            sync_parent(&path)?;
        }
        Ok(connection)
    }

    fn fill(&self, path: &Path, key: &SecretKey, schema: &str) -> Result<()> {
        // SQLite would make it readable for others, and its log and index like it.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| StoreError::io("create a database", path, error))?;
        let connection = connect(path, key, Salt::OfKey, Access::Write)?;
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE;
             {schema}
             PRAGMA application_id = {};
             PRAGMA user_version = {};
             COMMIT;
             PRAGMA journal_mode = WAL;",
            self.application_id, self.format_version
        ))?;
        connection
            .close()
            .map_err(|(_, error)| StoreError::from(error))?;
        File::open(path)
            .and_then(|file| file.sync_all())
            .map_err(|error| StoreError::io("sync a new database", path, error))
    }

    /// The first read of a database: a wrong key shows here.
    fn check(&self, connection: &Connection) -> Result<()> {
        let read = |pragma| connection.query_row(pragma, (), |row| row.get::<_, i32>(0));
        if read("PRAGMA application_id")? != self.application_id {
            return Err(StoreError::Foreign);
        }
        let found = read("PRAGMA user_version")?;
        if found > self.format_version {
            return Err(StoreError::NewerFormat {
                found,
                known: self.format_version,
            });
        }
        if found < 1 {
            return Err(StoreError::Foreign);
        }
        Ok(())
    }
}

/// Before anything there is opened: another process may have the database of that name open, and
/// its log must neither be copied nor locked.
fn assure_own_folder(path: &Path) -> Result<()> {
    check_own_folder(path).map_err(|error| StoreError::io("find a database", path, error))
}

fn foreign_if_damaged(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { .. } => StoreError::Foreign,
        other => other,
    }
}

/// In the company of whom a connection is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Write,
    Read,
    /// It is not open elsewhere, and nothing may change.
    Still,
}

/// Opens the file and hands it the key.
fn connect(path: &Path, key: &SecretKey, salt: Salt, access: Access) -> Result<Connection> {
    static MEMORY: Once = Once::new();
    MEMORY.call_once(|| {
        zeroize_what_sqlite_frees();
        cipher::limit_memory(DATABASE_MEMORY_BYTES);
        let_gaps_be_zeroized();
    });
    // Each connection is used by one thread at a time, so SQLite needs no mutex of its own.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let read_only = flags | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let excluding = || {
        let read_write = flags | OpenFlags::SQLITE_OPEN_READ_WRITE;
        Connection::open_with_flags_and_vfs(path, read_write, c"unix-excl")
    };
    let connection = match access {
        // Without a log, one would be made; not so for what is declared never to change.
        Access::Still if !has_log(path) => {
            let uri = read_only | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(immutable_uri(path), uri)?
        }
        // For this process alone, with the log's index in its memory, where no full disk reaches
        // it: that of a file is mapped into memory, and a page of it that finds no room ends the
        // process. Who reads has to open it likewise, or would make such a file.
        Access::Write | Access::Read | Access::Still => excluding()?,
    };
    let is_read_only = connection.is_readonly(rusqlite::MAIN_DB)?;
    let connection = match access {
        Access::Write if is_read_only => return Err(StoreError::DiskReadOnly),
        // A medium that takes no writes: no lock that excludes others can be had there, nor is one
        // needed. The connection has an index of its own, and knows of no later commit.
        Access::Read | Access::Still if is_read_only && has_log(path) => {
            let alone = Connection::open_with_flags_and_vfs(path, read_only, c"unix-none")?;
            alone.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
            alone
        }
        _ => connection,
    };
    if access != Access::Write {
        connection.execute_batch("PRAGMA query_only = ON")?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    }
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // What SQLCipher has to say goes to our errors, not to standard error.
    connection.execute_batch("PRAGMA cipher_log_level = NONE")?;
    cipher::set_key(&connection, key, salt)?;
    connection.execute_batch(&format!(
        "PRAGMA cipher_page_size = {PAGE_BYTES};
         PRAGMA cipher_hmac_algorithm = HMAC_SHA256;
         PRAGMA temp_store = MEMORY;
         PRAGMA synchronous = FULL;
         PRAGMA secure_delete = ON;"
    ))?;
    Ok(connection)
}

/// Settings that need the key to be right, or that only working connections need.
fn settle(connection: &Connection) -> Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.execute_batch(&format!(
        "PRAGMA trusted_schema = OFF;
         PRAGMA cell_size_check = ON;
         PRAGMA mmap_size = 0;
         PRAGMA foreign_keys = OFF;
         PRAGMA cache_size = -{PAGE_CACHE_KIB};
         PRAGMA journal_size_limit = {JOURNAL_KEPT_BYTES};
         PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};"
    ))?;
    Ok(())
}

fn immutable_uri(path: &Path) -> String {
    let escape = |byte: &u8| match byte {
        b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
            char::from(*byte).to_string()
        }
        other => format!("%{other:02x}"),
    };
    let escaped: String = path.as_os_str().as_bytes().iter().map(escape).collect();
    format!("file:{escaped}?immutable=1")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(suffix);
    file.into()
}

/// Absolute, for SQLite would take a relative path that begins with `file:` as a URI.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| StoreError::io("find a database", path, error))
}

fn remove_if_there(path: &Path) -> Result<()> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        match fs::remove_file(with_suffix(path, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(StoreError::io("remove an unfinished database", path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    sync_folder(parent).map_err(|error| StoreError::io("sync a folder", parent, error))
}
