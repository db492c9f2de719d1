//! A bucket that is open: its catalog, its blobs and its key.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use coffer_keys::BucketKey;
use coffer_seal::BucketId;
use coffer_store::record::ObjectName;
use coffer_store::{BlobStore, Catalog, StoreError};
use tokio::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio_util::sync::CancellationToken;

use super::users::{User, Users};
use crate::cutoff::{Connections, Holder};
use crate::error::{Result, VaultError};
use crate::fence::ChangeGate;
use crate::limits::COMMIT_NAME_LOCKS;

/// A bucket whose catalog is open.
pub(crate) struct OpenBucket {
    pub(crate) id: BucketId,
    pub(crate) catalog: Catalog,
    pub(crate) blobs: BlobStore,
    /// Changes when it is rotated.
    key: parking_lot::RwLock<BucketKey>,
    /// Writers hold it for reading while they commit, so that nothing is acknowledged in a bucket
    /// that was found empty and goes away; for writing, where nothing that they were judged by may
    /// change until they have.
    committing: RwLock<()>,
    /// What changes an object holds one of them while it commits, by the object's name, where
    /// objects that are there say who may do what: so none is changed that another is judged by.
    by_name: OnceLock<Box<[Mutex<()>]>>,
    /// Whether the bucket has been deleted, or may have been.
    is_deleted: AtomicBool,
    /// The connections that were granted it.
    pub(super) connections: Arc<Connections>,
    pub(super) users: Users,
    /// Asked before anything is committed.
    pub(super) gate: Arc<ChangeGate>,
    /// Cancelled when its key is about to be destroyed: nothing is opened or committed any more.
    cut: CancellationToken,
}

/// Held while something is committed.
pub(crate) struct CommitGuard<'a> {
    _shared: Option<RwLockReadGuard<'a, ()>>,
    _alone: Option<RwLockWriteGuard<'a, ()>>,
    _by_name: Vec<MutexGuard<'a, ()>>,
}

/// Which lock a name has.
fn place_of(name: &ObjectName) -> usize {
    let mut hasher = DefaultHasher::new();
    name.expose().hash(&mut hasher);
    let places = COMMIT_NAME_LOCKS as u64;
    usize::try_from(hasher.finish() % places).expect("less than there are locks")
}

impl OpenBucket {
    pub(crate) fn new(id: BucketId, catalog: Catalog, blobs: BlobStore, key: BucketKey) -> Self {
        Self {
            id,
            catalog,
            blobs,
            key: parking_lot::RwLock::new(key),
            committing: RwLock::default(),
            by_name: OnceLock::new(),
            is_deleted: AtomicBool::default(),
            connections: Arc::new(Connections::new(Holder::Bucket)),
            users: Users::default(),
            gate: Arc::default(),
            cut: CancellationToken::new(),
        }
    }

    /// The bucket's key as it is now.
    pub(crate) fn key(&self) -> BucketKey {
        let key = self.key.read();
        key.clone()
    }

    /// Takes a rotated key: every commit that begins after this returns is under it, and none is
    /// under way that is not.
    pub(crate) async fn take_key(&self, key: BucketKey) {
        *self.key.write() = key;
        // Commits look at the key only after they took their guard.
        self.no_commit_under_way().await;
    }

    /// Notes the connection that the request came by.
    pub(crate) fn note_caller(&self) -> Result<()> {
        self.connections.note()?;
        // After the note: a cut in between has met it, or is seen here.
        if self.is_cut() {
            Err(VaultError::NoSuchBucket)
        } else {
            Ok(())
        }
    }

    /// What it means that the catalog was closed under a request, or its folder removed: the bucket
    /// is gone, or the server stops.
    pub(crate) fn if_closed(&self, error: VaultError) -> VaultError {
        match error {
            VaultError::Store(StoreError::Io { source, .. })
                if source.kind() == ErrorKind::NotFound && self.is_gone() =>
            {
                VaultError::NoSuchBucket
            }
            VaultError::Store(StoreError::Closed) => {
                if self.is_deleted.load(Ordering::SeqCst) || self.is_cut() {
                    VaultError::NoSuchBucket
                } else {
                    VaultError::ShuttingDown
                }
            }
            other => other,
        }
    }

    /// Whether the bucket's key is being destroyed, or is destroyed.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Waits until it is.
    pub(crate) async fn cut_off(&self) {
        self.cut.cancelled().await;
    }

    /// What is cancelled then, for those who must not hold the bucket.
    pub(crate) fn cut_token(&self) -> CancellationToken {
        self.cut.clone()
    }

    /// Cuts off all that reads or writes.
    pub(super) fn cut(&self) {
        self.cut.cancel();
        self.connections.cut();
    }

    /// Cuts off requests that were about to use it, for it was barred while it was being opened.
    pub(super) async fn cut_late(&self) {
        self.cut();
        self.catalog.abandon().await;
    }

    /// Waits until nothing is being committed.
    pub(crate) async fn no_commit_under_way(&self) {
        drop(self.committing.write().await);
    }

    /// Whether none is left of those that were cut off.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.users.count() == 0 && self.connections.count() == 0
    }

    /// Keeps the bucket from being deleted while something is committed.
    pub(crate) async fn commit_guard(&self) -> Result<CommitGuard<'_>> {
        let committing = self.committing.read().await;
        self.refuse_deleted()?;
        self.gate.check()?;
        Ok(CommitGuard {
            _shared: Some(committing),
            _alone: None,
            _by_name: Vec::new(),
        })
    }

    /// As [`commit_guard`](Self::commit_guard), while nothing else is committed by such a guard
    /// that has one of these names, nor by [`commit_alone`](Self::commit_alone). Others go on.
    pub(crate) async fn commit_of(&self, names: &[&ObjectName]) -> Result<CommitGuard<'_>> {
        let guard = self.commit_guard().await?;
        let new = || (0..COMMIT_NAME_LOCKS).map(|_| Mutex::default()).collect();
        let locks = self.by_name.get_or_init(new);
        // In one order, so that no two wait for each other.
        let places: BTreeSet<usize> = names.iter().map(|name| place_of(name)).collect();
        let mut by_name = Vec::with_capacity(places.len());
        for place in places {
            by_name.push(locks[place].lock().await);
        }
        // Much may have happened while it waited.
        self.refuse_deleted()?;
        self.gate.check()?;
        Ok(CommitGuard {
            _by_name: by_name,
            ..guard
        })
    }

    /// As [`commit_guard`](Self::commit_guard), while nothing else is committed.
    pub(crate) async fn commit_alone(&self) -> Result<CommitGuard<'_>> {
        let committing = self.committing.write().await;
        self.refuse_deleted()?;
        self.gate.check()?;
        Ok(CommitGuard {
            _shared: None,
            _alone: Some(committing),
            _by_name: Vec::new(),
        })
    }

    /// Marks the bucket as deleted if it is empty, or if nothing but uploads under way is in it;
    /// from then on nothing is committed in it.
    pub(crate) async fn delete_if_empty(&self, but_for_uploads: bool) -> Result<()> {
        let _alone = self.committing.write().await;
        self.refuse_deleted()?;
        if !self.is_empty(but_for_uploads).await? {
            return Err(VaultError::BucketNotEmpty);
        }
        self.is_deleted.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Whether nothing is in it; or nothing but uploads under way. What was before a change in
    /// doubt doesn't count: an object that may stand would go with the bucket, its locks with it.
    ///
    /// # Errors
    /// [`VaultError::BucketInDoubt`] while that can't be told.
    pub(crate) async fn is_empty(&self, but_for_uploads: bool) -> Result<bool> {
        self.settle().await?;
        let is_empty = if but_for_uploads {
            self.catalog.is_without_objects().await
        } else {
            self.catalog.is_empty().await
        };
        Ok(is_empty?)
    }

    /// Before something is told, or done, that must not go by what was before a change that may
    /// stand: what is in doubt is settled.
    ///
    /// # Errors
    /// [`VaultError::BucketInDoubt`] while that can't be done.
    pub(crate) async fn settle(&self) -> Result<()> {
        let settled = self.catalog.settle().await;
        settled.map_err(VaultError::of_setting)
    }

    /// Whether it has been deleted, or is being erased.
    pub(crate) fn is_gone(&self) -> bool {
        self.refuse_deleted().is_err()
    }

    fn refuse_deleted(&self) -> Result<()> {
        if self.is_deleted.load(Ordering::SeqCst) || self.is_cut() {
            Err(VaultError::NoSuchBucket)
        } else {
            Ok(())
        }
    }

    /// Takes back that it is deleted: its row was not removed.
    pub(crate) fn undelete(&self) {
        self.is_deleted.store(false, Ordering::SeqCst);
    }
}

/// A bucket in use.
#[derive(Clone)]
pub(crate) struct UsedBucket {
    bucket: Arc<OpenBucket>,
    /// Goes after the bucket: where no user is counted, none holds its key.
    _user: User,
}

impl UsedBucket {
    /// Counts one more user of the bucket.
    pub(crate) fn new(bucket: Arc<OpenBucket>) -> Self {
        let _user = bucket.users.add();
        Self { bucket, _user }
    }

    /// The bucket for as long as another holds it.
    pub(crate) fn downgrade(&self) -> Weak<OpenBucket> {
        Arc::downgrade(&self.bucket)
    }
}

impl Deref for UsedBucket {
    type Target = OpenBucket;

    fn deref(&self) -> &OpenBucket {
        &self.bucket
    }
}
