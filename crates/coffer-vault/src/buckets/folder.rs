//! Folders of buckets: made, and removed with what is left in them.

use std::fs::{DirBuilder, DirEntry};
use std::os::unix::fs::DirBuilderExt;

use coffer_durable::sync_folder;
use coffer_seal::BucketId;

use crate::data_folder::{Folder, failed};
use crate::error::Result;
use crate::limits::EMPTY_FOLDER_AGE;
use crate::vault::Inner;

pub(crate) fn make_bucket_folder(inner: &Inner, id: BucketId) -> Result<()> {
    let buckets = inner.folder.buckets();
    let dir = inner.folder.bucket(id);
    Folder::assure_own(&dir)?;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(failed("make the bucket's folder", &dir))?;
    sync_folder(&buckets).map_err(failed("sync", &buckets))?;
    sync_folder(inner.folder.path()).map_err(failed("sync", inner.folder.path()))
}

/// Removes what was made of a bucket that has no row: the folder first, for its key alone tells of
/// it.
pub(crate) fn unmake(inner: &Inner, id: BucketId) -> Result<()> {
    remove_folder(inner, id)?;
    if inner.keystore.holds_bucket(id) {
        Ok(inner.keystore.destroy_bucket(id)?)
    } else {
        Ok(())
    }
}

/// Removes the folder of a bucket that is doomed. One whose key is there stays: the key is about to
/// be destroyed, or an import has brought it back.
pub(crate) fn remove_doomed_folder(inner: &Inner, id: BucketId) -> Result<()> {
    if inner.keystore.holds_bucket(id) {
        return Ok(());
    }
    remove_folder(inner, id)?;
    inner.system.forget_doomed(id)
}

/// Removes folders of buckets whose making ended before they had a key: nothing is in them. One
/// that is young may be on its way here, from another server.
pub(crate) fn remove_empty_folders(inner: &Inner) -> Result<()> {
    let buckets = inner.folder.buckets();
    Folder::assure_own(&buckets)?;
    let entries = match std::fs::read_dir(&buckets) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed("look into", &buckets))?,
    };
    let mut has_removed = false;
    for entry in entries {
        let entry = entry.map_err(failed("look into", &buckets))?;
        let Some(id) = entry.file_name().to_str().and_then(BucketId::from_hex) else {
            continue;
        };
        let is_known = inner.keystore.holds_bucket(id) || inner.system.bucket_of_id(id).is_some();
        // It is not removed where anything is in it.
        if !is_known && is_old(&entry) && std::fs::remove_dir(entry.path()).is_ok() {
            tracing::info!(bucket = %id, "removed the empty folder of a bucket that was not made");
            has_removed = true;
        }
    }
    if has_removed {
        sync_folder(&buckets).map_err(failed("sync", &buckets))?;
    }
    Ok(())
}

fn is_old(entry: &DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age >= EMPTY_FOLDER_AGE)
}

fn remove_folder(inner: &Inner, id: BucketId) -> Result<()> {
    let dir = inner.folder.bucket(id);
    Folder::assure_own(&dir)?;
    match std::fs::remove_dir_all(&dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed("remove", &dir)(error));
        }
        _ => {}
    }
    inner.open_buckets.forget_files(id);
    // Or a power cut brings the folder back when nothing tells of it any more.
    let buckets = inner.folder.buckets();
    sync_folder(&buckets).map_err(failed("sync", &buckets))
}
