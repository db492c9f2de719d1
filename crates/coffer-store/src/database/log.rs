//! The write-ahead log that a failure left, before it is believed.
//!
//! What is read from a log need not be on the disk. A process that was killed may have left frames
//! that were never synced; and after a sync that failed, Linux takes the pages for written, so that
//! a later sync succeeds without them. What builds on such a log (new commits behind, a sweep of
//! what it no longer refers to) would lose it with the next power cut. So it is written once more
//! and synced: what another process left, to a copy that takes its place; what this one's readers
//! have open, byte for byte where it is, which makes its pages ones to be written. Whatever was
//! read is what is on the disk then.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coffer_durable::sync_folder;

use crate::database::log_frames;
use crate::error::{NO_BUCKET, Result, StoreError};
use crate::limits::LOG_PIECE_BYTES;

/// The file of a database's log.
fn log_of(path: &Path) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push("-wal");
    file.into()
}

/// Whether commits wait in the log that the database itself does not have yet.
pub(crate) fn has_log(path: &Path) -> bool {
    fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0)
}

/// Takes over what a process before this one left in the log of the database at `path`: makes sure
/// that nothing in it would be passed over in silence, and makes it durable.
///
/// # Errors
/// [`StoreError::Damaged`] when there are commits behind a damaged place. Nothing is changed then.
pub(crate) fn take_over(path: &Path) -> Result<()> {
    let log = match File::open(log_of(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return renew(path),
        opened => opened.map_err(failed)?,
    };
    let database = File::open(path).map_err(failed)?;
    if log_frames::has_lost_commits(&log, &database).map_err(failed)? {
        return Err(StoreError::Damaged {
            what: "catalog: its log is damaged, and what was committed lies behind the damage",
            bucket: NO_BUCKET,
            blob: None,
        });
    }
    renew(path)
}

/// Makes the log of the database at `path` durable, which no connection has open: by a copy in its
/// place, for a power cut may spoil what is being written over, and what was committed stands there
/// alone. Where there is no room for a copy, it is made durable where it is.
fn renew(path: &Path) -> Result<()> {
    let log = log_of(path);
    let mut copy = log.clone().into_os_string();
    copy.push(".new");
    let copy = PathBuf::from(copy);
    let renewed = File::open(&log).and_then(|from| copy_durably(from, &copy));
    let renewed = renewed.and_then(|()| fs::rename(&copy, &log));
    if renewed.is_err() {
        // What it may have of it, or of a start before this one.
        let _ = fs::remove_file(&copy);
    }
    match renewed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if is_full(&error) => make_durable(path),
        renewed => renewed
            .and_then(|()| sync_folder(folder_of(path)))
            .map_err(failed),
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

/// Makes the log of the database at `path` durable as it is, and that there is one. No one may
/// write to it meanwhile; others may read.
pub(crate) fn make_durable(path: &Path) -> Result<()> {
    let file = match OpenOptions::new().read(true).write(true).open(log_of(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(failed)?,
    };
    rewrite(&file).map_err(failed)?;
    sync_folder(folder_of(path)).map_err(failed)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn rewrite(file: &File) -> io::Result<()> {
    let mut piece = vec![0; LOG_PIECE_BYTES];
    let mut offset_bytes = 0;
    loop {
        let length = file.read_at(&mut piece, offset_bytes)?;
        if length == 0 {
            return file.sync_data();
        }
        file.write_all_at(&piece[..length], offset_bytes)?;
        offset_bytes += length as u64;
    }
}

fn failed(error: io::Error) -> StoreError {
    StoreError::io("make a database's log durable", error)
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
        renew(&path).unwrap();
        assert!(!has_log(&path), "there was none");
        fs::write(log_of(&path), b"what was committed").unwrap();
        fs::write(
            folder.path().join("some.db-wal.new"),
            b"longer than that by far",
        )
        .unwrap();
        let before = File::open(log_of(&path)).unwrap();
        fs::hard_link(log_of(&path), folder.path().join("before")).unwrap();
        renew(&path).unwrap();
        assert_eq!(fs::read(log_of(&path)).unwrap(), b"what was committed");
        let [old, new] = [before, File::open(log_of(&path)).unwrap()]
            .map(|file| std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap()));
        assert_ne!(old, new, "another file has its name");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
