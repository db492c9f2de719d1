//! What shows that a folder was copied while it was written to: catalogs that name blobs which were
//! not copied, or not to their ends.

use coffer_keys::Keystore;
use coffer_store::{BlobCopies, BlobStore, Catalog};

use crate::data_folder::Folder;
use crate::error::{BackupError, Result};
use crate::system::{BucketRow, System};

/// Refuses a folder with such catalogs. It takes a while, and changes nothing. Blocks; within a
/// runtime.
///
/// # Errors
/// [`BackupError::NoConsistentCopy`].
pub(crate) fn refuse_gaps(folder: &Folder, keystore: &Keystore, system: &System) -> Result<()> {
    let (mut missing, mut unreadable) = (0, 0);
    for row in system.buckets() {
        // One that an earlier copy had left out, for its erase was ordered, or whose key is gone.
        let bound = system.lock_bound(&row);
        let is_destroyed = bound.as_ref().is_ok_and(|bound| bound.is_key_destroyed);
        if is_destroyed && !keystore.holds_bucket(row.id) {
            continue;
        }
        if bound.is_ok_and(|bound| bound.is_left_to_erase) && !folder.has_catalog(row.id) {
            continue;
        }
        let look = look(folder, keystore, &row);
        match tokio::runtime::Handle::current().block_on(look) {
            Ok(count) => missing += count,
            Err(error) => {
                tracing::debug!(%error, "a catalog of a copy can't be read");
                unreadable += 1;
            }
        }
    }
    if missing + unreadable == 0 {
        return Ok(());
    }
    let problem = format!(
        "it lacks {missing} blobs that its objects are in, and {unreadable} of \
                           its catalogs can't be read"
    );
    let path = folder.path().display().to_string();
    Err(BackupError::NoConsistentCopy { path, problem }.into())
}

async fn look(folder: &Folder, keystore: &Keystore, row: &BucketRow) -> Result<u64> {
    let (dir, key) = (folder.bucket(row.id), keystore.bucket_key(row.id)?);
    let catalog = Catalog::open_read_only(&dir, &key.catalog_key()).await?;
    let blobs = BlobStore::new(&dir, row.id);
    let (mut after, mut missing) = (None, 0);
    loop {
        let page = catalog.blobs_after(after).await?;
        let Some((last, _)) = page.last() else {
            catalog.close().await;
            return Ok(missing);
        };
        after = Some(*last);
        missing += BlobCopies::count_missing(&blobs, &page);
    }
}
