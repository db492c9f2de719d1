//! How far catalogs have come, as far as is known.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use coffer_durable::now_ms;
use coffer_keys::{Anchor, Keystore};
use coffer_seal::BucketId;
use parking_lot::Mutex;

use crate::error::{Result, Rollback, RollbackOf, VaultError};

/// The highest count of commits of each catalog: as it is held, or as it was seen since.
#[derive(Default)]
pub(crate) struct Commits {
    highest: Mutex<HashMap<BucketId, u64>>,
    /// Catalogs that were looked at since the start: of others only what is held is known, and they
    /// may have come further.
    met: Mutex<HashSet<BucketId>>,
    /// When that was known last: at the beginning, when the anchor was written.
    held_ms: AtomicI64,
    /// How often something became known.
    news: AtomicU64,
}

impl Commits {
    /// As an anchor holds them.
    pub(crate) fn of(anchor: Option<&Anchor>) -> Self {
        let held = anchor.iter().flat_map(|anchor| &anchor.commits);
        let highest = held.map(|(id, commits)| (*id, *commits));
        Self {
            highest: Mutex::new(highest.collect()),
            met: Mutex::default(),
            held_ms: AtomicI64::new(anchor.map_or(0, |anchor| anchor.held_ms)),
            news: AtomicU64::new(1),
        }
    }

    /// Whether a catalog has come further than is known.
    pub(crate) fn is_news(&self, id: BucketId, commits: u64) -> bool {
        self.highest
            .lock()
            .get(&id)
            .is_none_or(|known| *known < commits)
    }

    /// How a catalog stands that has come so far, if it is an older copy.
    pub(crate) fn rollback(&self, id: BucketId, commits: u64) -> Option<Rollback> {
        let held = self.highest.lock().get(&id).copied()?;
        (commits < held).then(|| Rollback {
            of: RollbackOf::Catalog(id),
            found: commits,
            held,
            held_ms: self.held_ms.load(Ordering::Relaxed),
        })
    }

    /// Judges a catalog that was opened, and remembers how far it has come.
    ///
    /// # Errors
    /// [`VaultError::CatalogRolledBack`].
    pub(crate) fn opened(&self, id: BucketId, commits: u64) -> Result<()> {
        match self.rollback(id, commits) {
            Some(rollback) => Err(VaultError::CatalogRolledBack(rollback)),
            None => {
                self.seen(id, commits);
                Ok(())
            }
        }
    }

    /// Remembers how far a catalog has come.
    pub(crate) fn seen(&self, id: BucketId, commits: u64) {
        self.met.lock().insert(id);
        let mut highest = self.highest.lock();
        match highest.get(&id) {
            Some(known) if *known >= commits => return,
            _ => highest.insert(id, commits),
        };
        self.held_ms.store(now_ms(), Ordering::Relaxed);
        self.news.fetch_add(1, Ordering::Release);
    }

    /// Of a catalog that was let go of, commits may not be known: it is to be looked at again
    /// before it counts as known.
    pub(crate) fn is_to_be_met(&self, id: BucketId) {
        self.met.lock().remove(&id);
    }

    /// How far a catalog is known to have come.
    pub(crate) fn highest_of(&self, id: BucketId) -> u64 {
        self.highest.lock().get(&id).copied().unwrap_or(0)
    }

    /// How far a catalog has come that is not open, if it was looked at since the start.
    pub(crate) fn of_met(&self, id: BucketId) -> Option<u64> {
        if !self.met.lock().contains(&id) {
            return None;
        }
        self.highest.lock().get(&id).copied()
    }

    /// Forgets a catalog: another one comes in its place.
    pub(crate) fn forget(&self, id: BucketId) {
        self.met.lock().remove(&id);
        self.highest.lock().remove(&id);
        self.news.fetch_add(1, Ordering::Release);
    }

    /// A number that is another one when something became known.
    pub(super) fn news(&self) -> u64 {
        self.news.load(Ordering::Acquire)
    }

    /// Of the buckets that have a key.
    pub(super) fn of_buckets(&self, keystore: &Keystore) -> BTreeMap<BucketId, u64> {
        let highest = self.highest.lock();
        let held = highest.iter().filter(|(id, _)| keystore.holds_bucket(**id));
        held.map(|(id, commits)| (*id, *commits)).collect()
    }
}
