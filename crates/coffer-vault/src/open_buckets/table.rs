//! All buckets that are open: opened when first needed, and closed again when too many are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use coffer_keys::Keystore;
use coffer_seal::BucketId;
use coffer_store::version::Versioning;
use coffer_store::{BlobCache, BlobStore, CATALOG_FILE, CacheStatus, Catalog, Change, Totals};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::open_bucket::{OpenBucket, UsedBucket};
use super::open_catalog::{count_damage_of, open_catalog};
use super::own_file::own_file;
use super::slots::{Slot, Slots};
use super::taps::Taps;
use super::upload_ledger::UploadLedger;
use super::users::User;
use crate::counters::Tally;
use crate::cutoff::Connections;
use crate::data_folder::Folder;
use crate::error::{Result, VaultError};
use crate::fence::ChangeGate;
use crate::freshness::Commits;
use crate::quotas::QuotaLedger;

/// Buckets that are not opened any more, as [`OpenBuckets::bar`] met them.
pub(crate) struct Barred {
    /// Those that were open. They are cut.
    pub(crate) open: Vec<Arc<OpenBucket>>,
    /// Those that were being opened.
    pub(crate) opening: Vec<Opening>,
    /// The connections that were cut, with those that these buckets were granted to before they
    /// were last closed.
    pub(crate) connections: Vec<Arc<Connections>>,
}

/// A bucket that was being opened when it was barred.
pub(crate) struct Opening(Arc<Slot>);

impl Opening {
    /// Waits until its opening has ended. If there is a bucket then, it has been cut off.
    pub(crate) async fn end(self) -> Option<Arc<OpenBucket>> {
        // In turn after the request that opens it; none begins to any more.
        let refuse = || async { Err(()) };
        let opened = self.0.bucket.get_or_try_init(refuse).await;
        let bucket = opened.ok().cloned()?;
        bucket.cut_late().await;
        Some(bucket)
    }
}

/// All open buckets.
pub(crate) struct OpenBuckets {
    slots: Mutex<Slots>,
    /// What buckets held when they were last looked at: closed ones hold it still.
    totals: Mutex<HashMap<BucketId, Totals>>,
    /// Whether buckets kept versions then.
    versioning: Mutex<HashMap<BucketId, Versioning>>,
    pub(crate) uploads: UploadLedger,
    pub(crate) taps: Taps,
    pub(crate) quotas: QuotaLedger,
    gate: Arc<ChangeGate>,
    /// What of the blobs is here, where not all are.
    cache: Option<BlobCache>,
    tally: Arc<Tally>,
    commits: Arc<Commits>,
    clock: AtomicU64,
    /// How many stay open, as far as they are not in use.
    open_max: usize,
}

impl OpenBuckets {
    /// None yet, and `open_max` at once; damage in their catalogs is counted by `tally`, and
    /// `commits` judges whether they are older copies.
    pub(crate) fn new(open_max: usize, tally: Arc<Tally>, commits: Arc<Commits>) -> Self {
        Self {
            slots: Mutex::default(),
            totals: Mutex::default(),
            versioning: Mutex::default(),
            uploads: UploadLedger::default(),
            taps: Taps::default(),
            quotas: QuotaLedger::default(),
            gate: Arc::default(),
            cache: None,
            tally,
            commits,
            clock: AtomicU64::default(),
            open_max,
        }
    }

    /// Has this gate asked before anything is committed, and blobs that are not in their folders
    /// fetched by this cache, if there is one.
    pub(crate) fn gated_by(self, gate: Arc<ChangeGate>, cache: Option<BlobCache>) -> Self {
        Self {
            gate,
            cache,
            ..self
        }
    }

    /// The blobs of a bucket.
    pub(crate) fn blobs_of(&self, folder: &Folder, id: BucketId) -> BlobStore {
        match &self.cache {
            None => BlobStore::new(&folder.bucket(id), id),
            Some(cache) => BlobStore::cached(cache.clone(), id),
        }
    }

    /// How the cache of blobs stands, if there is one.
    pub(crate) fn cache_status(&self) -> Option<CacheStatus> {
        self.cache.as_ref().map(BlobCache::status)
    }

    /// The bucket `id`, opened if it is not.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`] while it is barred; those of opening it.
    pub(crate) async fn open(
        &self,
        folder: &Folder,
        keystore: &Keystore,
        id: BucketId,
    ) -> Result<UsedBucket> {
        let (slot, _user, surplus) = self.slot(id)?;
        for bucket in surplus {
            self.close_idle(bucket).await;
        }
        let open = || async {
            if slot.is_barred() {
                return Err(VaultError::NoSuchBucket);
            }
            let key = keystore.bucket_key(id)?;
            let dir = folder.bucket(id);
            let (tally, commits) = (&self.tally, &self.commits);
            if self.gate.is_standby() {
                own_file(dir.join(CATALOG_FILE)).await?;
            }
            let catalog = open_catalog(&dir, id, &key, keystore, tally, commits).await?;
            // Before anything is changed in it.
            self.look(id, &catalog).await;
            catalog.admit_by(self.quotas.admission(id));
            let blobs = self.blobs_of(folder, id);
            self.taps.attach(id, &catalog, &blobs).await?;
            let mut bucket = OpenBucket::new(id, catalog, blobs, key);
            bucket.users = slot.users.clone();
            bucket.gate = self.gate.clone();
            if let Some(connections) = self.slots.lock().left.remove(&id) {
                bucket.connections = connections;
            }
            Ok(Arc::new(bucket))
        };
        let bucket = slot.bucket.get_or_try_init(open).await?;
        if slot.is_barred() {
            // The erase that barred it cut those that were open, and may have given up waiting for
            // others.
            if !bucket.is_cut() {
                bucket.cut_late().await;
            }
            return Err(VaultError::NoSuchBucket);
        }
        Ok(UsedBucket::new(bucket.clone()))
    }

    /// Keeps buckets whose keys are about to be destroyed from being opened, and cuts
    /// off all who use them.
    pub(crate) fn bar(&self, ids: &[BucketId]) -> Barred {
        let mut slots = self.slots.lock();
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
        let mut connections: Vec<_> = ids.iter().filter_map(|id| slots.left.remove(id)).collect();
        connections.iter().for_each(|noted| noted.cut());
        for bucket in &open {
            bucket.cut();
            connections.push(bucket.connections.clone());
        }
        // A bucket that is being closed has those that are left of it.
        connections.sort_unstable_by_key(Arc::as_ptr);
        connections.dedup_by_key(|noted| Arc::as_ptr(noted));
        Barred {
            open,
            opening,
            connections,
        }
    }

    /// Lets barred buckets be opened again, as far as there are keys for them.
    pub(crate) fn unbar(&self, ids: &[BucketId]) {
        let mut slots = self.slots.lock();
        for id in ids {
            slots.barred.remove(id);
        }
    }

    /// Takes a bucket that has just been made, and closes others that have to make room for it.
    pub(crate) async fn insert(&self, mut bucket: OpenBucket) {
        bucket.gate = self.gate.clone();
        let id = bucket.id;
        count_damage_of(&bucket.catalog, &self.tally);
        self.totals.lock().insert(id, Totals::default());
        if let Ok(versioning) = bucket.catalog.versioning().await {
            self.versioning.lock().insert(id, versioning);
        }
        let look = self.quotas.begin_look(id);
        self.quotas.end_look(id, &look, Change::default());
        bucket.catalog.admit_by(self.quotas.admission(id));
        // Should it fail, all of the catalog is copied when it is opened the next time.
        let _ = self.taps.attach(id, &bucket.catalog, &bucket.blobs).await;
        let slot = Slot {
            users: bucket.users.clone(),
            bucket: OnceCell::new_with(Some(Arc::new(bucket))),
            last_used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed)),
            ..Slot::default()
        };
        let surplus = {
            let mut slots = self.slots.lock();
            let surplus = self.make_room(&mut slots);
            slots.by_id.insert(id, Arc::new(slot));
            surplus
        };
        for bucket in surplus {
            self.close_idle(bucket).await;
        }
    }

    /// A bucket, if it is open.
    #[cfg(test)]
    pub(crate) fn get(&self, id: BucketId) -> Option<UsedBucket> {
        self.slots.lock().by_id.get(&id)?.opened()
    }

    /// Forgets a bucket that is gone.
    pub(crate) fn forget(&self, id: BucketId) {
        self.let_go(id);
        self.uploads.forget(id);
        self.quotas.forget(id);
    }

    /// The folder of a bucket is gone, with the files that a cache knew.
    pub(crate) fn forget_files(&self, id: BucketId) {
        if let Some(cache) = &self.cache {
            cache.forget_bucket(id);
        }
    }

    /// The newest commit of a bucket, if it is open, or just being closed.
    pub(crate) fn last_commit(&self, id: BucketId) -> Option<u64> {
        self.of_catalog(id, Catalog::last_commit)
    }

    /// Whether a bucket may hold a commit that shows and is not its newest yet: asked before that
    /// is.
    pub(crate) fn is_committing(&self, id: BucketId) -> bool {
        self.of_catalog(id, Catalog::is_committing).unwrap_or(false)
    }

    fn of_catalog<T>(&self, id: BucketId, tell: impl FnOnce(&Catalog) -> T) -> Option<T> {
        let slots = self.slots.lock();
        let opened = slots.by_id.get(&id).and_then(|slot| slot.bucket.get());
        let mut closing = slots.closing.iter().filter_map(Weak::upgrade);
        let bucket = opened.cloned().or_else(|| closing.find(|it| it.id == id))?;
        Some(tell(&bucket.catalog))
    }

    /// All that are open.
    pub(crate) fn all(&self) -> Vec<UsedBucket> {
        let slots = self.slots.lock();
        slots
            .by_id
            .values()
            .filter_map(|slot| slot.opened())
            .collect()
    }

    /// Closes all.
    pub(crate) async fn close_all(&self) {
        let slots: Vec<_> = self
            .slots
            .lock()
            .by_id
            .drain()
            .map(|(_, slot)| slot)
            .collect();
        for slot in slots {
            if let Some(bucket) = slot.bucket.get() {
                bucket.catalog.close().await;
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.slots
            .lock()
            .by_id
            .values()
            .filter(|slot| slot.bucket.initialized())
            .count() as u64
    }

    /// The slot of `id`, which is used from now on, and the buckets that have to make room for it.
    fn slot(&self, id: BucketId) -> Result<(Arc<Slot>, User, Vec<UsedBucket>)> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut slots = self.slots.lock();
        if slots.barred.contains(&id) {
            return Err(VaultError::NoSuchBucket);
        }
        if let Some(slot) = slots.by_id.get(&id) {
            slot.last_used.store(now, Ordering::Relaxed);
            return Ok((slot.clone(), slot.users.add(), Vec::new()));
        }
        let surplus = self.make_room(&mut slots);
        let slot = Arc::new(Slot {
            last_used: AtomicU64::new(now),
            ..Slot::default()
        });
        slots.by_id.insert(id, slot.clone());
        let user = slot.users.add();
        Ok((slot, user, surplus))
    }
}

mod let_go;

mod look;

#[cfg(test)]
mod tests;
