//! The write-ahead log that a failure left, before it is believed.
//!
//! What is read from a log need not be on the disk. A process that was killed may have left frames
//! that were never synced; and after a sync that failed, Linux takes the pages for written, so that
//! a later sync succeeds without them. What builds on such a log (new commits behind, a sweep of
//! what it no longer refers to) would lose it with the next power cut. So what is read is written
//! to a copy, synced, and put in the log's place while no connection has it open. Never over the
//! log itself: a power cut may spoil what is being written over, and what was committed stands
//! there alone. Without room for the copy the log is not believed.

mod frames;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use coffer_durable::{check_own_folder, sync_folder};

use crate::error::{NO_BUCKET, Result, StoreError};
use crate::limits::LOG_PIECE_BYTES;

/// The file of a database's log.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push("-wal");
    file.into()
}

/// Whether commits wait in the log that the database itself does not have yet.
pub(crate) fn has_log(path: &Path) -> bool {
    fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0)
}

/// What is told of a log that is damaged before its end.
pub const LOG_DAMAGED: &str =
    "catalog: its log is damaged, and what was committed lies behind the damage";

/// Takes over what a process before this one left in the log of the database at `path`, which no
/// connection has open: makes sure that nothing in it would be passed over in silence, and makes
/// it durable.
///
/// # Errors
/// [`StoreError::Damaged`] when there are commits behind a damaged place,
/// [`StoreError::NoRoomForLog`]. Nothing is changed then.
pub(crate) fn take_over(path: &Path) -> Result<()> {
    match File::open(log_of(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => {
            let failed_log = |error| failed(&log_of(path), error);
            let log = opened.map_err(failed_log)?;
            let database = File::open(path).map_err(|error| failed(path, error))?;
            if frames::has_lost_commits(&log, &database).map_err(failed_log)? {
                return Err(StoreError::Damaged {
                    what: LOG_DAMAGED,
                    bucket: NO_BUCKET,
                    blob: None,
                });
            }
        }
    }
    DurableCopy::make(path)?.put()
}

/// A durable copy of a log, to be put in its place.
#[must_use]
pub(crate) struct DurableCopy {
    log: PathBuf,
    /// `None` where there is no log.
    copy: Option<PathBuf>,
}

impl DurableCopy {
    /// Copies the log of the database at `path`, which no one writes to meanwhile; others may read.
    pub(crate) fn make(path: &Path) -> Result<Self> {
        check_own_folder(path).map_err(|error| failed(path, error))?;
        let log = log_of(path);
        let mut copy = log.clone().into_os_string();
        copy.push(".new");
        let copy = PathBuf::from(copy);
        let copied = File::open(&log).and_then(|from| copy_durably(from, &copy));
        if copied.is_err() {
            // What it may have of it, or of a start before this one.
            let _ = fs::remove_file(&copy);
        }
        match copied {
            Ok(()) => Ok(Self {
                log,
                copy: Some(copy),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { log, copy: None }),
            Err(error) if is_full(&error) => {
                let needed_bytes = fs::metadata(&log).map_or(0, |log| log.len());
                let log = log.display();
                tracing::error!(%log, needed_bytes, "no room to make a left log durable");
                Err(StoreError::NoRoomForLog { needed_bytes })
            }
            Err(error) => Err(failed(&log, error)),
        }
    }

    /// Puts it in the log's place. No connection may have the log open.
    pub(crate) fn put(self) -> Result<()> {
        let Some(copy) = self.copy else {
            return Ok(());
        };
        let failed = |error| failed(&self.log, error);
        check_own_folder(&self.log).map_err(failed)?;
        if let Err(error) = fs::rename(&copy, &self.log) {
            let _ = fs::remove_file(&copy);
            return Err(failed(error));
        }
        sync_folder(folder_of(&self.log)).map_err(failed)
    }
}

fn is_full(error: &io::Error) -> bool {
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    kinds.contains(&error.kind())
}

fn copy_durably(mut from: File, copy: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut to = options.open(copy)?;
    let mut piece = vec![0; LOG_PIECE_BYTES];
    loop {
        let length = from.read(&mut piece)?;
        if length == 0 {
            return to.sync_all();
        }
        to.write_all(&piece[..length])?;
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn failed(path: &Path, error: io::Error) -> StoreError {
    StoreError::io("make a database's log durable", path, error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    /// A power cut may spoil what is written over.
    #[test]
    fn a_log_that_was_left_is_never_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        take_over(&path).unwrap();
        assert!(!has_log(&path), "there was none");
        fs::write(&path, b"").unwrap();
        fs::write(log_of(&path), b"what was committed").unwrap();
        fs::write(
            folder.path().join("some.db-wal.new"),
            b"longer than that by far",
        )
        .unwrap();
        let before = File::open(log_of(&path)).unwrap();
        fs::hard_link(log_of(&path), folder.path().join("before")).unwrap();
        take_over(&path).unwrap();
        assert_eq!(fs::read(log_of(&path)).unwrap(), b"what was committed");
        let [old, new] = [before, File::open(log_of(&path)).unwrap()]
            .map(|file| std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap()));
        assert_ne!(old, new, "another file has its name");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
