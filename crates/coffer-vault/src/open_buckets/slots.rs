//! Places of open buckets: one for each that is open or being opened, and who makes room.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use coffer_seal::BucketId;
use tokio::sync::OnceCell;

use super::open_bucket::{OpenBucket, UsedBucket};
use super::users::Users;
use crate::cutoff::Connections;
use crate::limits::CONNECTIONS_NOTED_MIN;

#[derive(Default)]
pub(super) struct Slot {
    pub(super) bucket: OnceCell<Arc<OpenBucket>>,
    pub(super) users: Users,
    pub(super) last_used: AtomicU64,
    /// Whether its key is about to be destroyed.
    pub(super) is_barred: AtomicBool,
}

impl Slot {
    pub(super) fn is_barred(&self) -> bool {
        self.is_barred.load(Ordering::SeqCst)
    }

    /// Its bucket, if it was opened.
    pub(super) fn opened(&self) -> Option<UsedBucket> {
        self.bucket.get().cloned().map(UsedBucket::new)
    }
}

#[derive(Default)]
pub(super) struct Slots {
    pub(super) by_id: HashMap<BucketId, Arc<Slot>>,
    /// Buckets that are not to be opened.
    pub(super) barred: HashSet<BucketId>,
    /// Taken out to make room, and perhaps not closed yet.
    pub(super) closing: Vec<Weak<OpenBucket>>,
    /// What buckets that were closed have noted: connections that are still there, and may have
    /// plaintext in their buffers.
    pub(super) left: HashMap<BucketId, Arc<Connections>>,
    /// How many there may be before those of ended connections are sorted out.
    sort_out_at: usize,
}

impl Slots {
    /// Takes out what has to make room for one more: those unused for longest among the buckets
    /// that are not in use now.
    pub(super) fn make_room(&mut self, open_max: usize) -> Vec<UsedBucket> {
        let mut surplus = Vec::new();
        while self.by_id.len() >= open_max {
            let Some(bucket) = self.take_idle() else {
                break;
            };
            surplus.extend(bucket);
        }
        surplus
    }

    /// Removes the slot unused for longest among those that are not in use, with its bucket, if it
    /// was opened.
    fn take_idle(&mut self) -> Option<Option<UsedBucket>> {
        // An erase lets go of those that it has barred.
        let is_idle = |slot: &Slot| slot.users.count() == 0 && !slot.is_barred();
        let slots = self.by_id.iter().filter(|(_, slot)| is_idle(slot));
        let (&id, _) = slots.min_by_key(|(_, slot)| slot.last_used.load(Ordering::Relaxed))?;
        let bucket = self.by_id.remove(&id)?.opened();
        self.closing.retain(|closing| closing.strong_count() > 0);
        self.closing
            .extend(bucket.as_ref().map(UsedBucket::downgrade));
        if let Some(bucket) = bucket.as_ref().filter(|one| one.connections.count() > 0) {
            self.keep(id, bucket.connections.clone());
        }
        Some(bucket)
    }

    fn keep(&mut self, id: BucketId, connections: Arc<Connections>) {
        if self.left.len() >= self.sort_out_at {
            self.left.retain(|_, connections| connections.count() > 0);
            self.sort_out_at = CONNECTIONS_NOTED_MIN.max(2 * self.left.len());
        }
        self.left.insert(id, connections);
    }
}
