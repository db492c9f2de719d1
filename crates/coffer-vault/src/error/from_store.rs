//! Errors of the store, and of files, as the vault tells them.

use std::io::ErrorKind;
use std::path::Path;

use coffer_store::version::Absent;
use coffer_store::{OverQuota, StoreError};
use rustix::io::Errno;

use super::{AdministrationError, CopyError, VaultError};

/// SQLITE_CANTOPEN.
const CANNOT_OPEN: i32 = 14;

/// Whether the system refused to open one more file.
pub(crate) fn is_out_of_files(error: &std::io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// Whether no file can be opened at the moment, for too many are.
pub fn files_run_out() -> bool {
    std::fs::File::open("/dev/null").is_err_and(|error| is_out_of_files(&error))
}

impl VaultError {
    /// Whether it comes of a file system that is read-only, and nothing was done.
    pub fn is_of_read_only_disk(&self) -> bool {
        if matches!(
            self,
            Self::EndNotRecorded(_)
                | Self::EndNotHeld(_)
                | Self::EraseUnsettled { .. }
                | Self::ReceiptUnsettled { .. }
        ) {
            return false;
        }
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let of_system = error.downcast_ref::<std::io::Error>();
            if matches!(error.downcast_ref(), Some(Self::StorageReadOnly))
                || of_system.is_some_and(|io| io.kind() == ErrorKind::ReadOnlyFilesystem)
            {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

impl VaultError {
    /// Says of which file the database is that refused.
    pub(crate) fn of_file(self, path: &Path) -> Self {
        match self {
            Self::Store(error) => Self::Store(error.of_file(path)),
            other => other,
        }
    }

    /// Why what is set of a bucket can't be read in its catalog: it may be that which is in doubt.
    pub(crate) fn of_setting(error: StoreError) -> Self {
        match error {
            StoreError::InDoubt => Self::BucketInDoubt,
            other => other.into(),
        }
    }
}

impl From<Absent> for VaultError {
    fn from(absent: Absent) -> Self {
        match absent {
            Absent::Object => Self::NoSuchObject,
            other => Self::NoVersion(other),
        }
    }
}

impl VaultError {
    /// Whether it says that what was asked for was done all the same.
    pub(crate) fn says_done(&self) -> bool {
        matches!(self, Self::EndNotRecorded(_) | Self::EndNotHeld(_))
    }

    /// Whether a refusal tells of what the bucket holds, or what has been set in its level.
    pub(crate) fn tells_what_is_stored(&self) -> bool {
        matches!(
            self,
            Self::NoSuchObject
                | Self::NoVersion(_)
                | Self::NoSuchUpload
                | Self::PreconditionFailed
                | Self::NothingToMatch
                | Self::InvalidPart { .. }
                | Self::PartTooSmall { .. }
                | Self::BucketNotEmpty
                | Self::Administration(
                    AdministrationError::Locked | AdministrationError::ConfigurationsFull { .. }
                )
                | Self::Store(StoreError::OverQuota(_))
        )
    }

    /// The quota that what was asked for would pass, if that is why it was refused.
    pub fn over_quota(&self) -> Option<&OverQuota> {
        match self {
            Self::Store(StoreError::OverQuota(over)) => Some(over),
            _ => None,
        }
    }
}

impl From<StoreError> for VaultError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::StorageFull,
            StoreError::DiskReadOnly => Self::StorageReadOnly,
            StoreError::NoRoomForLog { needed_bytes } => Self::NoRoomForLog {
                of: "a database".to_owned(),
                needed_bytes,
            },
            StoreError::InDoubt => Self::InDoubt,
            StoreError::PreconditionFailed => Self::PreconditionFailed,
            StoreError::NothingToMatch => Self::NothingToMatch,
            StoreError::Locked => Self::Administration(AdministrationError::Locked),
            StoreError::NoSuchUpload => Self::NoSuchUpload,
            StoreError::PartChanged { number } => Self::InvalidPart { number },
            StoreError::Damaged { .. } => Self::Damaged,
            StoreError::Replaced => Self::CatalogReplaced,
            StoreError::NotFetched { problem } => CopyError::NotFetched { problem }.into(),
            StoreError::Io { source, .. } if is_out_of_files(&source) => Self::OutOfFiles,
            // SQLite doesn't say why it could not open a file.
            StoreError::Database { code, .. } if code & 0xff == CANNOT_OPEN && files_run_out() => {
                Self::OutOfFiles
            }
            other => Self::Store(other),
        }
    }
}
