//! A bucket's folder of blobs.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use coffer_durable::{check_own_folder, sync_folder};
use coffer_seal::{BlobId, BucketId};
use parking_lot::{Mutex, MutexGuard};

use crate::blobs::blob_pins::Pins;
use crate::blobs::blob_tap::BlobTap;
use crate::blobs::cache::BlobCache;
use crate::blobs::path::{BLOBS_DIR, path_of};
use crate::error::{Result, StoreError};

/// A cheap handle to one bucket's blobs.
///
/// All handles that write, remove or sweep must be clones of one, for they share which blobs are
/// being written and which are being read.
#[derive(Clone, Debug)]
pub struct BlobStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) bucket: BucketId,
    /// `BUCKET/blobs`; made with the first blob.
    pub(crate) dir: PathBuf,
    /// Whether the entry of `blobs` in the bucket's folder is known to be durable.
    is_durable: AtomicBool,
    /// The same of the 256 folders in `blobs`. One that is there need not be durable yet: another
    /// writer may just have made it.
    are_durable: [AtomicBool; 256],
    /// Blobs that are being written, or written and not yet committed.
    in_flight: Mutex<HashSet<BlobId>>,
    pins: Mutex<Pins>,
    /// Told of each blob that is finished.
    tap: OnceLock<Arc<BlobTap>>,
    /// Of a folder that holds only some of the blobs.
    pub(crate) cache: Option<BlobCache>,
}

impl BlobStore {
    /// The blobs of the bucket with this id, in its folder `dir`. Touches nothing yet.
    pub fn new(dir: &Path, bucket: BucketId) -> Self {
        Self::of(dir.join(BLOBS_DIR), bucket, None)
    }

    /// The blobs of the bucket with this id, of which this cache has some.
    pub fn cached(cache: BlobCache, bucket: BucketId) -> Self {
        Self::of(cache.blobs_of(bucket), bucket, Some(cache))
    }

    fn of(dir: PathBuf, bucket: BucketId, cache: Option<BlobCache>) -> Self {
        Self {
            inner: Arc::new(Inner {
                bucket,
                dir,
                is_durable: AtomicBool::new(false),
                are_durable: [const { AtomicBool::new(false) }; 256],
                in_flight: Mutex::default(),
                pins: Mutex::default(),
                tap: OnceLock::new(),
                cache,
            }),
        }
    }

    /// Has blobs noted that are finished from now on. The first tap stays.
    pub fn tap_by(&self, tap: Arc<BlobTap>) {
        let _ = self.inner.tap.set(tap);
    }

    /// The file of a blob.
    pub fn path(&self, id: BlobId) -> PathBuf {
        path_of(&self.inner.dir, id)
    }

    /// Keeps what is there now from being removed until the pin is dropped. Take it before asking
    /// the catalog which blobs there are.
    pub fn pin(&self) -> ReadPin {
        ReadPin {
            epoch: self.inner.pins().pin(),
            store: self.inner.clone(),
        }
    }

    /// Whether a blob is being written, or is written and not yet committed.
    pub fn is_in_flight(&self, id: BlobId) -> bool {
        self.inner.in_flight().contains(&id)
    }

    /// Whether nothing is done to a blob: it is not in flight, nor waits to be removed.
    pub fn is_idle(&self, id: BlobId) -> bool {
        !self.is_in_flight(id) && !self.inner.pins().is_doomed(&id)
    }

    /// Whether its folder is a cache, of blobs that a store has.
    pub fn is_cache(&self) -> bool {
        self.inner.cache.is_some()
    }

    /// A blob of a cache is in the store that it is fetched from: its file may go.
    pub fn is_stored(&self, id: BlobId) {
        if let Some(cache) = &self.inner.cache {
            cache.stored((self.inner.bucket, id));
        }
    }

    /// Removes the files of blobs that nothing refers to any more, each as soon as no reader that
    /// began earlier can need it. One that can't be removed is left to a later sweep.
    pub async fn remove(&self, ids: Vec<BlobId>) {
        let due = self.inner.pins().doom(ids);
        let store = self.inner.clone();
        // A runtime that shuts down leaves them to the sweep, too.
        let _ = tokio::task::spawn_blocking(move || store.unlink(&due)).await;
    }
}

/// As long as it lives, no blob that was there when it was taken is removed.
#[derive(Debug)]
#[must_use = "a pin holds only until it is dropped"]
pub struct ReadPin {
    epoch: u64,
    store: Arc<Inner>,
}

impl Drop for ReadPin {
    fn drop(&mut self) {
        let due = self.store.pins().unpin(self.epoch);
        if !due.is_empty() {
            let store = self.store.clone();
            in_background(move || store.unlink(&due));
        }
    }
}

impl Inner {
    pub(crate) fn in_flight(&self) -> MutexGuard<'_, HashSet<BlobId>> {
        self.in_flight.lock()
    }

    pub(crate) fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock()
    }

    pub(crate) fn unlink(&self, ids: &[BlobId]) {
        for id in ids {
            let path = path_of(&self.dir, *id);
            match check_own_folder(&path).and_then(|()| fs::remove_file(path)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    let bucket = self.bucket;
                    tracing::warn!(%bucket, blob = %id, %error, "could not remove a blob");
                }
                _ => {}
            }
            if let Some(cache) = &self.cache {
                cache.forget((self.bucket, *id));
            }
        }
    }

    /// Makes the new entry of a blob durable: in its folder, and the folders' own entries.
    pub(crate) fn sync_entry(&self, id: BlobId) -> Result<()> {
        let path = path_of(&self.dir, id);
        let folder = path.parent().unwrap_or(&self.dir);
        sync_dir(folder)?;
        let is_folder_durable = &self.are_durable[usize::from(id.0[0])];
        if !is_folder_durable.load(Ordering::Acquire) {
            sync_dir(&self.dir)?;
            if !self.is_durable.load(Ordering::Acquire) {
                sync_dir(self.dir.parent().unwrap_or(Path::new("/")))?;
                self.is_durable.store(true, Ordering::Release);
            }
            is_folder_durable.store(true, Ordering::Release);
        }
        // Before any row refers to it.
        if let Some(tap) = self.tap.get() {
            tap.note(id);
        }
        Ok(())
    }

    /// The disk refused this with the file of a blob.
    pub(crate) fn failed(
        &self,
        op: &'static str,
        blob: BlobId,
        error: impl Into<std::io::Error>,
    ) -> StoreError {
        StoreError::io(op, path_of(&self.dir, blob), error)
    }

    pub(crate) fn damaged(&self, what: &'static str, blob: BlobId) -> StoreError {
        StoreError::Damaged {
            what,
            bucket: self.bucket,
            blob: Some(blob),
        }
    }
}

fn sync_dir(dir: &Path) -> Result<()> {
    sync_folder(dir).map_err(|error| StoreError::io("sync a folder of blobs", dir, error))
}

/// Runs `work`, which may wait for the disk, where it holds up no connection.
pub(crate) fn in_background(work: impl FnOnce() + Send + 'static) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => work(),
    }
}
