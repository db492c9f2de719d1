//! Buckets that are open: catalog, blobs and key of each, opened when first needed and closed
//! again when too many are.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use coffer_keys::{BucketKey, Keystore};
use coffer_store::record::Id;
use coffer_store::{BlobStore, Catalog, Totals};
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard};

use crate::catalogs::{count_damage_of, open_catalog};
use crate::counters::Tally;
use crate::error::{Result, VaultError};
use crate::folder::Folder;
use crate::lifeline::{Holder, Lifelines, Signal};
use crate::limits::OPEN_BUCKETS_MAX;
use crate::open_uploads::OpenUploads;

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
    fn cut(&self) -> usize {
        self.cut.give();
        self.lifelines.cut();
        self.lifelines.count()
    }

    /// Cuts off whoever was about to use it, for it was barred while it was being opened.
    async fn cut_late(&self) {
        self.cut();
        self.catalog.abandon().await;
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
        if *deleted || self.is_cut() {
            return Err(VaultError::NoSuchBucket);
        }
        if !self.catalog.is_empty().await? {
            return Err(VaultError::BucketNotEmpty);
        }
        *deleted = true;
        Ok(())
    }

    /// Takes back that it is deleted: its row could not be removed.
    pub(crate) async fn undelete(&self) {
        *self.deleted.write().await = false;
    }
}

#[derive(Default)]
struct Slot {
    bucket: OnceCell<Arc<OpenBucket>>,
    last_used: AtomicU64,
    /// Whether its key is about to be destroyed.
    is_barred: AtomicBool,
}

impl Slot {
    fn is_barred(&self) -> bool {
        self.is_barred.load(Ordering::SeqCst)
    }
}

#[derive(Default)]
struct Slots {
    by_id: HashMap<Id, Arc<Slot>>,
    /// Buckets that are not to be opened.
    barred: HashSet<Id>,
    /// Taken out to make room, and perhaps not closed yet.
    closing: Vec<Weak<OpenBucket>>,
}

/// Buckets that nobody opens any more, as [`OpenBuckets::bar`] met them.
pub(crate) struct Barred {
    /// Those that were open. They are cut.
    pub(crate) open: Vec<Arc<OpenBucket>>,
    /// Those that were being opened.
    pub(crate) opening: Vec<Opening>,
    /// How many connections were cut with them.
    pub(crate) connections: usize,
}

/// A bucket that was being opened when it was barred.
pub(crate) struct Opening(Arc<Slot>);

impl Opening {
    /// Waits until its opening has ended. If there is a bucket then, it has been cut off.
    pub(crate) async fn end(self) -> Option<Arc<OpenBucket>> {
        // In turn after whoever opens it; nobody begins to any more.
        let refuse = || async { Err(()) };
        let opened = self.0.bucket.get_or_try_init(refuse).await;
        let bucket = opened.ok().cloned()?;
        bucket.cut_late().await;
        Some(bucket)
    }
}

/// All open buckets.
#[derive(Default)]
pub(crate) struct OpenBuckets {
    slots: Mutex<Slots>,
    /// What closed buckets held when they were last open.
    totals: Mutex<HashMap<Id, Totals>>,
    pub(crate) uploads: OpenUploads,
    tally: Arc<Tally>,
    clock: AtomicU64,
}

impl OpenBuckets {
    /// None yet; damage in their catalogs is counted by `tally`.
    pub(crate) fn counted_by(tally: Arc<Tally>) -> Self {
        Self {
            tally,
            ..Self::default()
        }
    }

    /// The bucket `id`, opened if it is not.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`] while it is barred; those of opening it.
    pub(crate) async fn open(
        &self,
        folder: &Folder,
        keystore: &Keystore,
        id: Id,
    ) -> Result<Arc<OpenBucket>> {
        let (slot, surplus) = self.slot(id)?;
        if let Some(bucket) = surplus {
            self.close_idle(bucket).await;
        }
        let open = || async {
            if slot.is_barred() {
                return Err(VaultError::NoSuchBucket);
            }
            let key = keystore.bucket_key(&id.0)?;
            let dir = folder.bucket(id);
            let catalog = open_catalog(&dir, id, &key, keystore, &self.tally).await?;
            let blobs = BlobStore::new(&dir, id);
            Ok(Arc::new(OpenBucket::new(id, catalog, blobs, key)))
        };
        let bucket = slot.bucket.get_or_try_init(open).await?;
        if slot.is_barred() {
            // Whoever barred it cut those that were open, and may have given up waiting for others.
            if !bucket.is_cut() {
                bucket.cut_late().await;
            }
            return Err(VaultError::NoSuchBucket);
        }
        Ok(bucket.clone())
    }

    /// Keeps buckets whose keys are about to be destroyed from being opened, by anybody, and cuts
    /// off all who use them.
    pub(crate) fn bar(&self, ids: &[Id]) -> Barred {
        let mut slots = self.lock();
        slots.barred.extend(ids);
        let closing = slots.closing.iter().filter_map(Weak::upgrade);
        let mut open: Vec<_> = closing.filter(|bucket| ids.contains(&bucket.id)).collect();
        let mut opening = Vec::new();
        for slot in ids.iter().filter_map(|id| slots.by_id.get(id)) {
            slot.is_barred.store(true, Ordering::SeqCst);
            match slot.bucket.get() {
                Some(bucket) => open.push(bucket.clone()),
                None => opening.push(Opening(slot.clone())),
            }
        }
        let connections = open.iter().map(|bucket| bucket.cut()).sum();
        Barred {
            open,
            opening,
            connections,
        }
    }

    /// Lets barred buckets be opened again, as far as there are keys for them.
    pub(crate) fn unbar(&self, ids: &[Id]) {
        let mut slots = self.lock();
        for id in ids {
            slots.barred.remove(id);
        }
    }

    /// Takes a bucket that has just been made.
    pub(crate) fn insert(&self, bucket: OpenBucket) {
        let id = bucket.id;
        count_damage_of(&bucket.catalog, &self.tally);
        let slot = Slot {
            bucket: OnceCell::new_with(Some(Arc::new(bucket))),
            ..Slot::default()
        };
        self.lock().by_id.insert(id, Arc::new(slot));
    }

    /// A bucket, if it is open.
    #[cfg(test)]
    pub(crate) fn get(&self, id: Id) -> Option<Arc<OpenBucket>> {
        self.lock().by_id.get(&id)?.bucket.get().cloned()
    }

    /// Forgets a bucket whose key is about to be destroyed, or is.
    pub(crate) fn forget(&self, id: Id) {
        self.totals().remove(&id);
        self.lock().by_id.remove(&id);
    }

    /// How much a bucket holds, as far as that is known without opening it.
    pub(crate) async fn known_totals(&self, id: Id) -> Option<Totals> {
        let slot = self.lock().by_id.get(&id).cloned();
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
        self.uploads.look(bucket.id, &bucket.catalog).await;
        bucket.catalog.close().await;
    }

    fn totals(&self) -> std::sync::MutexGuard<'_, HashMap<Id, Totals>> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<Arc<OpenBucket>> {
        let slots = self.lock();
        let open = slots.by_id.values().filter_map(|slot| slot.bucket.get());
        open.cloned().collect()
    }

    /// Closes all.
    pub(crate) async fn close_all(&self) {
        let slots: Vec<_> = self.lock().by_id.drain().map(|(_, slot)| slot).collect();
        for slot in slots {
            if let Some(bucket) = slot.bucket.get() {
                bucket.catalog.close().await;
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.lock()
            .by_id
            .values()
            .filter(|slot| slot.bucket.initialized())
            .count() as u64
    }

    /// The slot of `id`, and the bucket that has to make room for it.
    fn slot(&self, id: Id) -> Result<(Arc<Slot>, Option<Arc<OpenBucket>>)> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut slots = self.lock();
        if slots.barred.contains(&id) {
            return Err(VaultError::NoSuchBucket);
        }
        if let Some(slot) = slots.by_id.get(&id) {
            slot.last_used.store(now, Ordering::Relaxed);
            return Ok((slot.clone(), None));
        }
        let surplus = (slots.by_id.len() >= OPEN_BUCKETS_MAX)
            .then(|| take_idle(&mut slots))
            .flatten();
        let slot = Arc::new(Slot {
            last_used: AtomicU64::new(now),
            ..Slot::default()
        });
        slots.by_id.insert(id, slot.clone());
        Ok((slot, surplus))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        // Nothing that runs under this lock panics half-way through a change.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the bucket unused for longest among those that nobody uses now.
fn take_idle(slots: &mut Slots) -> Option<Arc<OpenBucket>> {
    let idle = |slot: &Arc<Slot>| {
        Arc::strong_count(slot) == 1
            && slot
                .bucket
                .get()
                .is_some_and(|bucket| Arc::strong_count(bucket) == 1)
    };
    let (&id, _) = slots
        .by_id
        .iter()
        .filter(|(_, slot)| idle(slot))
        .min_by_key(|(_, slot)| slot.last_used.load(Ordering::Relaxed))?;
    let bucket = slots.by_id.remove(&id)?.bucket.get().cloned()?;
    slots.closing.retain(|closing| closing.strong_count() > 0);
    slots.closing.push(Arc::downgrade(&bucket));
    Some(bucket)
}

#[cfg(test)]
mod tests;
