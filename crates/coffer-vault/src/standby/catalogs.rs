//! Catalogs and their blobs: only what is behind the last state is fetched.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use coffer_durable::{sync_folder, write_file_atomically};
use coffer_replica::{BucketState, CopyReader};
use coffer_seal::BucketId;
use coffer_store::{CATALOG_FILE, Catalog};
use serde::{Deserialize, Serialize};

use super::{Standby, standby_folder};
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::error::{Result, VaultError};
use crate::replica::{Work, new_file, sync_folders};

/// Which state a catalog was brought to, and as which file: if that is another one, this was
/// written before a stop in between, and tells nothing.
#[derive(Serialize, Deserialize)]
struct Reached {
    inode: u64,
    state: BucketState,
}

impl Standby {
    /// Brings one bucket up to a head: its blobs first, unless there is a cache of them, then its
    /// catalog in one step.
    pub(super) async fn fetch_bucket(
        &mut self,
        reader: &CopyReader,
        id: BucketId,
        state: &BucketState,
    ) -> Result<()> {
        let is_whole = !self.held.missing.contains_key(&id);
        if is_whole && self.held.buckets.get(&id) == Some(state) {
            return Ok(());
        }
        let data = self.data().to_owned();
        Folder::assure_own(&data)?;
        let before = blocking(move || catalog_there(&data, id)).await?;
        let is_there = before.as_ref() == Some(state);
        let building = standby_folder(self.data())
            .join("building")
            .join(id.to_string());
        let folder = self.data().join("buckets").join(id.to_string());
        let (from, to) = (folder.join(CATALOG_FILE), building.clone());
        let has_before = before.is_some();
        let file = blocking(move || begin(&from, &to, has_before)).await?;
        if !is_there {
            reader
                .catalog_after(id, state, before.as_ref(), Some(&file))
                .await?;
        }
        if self.vault.cache.is_some() {
            // They are fetched when they are asked for.
            let blobs = folder.join("blobs");
            blocking(move || fs::create_dir_all(&blobs).map_err(failed("make", &blobs))).await?;
        } else {
            self.fetch_blobs(reader, id, (&building, &folder)).await?;
        }
        let data = self.data().to_owned();
        let (state, inode) = (state.clone(), inode_of(&file)?);
        let reached = Reached {
            inode,
            state: state.clone(),
        };
        blocking(move || finish(&data, id, &building, &reached)).await?;
        self.held.buckets.insert(id, state);
        Ok(())
    }

    async fn fetch_blobs(
        &mut self,
        reader: &CopyReader,
        id: BucketId,
        (building, folder): (&Path, &Path),
    ) -> Result<()> {
        self.room.filling = Some(id);
        let Some(reached) = &self.reached else {
            return Err(VaultError::ShuttingDown);
        };
        let key = reached.keystore.bucket_key(id)?;
        let catalog = Catalog::open_read_only(building, &key.catalog_key()).await?;
        if self.room.is_short
            && let Err(error) = self.remove_unnamed(id, Some(&catalog)).await
        {
            tracing::warn!(%error, bucket = %id, "blobs that no state needs are left");
        }
        // The state gets a catalog of its own when it is opened, and the next is made of it.
        let catalog_bytes = fs::metadata(building.join(CATALOG_FILE)).map_or(0, |of| of.len());
        let work = Work::new(reader, &self.vault.data, &reached.keystore);
        let mut work = work.keeping_free(catalog_bytes.saturating_mul(2));
        let missing = work.blobs(id, &catalog, folder, &mut |_| ()).await;
        catalog.close().await;
        let missing = missing?;
        let fetched_bytes = work.fetched_bytes;
        let folder = folder.to_owned();
        blocking(move || {
            let blobs = folder.join("blobs");
            fs::create_dir_all(&blobs).map_err(failed("make", &blobs))?;
            sync_folders(&folder)
        })
        .await?;
        if missing.count > 0 {
            self.held.missing.insert(id, missing.count);
        } else {
            self.held.missing.remove(&id);
        }
        self.link.change(|told| told.fetched_bytes += fetched_bytes);
        self.room.filling = None;
        Ok(())
    }
}

fn segment_file(data: &Path, id: BucketId) -> PathBuf {
    let segments = standby_folder(data).join("segments");
    segments.join(id.to_string())
}

/// The state that the catalog in the folder is of, if that is known.
fn catalog_there(data: &Path, id: BucketId) -> Result<Option<BucketState>> {
    let Ok(text) = fs::read(segment_file(data, id)) else {
        return Ok(None);
    };
    let path = data.join("buckets").join(id.to_string()).join(CATALOG_FILE);
    let reached = serde_json::from_slice::<Reached>(&text).ok();
    let inode = fs::metadata(&path).map(|found| found.ino()).ok();
    let reached = reached.filter(|reached| Some(reached.inode) == inode);
    Ok(reached.map(|reached| reached.state))
}

/// A file to put the next catalog together in, from a copy of the one before, if there is one.
fn begin(from: &Path, building: &Path, has_before: bool) -> Result<File> {
    let file = new_file(building, CATALOG_FILE)?;
    if !has_before {
        return Ok(file);
    }
    let to = building.join(CATALOG_FILE);
    // Shares blocks where the file system can.
    fs::copy(from, &to).map_err(failed("copy", from))?;
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).open(&to);
    file.map_err(failed("open", &to))
}

fn inode_of(file: &File) -> Result<u64> {
    let found = file.metadata().map_err(|_| VaultError::Damaged)?;
    Ok(found.ino())
}

/// Puts a catalog in the place of the one before.
fn finish(data: &Path, id: BucketId, building: &Path, reached: &Reached) -> Result<()> {
    Folder::assure_own(data)?;
    let path = segment_file(data, id);
    let folder = path.parent().unwrap_or(data);
    fs::create_dir_all(folder).map_err(failed("make", folder))?;
    let text = serde_json::to_vec(reached).map_err(|_| VaultError::Damaged)?;
    let written = write_file_atomically(&path, &text).map_err(std::io::Error::from);
    written.map_err(failed("write", &path))?;
    let built = building.join(CATALOG_FILE);
    let file = File::open(&built).and_then(|file| file.sync_all());
    file.map_err(failed("sync", &built))?;
    let bucket = data.join("buckets").join(id.to_string());
    let to = bucket.join(CATALOG_FILE);
    fs::rename(&built, &to).map_err(failed("rename", &built))?;
    sync_folder(&bucket).map_err(failed("sync", &bucket))?;
    fs::remove_dir_all(building).map_err(failed("remove", building))
}
