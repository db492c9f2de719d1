//! Places of open buckets: one for each that is open or being opened, and who makes room.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use coffer_store::record::Id;
use tokio::sync::OnceCell;

use super::open_bucket::OpenBucket;

#[derive(Default)]
pub(super) struct Slot {
    pub(super) bucket: OnceCell<Arc<OpenBucket>>,
    pub(super) last_used: AtomicU64,
    /// Whether its key is about to be destroyed.
    pub(super) is_barred: AtomicBool,
}

impl Slot {
    pub(super) fn is_barred(&self) -> bool {
        self.is_barred.load(Ordering::SeqCst)
    }
}

#[derive(Default)]
pub(super) struct Slots {
    pub(super) by_id: HashMap<Id, Arc<Slot>>,
    /// Buckets that are not to be opened.
    pub(super) barred: HashSet<Id>,
    /// Taken out to make room, and perhaps not closed yet.
    pub(super) closing: Vec<Weak<OpenBucket>>,
}

impl Slots {
    /// Takes out what has to make room for one more: those unused for longest among the buckets
    /// that nobody uses now.
    pub(super) fn make_room(&mut self, open_max: usize) -> Vec<Arc<OpenBucket>> {
        let mut surplus = Vec::new();
        while self.by_id.len() >= open_max {
            let Some(bucket) = self.take_idle() else {
                break;
            };
            surplus.extend(bucket);
        }
        surplus
    }

    /// Removes the slot unused for longest among those that nobody uses, with its bucket, if it was
    /// opened.
    fn take_idle(&mut self) -> Option<Option<Arc<OpenBucket>>> {
        let idle = |slot: &Arc<Slot>| {
            let is_held = |bucket: &Arc<OpenBucket>| Arc::strong_count(bucket) > 1;
            Arc::strong_count(slot) == 1 && !slot.bucket.get().is_some_and(is_held)
        };
        let slots = self.by_id.iter().filter(|(_, slot)| idle(slot));
        let (&id, _) = slots.min_by_key(|(_, slot)| slot.last_used.load(Ordering::Relaxed))?;
        let bucket = self.by_id.remove(&id)?.bucket.get().cloned();
        self.closing.retain(|closing| closing.strong_count() > 0);
        self.closing.extend(bucket.as_ref().map(Arc::downgrade));
        Some(bucket)
    }
}
