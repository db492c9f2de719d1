//! Which files of blobs may not be removed yet.
//!
//! A reader learns from the catalog which blobs it needs and opens them one after the other, while
//! the object is replaced or deleted. So each reader takes a pin first, and what
//! is freed later is removed only when every pin taken before is gone. Time is counted in epochs:
//! each removal ends one.

use std::collections::{BTreeMap, HashSet, VecDeque};

use coffer_seal::BlobId;

#[derive(Debug, Default)]
pub(crate) struct Pins {
    epoch: u64,
    /// How many readers began in each epoch that has any.
    readers: BTreeMap<u64, usize>,
    /// What was freed in each epoch, oldest first.
    doomed: VecDeque<(u64, Vec<BlobId>)>,
    doomed_ids: HashSet<BlobId>,
}

impl Pins {
    /// Counts a reader in; returns its epoch.
    pub(crate) fn pin(&mut self) -> u64 {
        *self.readers.entry(self.epoch).or_default() += 1;
        self.epoch
    }

    /// Counts a reader of `epoch` out; returns what may be removed now.
    pub(crate) fn unpin(&mut self, epoch: u64) -> Vec<BlobId> {
        if let Some(count) = self.readers.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                self.readers.remove(&epoch);
            }
        }
        self.due()
    }

    /// Takes what was freed; returns what may be removed now.
    pub(crate) fn doom(&mut self, ids: Vec<BlobId>) -> Vec<BlobId> {
        self.doomed_ids.extend(&ids);
        self.doomed.push_back((self.epoch, ids));
        self.epoch += 1;
        self.due()
    }

    /// Whether a blob waits to be removed.
    pub(crate) fn is_doomed(&self, id: &BlobId) -> bool {
        self.doomed_ids.contains(id)
    }

    fn due(&mut self) -> Vec<BlobId> {
        let oldest = self.readers.keys().next().copied().unwrap_or(u64::MAX);
        let mut due = Vec::new();
        while let Some((_, ids)) = self.doomed.pop_front_if(|(epoch, _)| *epoch < oldest) {
            due.extend(ids);
        }
        for id in &due {
            self.doomed_ids.remove(id);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BlobId = BlobId([1; 16]);
    const B: BlobId = BlobId([2; 16]);

    #[test]
    fn without_readers_everything_goes_at_once() {
        let mut pins = Pins::default();
        assert_eq!(pins.doom(vec![A]), [A]);
        assert!(!pins.is_doomed(&A));
    }

    #[test]
    fn what_is_freed_waits_for_those_who_began_before_and_for_nobody_else() {
        let mut pins = Pins::default();
        let early = pins.pin();
        assert_eq!(pins.doom(vec![A]), []);
        let late = pins.pin();
        assert!(pins.is_doomed(&A));
        assert_eq!(pins.doom(vec![B]), []);
        assert_eq!(pins.unpin(early), [A]);
        assert_eq!(pins.unpin(late), [B]);
    }

    #[test]
    fn a_late_reader_that_ends_first_frees_nothing() {
        let mut pins = Pins::default();
        let early = pins.pin();
        assert_eq!(pins.doom(vec![A]), []);
        let late = pins.pin();
        assert_eq!(pins.unpin(late), []);
        assert_eq!(pins.unpin(early), [A]);
    }
}
