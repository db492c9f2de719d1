//! Buckets that are open: catalog, blobs and key of each, opened when first needed and closed
//! again when too many are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use coffer_keys::{BucketKey, Keystore};
use coffer_store::record::Id;
use coffer_store::{BlobStore, Catalog};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard};

use crate::error::{Result, VaultError};
use crate::folder::Folder;
use crate::limits::OPEN_BUCKETS_MAX;

/// A bucket whose catalog is open.
pub(crate) struct OpenBucket {
    pub(crate) id: Id,
    pub(crate) catalog: Catalog,
    pub(crate) blobs: BlobStore,
    pub(crate) key: BucketKey,
    /// Whether the bucket has been deleted. Writers hold it for reading while they commit, so that
    /// nothing is acknowledged in a bucket that was found empty and goes away.
    deleted: RwLock<bool>,
}

impl OpenBucket {
    pub(crate) fn new(id: Id, catalog: Catalog, blobs: BlobStore, key: BucketKey) -> Self {
        Self {
            id,
            catalog,
            blobs,
            key,
            deleted: RwLock::new(false),
        }
    }

    /// Keeps the bucket from being deleted while something is committed.
    pub(crate) async fn commit_guard(&self) -> Result<RwLockReadGuard<'_, bool>> {
        let deleted = self.deleted.read().await;
        if *deleted {
            Err(VaultError::NoSuchBucket)
        } else {
            Ok(deleted)
        }
    }

    /// Marks the bucket as deleted if it is empty; from then on nothing is committed in it.
    pub(crate) async fn delete_if_empty(&self) -> Result<()> {
        let mut deleted = self.deleted.write().await;
        if *deleted {
            return Err(VaultError::NoSuchBucket);
        }
        if !self.catalog.is_empty().await? {
            return Err(VaultError::BucketNotEmpty);
        }
        *deleted = true;
        Ok(())
    }
}

#[derive(Default)]
struct Slot {
    bucket: OnceCell<Arc<OpenBucket>>,
    last_used: AtomicU64,
}

/// All open buckets.
#[derive(Default)]
pub(crate) struct OpenBuckets {
    slots: Mutex<HashMap<Id, Arc<Slot>>>,
    clock: AtomicU64,
}

impl OpenBuckets {
    /// The bucket `id`, opened if it is not.
    pub(crate) async fn open(
        &self,
        folder: &Folder,
        keystore: &Keystore,
        id: Id,
    ) -> Result<Arc<OpenBucket>> {
        let (slot, surplus) = self.slot(id);
        if let Some(bucket) = surplus {
            bucket.catalog.close().await;
        }
        let open = || async {
            let key = keystore.bucket_key(&id.0)?;
            let dir = folder.bucket(id);
            let catalog = Catalog::open(&dir, &key.catalog_key()).await?;
            let blobs = BlobStore::new(&dir, id);
            Ok(Arc::new(OpenBucket::new(id, catalog, blobs, key)))
        };
        slot.bucket.get_or_try_init(open).await.cloned()
    }

    /// Takes a bucket that has just been made.
    pub(crate) fn insert(&self, bucket: OpenBucket) {
        let id = bucket.id;
        let slot = Slot {
            bucket: OnceCell::new_with(Some(Arc::new(bucket))),
            ..Slot::default()
        };
        self.lock().insert(id, Arc::new(slot));
    }

    /// Closes a bucket, for it is about to be deleted.
    pub(crate) async fn close(&self, id: Id) {
        let slot = self.lock().remove(&id);
        if let Some(bucket) = slot.as_ref().and_then(|slot| slot.bucket.get()) {
            bucket.catalog.close().await;
        }
    }

    /// Closes all.
    pub(crate) async fn close_all(&self) {
        let slots: Vec<_> = self.lock().drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            if let Some(bucket) = slot.bucket.get() {
                bucket.catalog.close().await;
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock()
            .values()
            .filter(|slot| slot.bucket.initialized())
            .count() as u64
    }

    /// The slot of `id`, and the bucket that has to make room for it.
    fn slot(&self, id: Id) -> (Arc<Slot>, Option<Arc<OpenBucket>>) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut slots = self.lock();
        if let Some(slot) = slots.get(&id) {
            slot.last_used.store(now, Ordering::Relaxed);
            return (slot.clone(), None);
        }
        let surplus = (slots.len() >= OPEN_BUCKETS_MAX)
            .then(|| take_idle(&mut slots))
            .flatten();
        let slot = Arc::new(Slot {
            last_used: AtomicU64::new(now),
            ..Slot::default()
        });
        slots.insert(id, slot.clone());
        (slot, surplus)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Id, Arc<Slot>>> {
        // Nothing that runs under this lock panics half-way through a change.
        self.slots
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Removes the bucket unused for longest among those that nobody uses now.
fn take_idle(slots: &mut HashMap<Id, Arc<Slot>>) -> Option<Arc<OpenBucket>> {
    let idle = |slot: &Arc<Slot>| {
        Arc::strong_count(slot) == 1
            && slot
                .bucket
                .get()
                .is_some_and(|bucket| Arc::strong_count(bucket) == 1)
    };
    let (&id, _) = slots
        .iter()
        .filter(|(_, slot)| idle(slot))
        .min_by_key(|(_, slot)| slot.last_used.load(Ordering::Relaxed))?;
    slots.remove(&id)?.bucket.get().cloned()
}
