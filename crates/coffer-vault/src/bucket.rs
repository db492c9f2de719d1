//! Buckets that are open: catalog, blobs and key of each, opened when first needed and closed
//! again when too many are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use coffer_keys::{BucketKey, Keystore};
use coffer_store::record::Id;
use coffer_store::{BlobStore, Catalog, Totals};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard};

use crate::error::{Result, VaultError};
use crate::folder::Folder;
use crate::lifeline::{Holder, Lifelines, Signal};
use crate::limits::OPEN_BUCKETS_MAX;

/// A bucket whose catalog is open.
pub(crate) struct OpenBucket {
    pub(crate) id: Id,
    pub(crate) catalog: Catalog,
    pub(crate) blobs: BlobStore,
    /// Changes when it is rotated.
    key: std::sync::RwLock<BucketKey>,
    /// Whether the bucket has been deleted. Writers hold it for reading while they commit, so that
    /// nothing is acknowledged in a bucket that was found empty and goes away.
    deleted: RwLock<bool>,
    /// The connections that were granted it.
    lifelines: Lifelines,
    /// Given when its key is about to be destroyed: nothing is opened or committed any more.
    cut: Signal,
}

impl OpenBucket {
    pub(crate) fn new(id: Id, catalog: Catalog, blobs: BlobStore, key: BucketKey) -> Self {
        Self {
            id,
            catalog,
            blobs,
            key: std::sync::RwLock::new(key),
            deleted: RwLock::new(false),
            lifelines: Lifelines::new(Holder::Bucket),
            cut: Signal::default(),
        }
    }

    /// The bucket's key as it is now.
    pub(crate) fn key(&self) -> BucketKey {
        let key = self.key.read().unwrap_or_else(PoisonError::into_inner);
        key.clone()
    }

    /// Takes a rotated key: every commit that begins after this returns is under it, and none is
    /// under way that is not.
    pub(crate) async fn take_key(&self, key: BucketKey) {
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = key;
        // Commits look at the key only after they took their guard.
        self.no_commit_under_way().await;
    }

    /// Notes the connection that the request came by.
    pub(crate) fn note_caller(&self) -> Result<()> {
        self.lifelines.note();
        // After the note: a cut in between has met it, or is seen here.
        match self.is_cut() {
            true => Err(VaultError::NoSuchBucket),
            false => Ok(()),
        }
    }

    /// Whether the bucket's key is being destroyed, or is destroyed.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_given()
    }

    /// Waits until it is.
    pub(crate) async fn cut_off(&self) {
        self.cut.given().await;
    }

    /// Cuts off whoever reads or writes. Returns with how many connections it did so.
    pub(crate) fn cut(&self) -> usize {
        self.cut.give();
        self.lifelines.cut();
        self.lifelines.count()
    }

    /// Waits until nothing is being committed.
    pub(crate) async fn no_commit_under_way(&self) {
        drop(self.deleted.write().await);
    }

    /// Whether nobody is left of those that were cut off; `held` is how many hold the bucket who
    /// neither read nor write.
    pub(crate) fn is_abandoned(self: &Arc<Self>, held: usize) -> bool {
        Arc::strong_count(self) <= held && self.lifelines.count() == 0
    }

    /// Keeps the bucket from being deleted while something is committed.
    pub(crate) async fn commit_guard(&self) -> Result<RwLockReadGuard<'_, bool>> {
        let deleted = self.deleted.read().await;
        if *deleted || self.is_cut() {
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
    /// What closed buckets held when they were last open.
    totals: Mutex<HashMap<Id, Totals>>,
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
            self.close_idle(bucket).await;
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
        self.totals().remove(&id);
        let slot = self.lock().remove(&id);
        if let Some(bucket) = slot.as_ref().and_then(|slot| slot.bucket.get()) {
            bucket.catalog.close().await;
        }
    }

    /// A bucket, if it is open.
    pub(crate) fn get(&self, id: Id) -> Option<Arc<OpenBucket>> {
        self.lock().get(&id)?.bucket.get().cloned()
    }

    /// Forgets a bucket whose key is about to be destroyed.
    pub(crate) fn forget(&self, id: Id) {
        self.totals().remove(&id);
        self.lock().remove(&id);
    }

    /// How much a bucket holds, as far as that is known without opening it.
    pub(crate) async fn known_totals(&self, id: Id) -> Option<Totals> {
        let slot = self.lock().get(&id).cloned();
        match slot.as_ref().and_then(|slot| slot.bucket.get()) {
            Some(bucket) => bucket.catalog.totals().await.ok(),
            None => self.totals().get(&id).copied(),
        }
    }

    async fn close_idle(&self, bucket: Arc<OpenBucket>) {
        // Nobody uses it, so nothing is committed after this look.
        if let Ok(totals) = bucket.catalog.totals().await {
            self.totals().insert(bucket.id, totals);
        }
        bucket.catalog.close().await;
    }

    fn totals(&self) -> std::sync::MutexGuard<'_, HashMap<Id, Totals>> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
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
