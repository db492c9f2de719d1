//! What can go wrong in the store.

use std::io;
use std::path::{Path, PathBuf};

use coffer_seal::{BlobId, BucketId};
use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::admission::OverQuota;

/// Why the store did not do what was asked. No variant holds or shows an object's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No space is left, or a quota is used up.
    #[error("the storage is full")]
    Full,
    /// The file system takes no writes.
    #[error("the file system is read-only")]
    DiskReadOnly,
    /// A log that was left can't be made durable, for there is no room for a copy of it.
    #[error("no room to make the log durable: free {needed_bytes} bytes")]
    NoRoomForLog {
        /// How long the copy is.
        needed_bytes: u64,
    },
    /// A commit failed half-way: what was written may stand, or not. Whatever it would have made
    /// superfluous, and whatever it needs, must stay.
    #[error("it is in doubt whether this was stored: the commit failed half-way")]
    InDoubt,
    /// A write would pass a limit; it was not done.
    #[error(transparent)]
    OverQuota(Box<OverQuota>),
    /// A write's precondition does not hold.
    #[error("the precondition does not hold")]
    PreconditionFailed,
    /// A write's precondition asks for an object, and there is none.
    #[error("the precondition asks for an object, and there is none")]
    NothingToMatch,
    /// A retention or a hold keeps the version as it is.
    #[error("the version is locked")]
    Locked,
    /// There is no multipart upload of this id.
    #[error("there is no such upload")]
    NoSuchUpload,
    /// A part that was to be completed is not there, or has another entity tag.
    #[error("part {number} is missing or has changed")]
    PartChanged {
        /// Its number.
        number: u32,
    },
    /// What is stored is not what was stored: altered, cut off or missing.
    #[error("damaged: {what} (bucket {bucket})")]
    Damaged {
        /// What does not open: "catalog", "blob", …
        what: &'static str,
        /// In which bucket; all zeros for what belongs to none.
        bucket: BucketId,
        /// Which blob, when it is one.
        blob: Option<BlobId>,
    },
    /// A blob is not in the cache, and did not come from where it is.
    #[error("this blob is not in the cache, and could not be fetched: {problem}")]
    NotFetched {
        /// What the store said, or that it said nothing.
        problem: String,
    },
    /// Written by a newer version of coffer.
    #[error("written in format {found}; this version of coffer knows formats up to {known}")]
    NewerFormat {
        /// The format found.
        found: i32,
        /// The newest format known.
        known: i32,
    },
    /// A database that does not open: of another program, sealed under another key, or damaged in
    /// its first page; these can't be told apart.
    #[error("not a database of coffer's, or sealed under another key, or its head is damaged")]
    Foreign,
    /// There is already something where a new database or blob was to be made.
    #[error("there is already a database here")]
    Exists,
    /// A write to what was opened for reading only.
    #[error("opened for reading only")]
    ReadOnly,
    /// Another file is in the place of a catalog that is open, or it has become an older one: it is
    /// read and written no more.
    #[error("the catalog's file was replaced while it was open")]
    Replaced,
    /// The catalog has been closed.
    #[error("the catalog is closed")]
    Closed,
    /// The transaction was rolled back because of another write in it. Such a write is tried again,
    /// so only the writer meets this.
    #[error("rolled back with another write")]
    Broken,
    /// More bytes than a blob can hold, or a range outside of it.
    #[error("outside of what a blob can hold")]
    OutOfRange,
    /// What came to be stored as it is, sealed elsewhere, does not open under its key.
    #[error("what was sent is not sealed as it was to be")]
    NotSealed,
    /// The operating system refused.
    #[error("{op} ({}): {source}", path.display())]
    Io {
        /// What was tried.
        op: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database refused.
    #[error("the database{} answered: {} (code {code})", told(path), ffi::code_to_str(*code))]
    Database {
        /// SQLite's extended result code.
        code: i32,
        /// Its file, where that is known.
        path: Option<PathBuf>,
    },
}

/// Short for results of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Belongs to no bucket.
pub(crate) const NO_BUCKET: BucketId = BucketId([0; 16]);

impl StoreError {
    /// An error of the system during `op`, of this file or folder; a full disk, or a read-only one,
    /// is recognised as such.
    pub(crate) fn io(
        op: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::ReadOnlyFilesystem => Self::DiskReadOnly,
            _ => Self::Io {
                op,
                path: path.into(),
                source,
            },
        }
    }

    /// Says of which file the database is that refused.
    #[must_use]
    pub fn of_file(self, path: &Path) -> Self {
        match self {
            Self::Database { code, path: None } => Self::Database {
                code,
                path: Some(path.to_owned()),
            },
            other => other,
        }
    }

    /// Says in which bucket the damage is.
    pub(crate) fn of_bucket(self, bucket: BucketId) -> Self {
        match self {
            Self::Damaged { what, blob, .. } => Self::Damaged { what, bucket, blob },
            other => other,
        }
    }

    pub(crate) fn damaged_catalog() -> Self {
        Self::Damaged {
            what: "catalog",
            bucket: NO_BUCKET,
            blob: None,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let failure = match &error {
            rusqlite::Error::SqliteFailure(failure, _) => failure,
            rusqlite::Error::SqlInputError { error, .. } => error,
            // Values of the wrong shape: the statements are fixed and tested, so it is the file.
            _ => return Self::damaged_catalog(),
        };
        match failure.code {
            ErrorCode::DiskFull => Self::Full,
            // No connection that only reads is asked to write.
            ErrorCode::ReadOnly => Self::DiskReadOnly,
            ErrorCode::OperationInterrupted => Self::Closed,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Self::damaged_catalog(),
            // What SQLCipher answers to whatever is asked after a page whose seal does not verify.
            ErrorCode::OutOfMemory => Self::damaged_catalog(),
            // SQLCipher tells a page whose seal does not verify by the plain SQLITE_ERROR. It
            // otherwise means a faulty statement, and ours are fixed and tested.
            ErrorCode::Unknown if failure.extended_code == ffi::SQLITE_ERROR => {
                Self::damaged_catalog()
            }
            _ => Self::Database {
                code: failure.extended_code,
                path: None,
            },
        }
    }
}

/// The file of a database, where it is known, before a verb.
fn told(path: &Option<PathBuf>) -> String {
    let path = path.as_ref();
    path.map_or_else(String::new, |path| format!(" {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_database_refuses_is_told_in_words() {
        let code = ffi::SQLITE_IOERR_WRITE;
        let path = None;
        let error = StoreError::Database { code, path };
        let told = error.to_string();
        assert_eq!(told, "the database answered: disk I/O error (code 778)");
        let told = error.of_file(Path::new("/data/system.db")).to_string();
        let known = "the database /data/system.db answered: disk I/O error (code 778)";
        assert_eq!(told, known);
    }

    #[test]
    fn what_the_system_refuses_is_told_with_its_file() {
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        let told = StoreError::io("open a database", "/data/system.db", refused).to_string();
        assert_eq!(told, "open a database (/data/system.db): permission denied");
    }
}
