//! Room on the disk of a standby: what no state needs goes after a round that found too little, and
//! something is kept free for what states need.
//!
//! A round that fails has fetched blobs of a state that may never be served. Were they to stay, the
//! standby would be full of them for ever, whatever goes at the original. So after such a round go
//! pieces of files, and blobs that neither the state that is served nor the folder's catalogs name;
//! and of the bucket that found no room, once its next catalog is there, what that does not name
//! either. What it names stays: it is not to be fetched again.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use coffer_keys::BucketKey;
use coffer_seal::{BlobId, BucketId};
use coffer_store::{CATALOG_FILE, Catalog};

use super::states::{self, paths_in};
use super::{Standby, standby_folder};
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::error::{Result, VaultError};
use crate::limits::STANDBY_ROOM_EVERY;
use crate::open_buckets::UsedBucket;

/// What is known of the room on the disk.
#[derive(Default)]
pub(super) struct Room {
    /// Whether the last round found too little.
    pub(super) is_short: bool,
    /// The bucket whose blobs are being fetched.
    pub(super) filling: Option<BucketId>,
    /// When all buckets were gone through.
    made: Option<Instant>,
}

impl Standby {
    /// After a round that found no room: removes what no state needs.
    pub(super) async fn make_room(&mut self) {
        self.room.is_short = true;
        if let Err(error) = self.try_make_room().await {
            tracing::warn!(%error, "not all room was made for the next state");
        }
    }

    async fn try_make_room(&mut self) -> Result<()> {
        // A cache makes room by itself.
        let has_all_blobs = self.vault.cache.is_none();
        let data = self.data().to_owned();
        let buckets = blocking(move || remove_unfinished(&data, has_all_blobs)).await?;
        let made = self.room.made;
        let is_due = made.is_none_or(|made| made.elapsed() > STANDBY_ROOM_EVERY);
        if !has_all_blobs || !is_due {
            return Ok(());
        }
        self.room.made = Some(Instant::now());
        for id in buckets {
            // What was fetched of this one is of use, as far as the next round wants it.
            if self.room.filling == Some(id) {
                continue;
            }
            if let Err(error) = self.remove_unnamed(id, None).await {
                tracing::warn!(%error, bucket = %id, "blobs that no state needs are left");
            }
        }
        Ok(())
    }

    /// Removes blobs of a bucket that neither its catalog in the folder names, nor the state that
    /// is served, nor the catalog that is wanted.
    pub(super) async fn remove_unnamed(
        &self,
        id: BucketId,
        wanted: Option<&Catalog>,
    ) -> Result<()> {
        let folder = self.data().join("buckets").join(id.to_string());
        let served = self.served_bucket(id, &folder).await?;
        let own = if folder.join(CATALOG_FILE).exists() {
            let key = self.key_of(id).ok_or(VaultError::NoSuchBucket)?;
            Some(Catalog::open_read_only(&folder, &key.catalog_key()).await?)
        } else {
            None
        };
        let of_served = served.iter().map(|bucket| &bucket.catalog);
        let catalogs: Vec<&Catalog> = own.iter().chain(of_served).chain(wanted).collect();
        let removed = remove_unnamed_by(&catalogs, folder.join("blobs")).await;
        if let Some(own) = own {
            own.close().await;
        }
        removed
    }

    fn key_of(&self, id: BucketId) -> Option<BucketKey> {
        let reached = self.reached.as_ref();
        let key = reached.and_then(|reached| reached.keystore.bucket_key(id).ok());
        key.or_else(|| self.serving.upgrade()?.keystore.bucket_key(id).ok())
    }

    /// A bucket of the state that is served, where its catalog is another than the folder's.
    async fn served_bucket(&self, id: BucketId, folder: &Path) -> Result<Option<UsedBucket>> {
        let Some(inner) = self.serving.upgrade() else {
            return Ok(None);
        };
        if !inner.keystore.holds_bucket(id) || inner.system.bucket_of_id(id).is_none() {
            return Ok(None);
        }
        let inode = |folder: &Path| fs::metadata(folder.join(CATALOG_FILE)).map(|of| of.ino());
        if let (Ok(served), Ok(own)) = (inode(&inner.folder.bucket(id)), inode(folder))
            && served == own
        {
            return Ok(None);
        }
        let (open, keystore) = (&inner.open_buckets, &inner.keystore);
        Ok(Some(open.open(&inner.folder, keystore, id).await?))
    }
}

/// Whether it says that the disk is full.
pub(super) fn is_full(error: &VaultError) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    let is_kind = |error: &io::Error| kinds.contains(&error.kind());
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if matches!(
            cause.downcast_ref::<VaultError>(),
            Some(VaultError::StorageFull)
        ) || cause.downcast_ref::<io::Error>().is_some_and(is_kind)
        {
            return true;
        }
        next = cause.source();
    }
    false
}

/// Removes what a round left that was broken off, and gives the buckets that there are folders of.
fn remove_unfinished(data: &Path, of_blobs: bool) -> Result<Vec<BucketId>> {
    Folder::assure_own(data)?;
    states::clear_unfinished(data)?;
    for path in paths_in(&standby_folder(data).join("building"))? {
        fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
    }
    let mut unfinished = vec![data.join("system.new"), data.join("anchor.new")];
    unfinished.retain(|path| path.exists());
    unfinished.extend(new_in(&data.join("audit"))?);
    let mut buckets = Vec::new();
    for bucket in paths_in(&data.join("buckets"))? {
        let name = bucket.file_name().and_then(|name| name.to_str());
        buckets.extend(name.and_then(BucketId::from_hex));
        if of_blobs {
            for folder in paths_in(&bucket.join("blobs"))? {
                unfinished.extend(new_in(&folder)?);
            }
        }
    }
    for path in unfinished {
        fs::remove_file(&path).map_err(failed("remove", &path))?;
    }
    Ok(buckets)
}

/// Files that have not got their names.
fn new_in(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = paths_in(folder)?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "new"));
    Ok(paths)
}

/// Removes the blobs that none of these catalogs names: a folder of them at a time, so that memory
/// holds the names of one.
pub(super) async fn remove_unnamed_by(catalogs: &[&Catalog], blobs: PathBuf) -> Result<()> {
    for first in 0..=u8::MAX {
        let folder = blobs.join(format!("{first:02x}"));
        let mut files = blocking(move || Ok(files_in(&folder, first))).await?;
        for catalog in catalogs {
            if !files.is_empty() {
                leave_out_named(catalog, first, &mut files).await?;
            }
        }
        if files.is_empty() {
            continue;
        }
        blocking(move || {
            for path in files.into_values().flatten() {
                fs::remove_file(&path).map_err(failed("remove", &path))?;
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Takes those out that a catalog names.
async fn leave_out_named(
    catalog: &Catalog,
    first: u8,
    files: &mut BTreeMap<BlobId, Vec<PathBuf>>,
) -> Result<()> {
    let mut after = BlobId([0; 16]);
    after.0[0] = first;
    // The lowest id there can be is none that is given.
    let mut after = Some(after);
    loop {
        let page = catalog.blobs_after(after).await?;
        if page.is_empty() {
            return Ok(());
        }
        for (id, _) in page {
            if id.0[0] != first {
                return Ok(());
            }
            files.remove(&id);
            after = Some(id);
        }
    }
}

/// The blobs in a folder, with their files, of which one may have two.
fn files_in(folder: &Path, first: u8) -> BTreeMap<BlobId, Vec<PathBuf>> {
    let mut files = BTreeMap::<BlobId, Vec<PathBuf>>::new();
    let Ok(entries) = fs::read_dir(folder) else {
        return files;
    };
    let blob = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let id = BlobId::from_hex(&format!("{first:02x}{name}"));
        id.or_else(|| BlobId::from_hex(name))
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if let Some(id) = blob(&path) {
            files.entry(id).or_default().push(path);
        }
    }
    files
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_however_deep_it_is_told() {
        let of = |kind: ErrorKind| VaultError::Folder {
            action: "write",
            path: "keystore".to_owned(),
            source: io::Error::from(kind),
        };
        assert!(is_full(&VaultError::StorageFull));
        assert!(is_full(&of(ErrorKind::StorageFull)));
        assert!(is_full(&of(ErrorKind::QuotaExceeded)));
        assert!(!is_full(&of(ErrorKind::PermissionDenied)));
        assert!(!is_full(&VaultError::NoSuchBucket));
    }

    #[test]
    fn only_what_was_not_finished_goes_with_a_round() {
        let root = tempfile::tempdir().unwrap();
        let bucket = BucketId([7; 16]);
        let blobs = format!("buckets/{bucket}/blobs/ab");
        let left = [
            format!("{blobs}/cd"),
            "keystore.new".to_owned(),
            "audit/00000001.log".to_owned(),
            "standby/states/3/system.db".to_owned(),
        ];
        let gone = [
            format!("{blobs}/cd.new"),
            "system.new".to_owned(),
            "audit/head.new".to_owned(),
            "standby/states/4.new/system.db".to_owned(),
            format!("standby/building/{bucket}/catalog.db"),
        ];
        for name in left.iter().chain(&gone) {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let buckets = remove_unfinished(root.path(), true).unwrap();
        assert_eq!(buckets, [bucket]);
        let is_there = |name: &String| root.path().join(name).exists();
        assert!(left.iter().all(is_there) && !gone.iter().any(is_there));
    }
}
