//! The files in the folder of a gateway.

use std::fs;
use std::path::Path;

use coffer_store::UNFINISHED;

use crate::backup::BACKUP_FILE;
use crate::data_folder::{ENGINE_FILE, failed};
use crate::error::Result;

/// What stays in its place in a cache whose log is there.
pub(super) const KEPT: [&str; 7] = [
    ENGINE_FILE,
    UNFINISHED,
    "tls",
    "lock",
    "lost+found",
    "credentials",
    BACKUP_FILE,
];

/// Leaves only blobs.
pub(super) fn empty_buckets(buckets: &Path) -> Result<()> {
    for bucket in entries_of(buckets)? {
        for entry in entries_of(&bucket.path())? {
            if entry.file_name() != "blobs" {
                remove(&entry.path())?;
            }
        }
    }
    Ok(())
}

pub(super) fn entries_of(folder: &Path) -> Result<Vec<fs::DirEntry>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(failed("read", folder))
}

pub(super) fn remove(path: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let removed = if is_folder {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.map_err(failed("remove", path))
}
