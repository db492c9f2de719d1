//! Fetching what a head names into a data folder, each piece checked before it counts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use coffer_durable::{now_ms, rfc3339, sync_folder};
use coffer_keys::{AnchorFile, Keystore};
use coffer_replica::{BucketState, CopyReader, ReplicaError};
use coffer_seal::{BlobId, BucketId, sealed_bytes};
use coffer_store::{BlobStore, CATALOG_FILE, Catalog, room_bytes_at};
use futures::StreamExt;
use futures::stream;

use super::files::new_file;
use super::missing::{Missing, is_of_blob};
use super::report::RestoreEvent;
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::error::{CopyError, Result, VaultError};
use crate::freshness::ANCHOR_FILE;
use crate::limits::COPY_BLOBS_AT_ONCE;
use crate::system::System;

/// A restore under way.
pub(crate) struct Work<'a> {
    reader: &'a CopyReader,
    data: &'a Path,
    keystore: &'a Keystore,
    names: HashMap<BucketId, String>,
    /// What is kept free on the disk beside its reserve, if anything is.
    spare_bytes: Option<u64>,
    pub(crate) blob_count: u64,
    pub(crate) fetched_bytes: u64,
    pub(crate) missing_count: u64,
}

impl<'a> Work<'a> {
    pub(crate) fn new(reader: &'a CopyReader, data: &'a Path, keystore: &'a Keystore) -> Self {
        Self {
            reader,
            data,
            keystore,
            names: HashMap::new(),
            spare_bytes: None,
            blob_count: 0,
            fetched_bytes: 0,
            missing_count: 0,
        }
    }

    /// Fetches no blob where less than this would be left on the disk, beside its reserve.
    pub(crate) fn keeping_free(self, bytes: u64) -> Self {
        Self {
            spare_bytes: Some(bytes),
            ..self
        }
    }

    fn assure_room(&self, bytes: u64) -> Result<()> {
        let spare_bytes = self.spare_bytes.map(|spare| spare.saturating_add(bytes));
        match spare_bytes {
            Some(wanted) if room_bytes_at(self.data) < wanted => Err(VaultError::StorageFull),
            _ => Ok(()),
        }
    }

    /// Learns what buckets are called. Where that can't be read, ids do, if no name is asked for.
    pub(super) fn read_names(&mut self, folder: &Folder, asked: &[String]) -> Result<()> {
        let system = System::open_read_only(&folder.system_db(), &self.keystore.system_key());
        match system {
            Ok(system) => {
                let rows = system.buckets().into_iter();
                self.names = rows
                    .map(|row| (row.id, row.name.as_str().to_owned()))
                    .collect();
                Ok(())
            }
            Err(error) if asked.iter().any(|name| BucketId::from_hex(name).is_none()) => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// The buckets that were asked for, by name or by id; all, if none was.
    pub(super) fn wanted(&self, asked: &[String]) -> Result<BTreeMap<BucketId, BucketState>> {
        let all = self.reader.head().buckets.iter();
        let mut all: BTreeMap<_, _> = all
            .filter_map(|(id, state)| Some((BucketId::from_hex(id)?, state.clone())))
            .collect();
        if asked.is_empty() {
            return Ok(all);
        }
        let mut wanted = BTreeMap::new();
        for name in asked {
            let called = |(id, called): (&BucketId, &String)| (called == name).then_some(*id);
            let id = self.names.iter().find_map(called);
            let id = id.or_else(|| BucketId::from_hex(name));
            let found = id.filter(|id| wanted.contains_key(id) || all.contains_key(id));
            let id = found.ok_or_else(|| CopyError::NoSuchBucket {
                name: name.clone(),
                as_of: rfc3339(self.reader.head().as_of_ms),
            })?;
            wanted.extend(all.remove(&id).map(|state| (id, state)));
        }
        Ok(wanted)
    }

    /// Tells of buckets that the copy has nothing of, where all are asked for. One that it had when
    /// `system.db` was put, as the anchor beside it says, was deleted since: a store without room
    /// is given a head without such, whose files are older.
    pub(super) fn tell_not_there(&self, asked: &[String], told: &mut impl FnMut(RestoreEvent)) {
        if !asked.is_empty() {
            return;
        }
        let anchor = AnchorFile::open_read_only(&self.data.join(ANCHOR_FILE), self.keystore).ok();
        let held = anchor.as_ref().and_then(AnchorFile::newest);
        let had = |id: &BucketId| held.is_some_and(|held| held.commits.contains_key(id));
        let has = &self.reader.head().buckets;
        for (id, name) in &self.names {
            let bucket = name.clone();
            if has.contains_key(&id.to_string()) {
                continue;
            }
            told(if had(id) {
                RestoreEvent::Removed { bucket }
            } else {
                RestoreEvent::NotThere { bucket }
            });
        }
    }

    /// Those that were not asked for, where some were.
    pub(super) fn left_out(
        &self,
        wanted: &BTreeMap<BucketId, BucketState>,
        asked: &[String],
    ) -> Vec<BucketId> {
        if asked.is_empty() {
            return Vec::new();
        }
        let of_head = self.reader.head().buckets.keys();
        let of_head = of_head.filter_map(|id| BucketId::from_hex(id));
        let all: BTreeSet<_> = of_head.chain(self.names.keys().copied()).collect();
        let is_left = |id: &BucketId| !wanted.contains_key(id);
        all.into_iter().filter(is_left).collect()
    }

    fn name_of(&self, id: BucketId) -> String {
        let name = self.names.get(&id);
        name.cloned().unwrap_or_else(|| id.to_string())
    }

    /// Restores a bucket. Whether the copy still has it.
    pub(super) async fn bucket(
        &mut self,
        id: BucketId,
        state: &BucketState,
        told: &mut impl FnMut(RestoreEvent),
    ) -> Result<bool> {
        let folder = self.data.join("buckets").join(id.to_string());
        let file = new_file(&folder, CATALOG_FILE)?;
        match self.reader.catalog(id, state, Some(&file)).await {
            Err(ReplicaError::Missing { .. }) if self.reader.is_removed(id).await? => {
                fs::remove_dir_all(&folder).map_err(failed("remove", &folder))?;
                let bucket = self.name_of(id);
                told(RestoreEvent::Removed { bucket });
                return Ok(false);
            }
            restored => drop(restored?),
        }
        drop(file);
        let key = self.keystore.bucket_key(id)?;
        let catalog = Catalog::open_read_only(&folder, &key.catalog_key()).await?;
        let missing = self.blobs(id, &catalog, &folder, told).await?;
        if missing.count > 0 {
            self.missing_count += missing.count;
            missing.tell(self.name_of(id), &catalog, told).await?;
        }
        let older = key.older_generation().unwrap_or(key.generation());
        let kept = [key.generation(), older];
        let key_count = catalog.count_of_neither_generation(kept).await?;
        if key_count > 0 {
            let bucket = self.name_of(id);
            told(RestoreEvent::Rotated { bucket, key_count });
        }
        catalog.close().await;
        let sync = move || {
            sync_folders(&folder)?;
            Ok(())
        };
        blocking(sync).await?;
        Ok(true)
    }

    /// Fetches a bucket's blobs.
    pub(crate) async fn blobs(
        &mut self,
        id: BucketId,
        catalog: &Catalog,
        folder: &Path,
        told: &mut impl FnMut(RestoreEvent),
    ) -> Result<Missing> {
        let blobs = BlobStore::new(folder, id);
        let (mut after, mut missing) = (None, Missing::default());
        loop {
            let page = catalog.blobs_after(after).await?;
            let Some((last, _)) = page.last() else {
                return Ok(missing);
            };
            after = Some(*last);
            let this = &*self;
            let blobs = &blobs;
            let fetched = stream::iter(page.iter().copied())
                .map(|blob| async move { (blob.0, this.blob(blobs, id, blob).await) });
            let mut fetched = fetched.buffer_unordered(COPY_BLOBS_AT_ONCE);
            let (mut blob_count, mut bytes) = (0, 0);
            while let Some((id, fetched)) = fetched.next().await {
                match fetched {
                    Ok(length_bytes) => bytes += length_bytes,
                    Err(error) if is_of_blob(&error) => {
                        missing.add(id, error.to_string());
                        continue;
                    }
                    Err(error) => return Err(error),
                }
                blob_count += 1;
                told(RestoreEvent::Progress {
                    blob_count: self.blob_count + blob_count,
                    fetched_bytes: self.fetched_bytes + bytes,
                });
            }
            drop(fetched);
            self.blob_count += blob_count;
            self.fetched_bytes += bytes;
        }
    }

    /// Fetches a blob, unless it is there: it gets its name when it is whole and durable. How many
    /// bytes were fetched.
    async fn blob(
        &self,
        blobs: &BlobStore,
        bucket: BucketId,
        (id, plaintext_bytes): (BlobId, u64),
    ) -> Result<u64> {
        let path = blobs.path(id);
        let wanted_bytes = sealed_bytes(plaintext_bytes);
        let is_there = fs::metadata(&path).is_ok_and(|found| Some(found.len()) == wanted_bytes);
        if is_there {
            return Ok(0);
        }
        let (length_bytes, mut stream) = self.reader.blob(bucket, id).await?;
        if Some(length_bytes) != wanted_bytes {
            let object = CopyReader::blob_name(bucket, id);
            let problem = "it has another length";
            return Err(ReplicaError::Altered { object, problem }.into());
        }
        self.assure_room(length_bytes)?;
        let folder = path.parent().unwrap_or(self.data);
        let name = format!("{id}.new");
        let mut file = new_file(folder, &name)?;
        let unfinished = Unfinished(folder.join(name));
        let mut written_bytes = 0;
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            written_bytes += piece.len() as u64;
            // Others are fetched as well.
            self.assure_room(piece.len() as u64)?;
            file.write_all(&piece).map_err(failed("write", &path))?;
        }
        if written_bytes != length_bytes {
            let object = CopyReader::blob_name(bucket, id);
            let problem = "it is cut off";
            return Err(ReplicaError::Altered { object, problem }.into());
        }
        let finish = move || {
            file.sync_all().map_err(failed("sync", &path))?;
            fs::rename(&unfinished.0, &path).map_err(failed("rename", &path))
        };
        blocking(finish).await?;
        Ok(length_bytes)
    }

    pub(super) async fn files(&self) -> Result<()> {
        for (name, pieces) in &self.reader.head().files {
            let (folder, file_name) = match name.split_once('/') {
                Some(("audit", file)) => (self.data.join("audit"), file),
                None if ["system.db", "anchor"].contains(&name.as_str()) => {
                    (self.data.to_owned(), name.as_str())
                }
                // Of a later version.
                _ => continue,
            };
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if !file_name.bytes().all(is_plain) || file_name.starts_with('.') {
                continue;
            }
            let mut file: File = new_file(&folder, file_name)?;
            let path = folder.join(file_name);
            for piece in pieces {
                let bytes = self.reader.piece(piece).await?;
                file.write_all(&bytes).map_err(failed("write", &path))?;
            }
            file.sync_all().map_err(failed("sync", &path))?;
            sync_folder(&folder).map_err(failed("sync", &folder))?;
        }
        sync_folder(self.data).map_err(failed("sync", self.data))?;
        tracing::debug!(at_ms = now_ms(), "files are restored");
        Ok(())
    }
}

/// A file that is not whole: it is removed, unless it has another name by then.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes the names in a bucket's folder durable, and its own.
pub(crate) fn sync_folders(bucket: &Path) -> Result<()> {
    let synced = |path: &Path| sync_folder(path).map_err(failed("sync", path));
    let blobs = bucket.join("blobs");
    if blobs.exists() {
        for entry in fs::read_dir(&blobs).map_err(failed("read", &blobs))? {
            synced(&entry.map_err(failed("read", &blobs))?.path())?;
        }
        synced(&blobs)?;
    }
    synced(bucket)?;
    bucket.parent().map_or(Ok(()), synced)
}
