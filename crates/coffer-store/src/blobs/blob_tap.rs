//! Which blobs are new since they were last taken, for those who copy them.

use std::collections::BTreeMap;

use coffer_seal::BlobId;
use parking_lot::Mutex;

use crate::limits::TAPPED_BLOBS_MAX;

/// The blobs that were finished in one bucket, for each of those who copy it.
#[derive(Debug, Default)]
pub struct BlobTap(Mutex<BTreeMap<u32, Fresh>>);

/// Blobs that were finished.
#[derive(Debug, Default)]
pub struct Fresh {
    /// Their ids. Not all of them belong to objects.
    pub ids: Vec<BlobId>,
    /// Whether there were more than are remembered: the catalog is to be walked as well.
    pub is_incomplete: bool,
}

impl BlobTap {
    /// From now on blobs are noted for `cursor`, who does not know those that are there.
    pub fn follow(&self, cursor: u32) {
        let unknown = Fresh {
            ids: Vec::new(),
            is_incomplete: true,
        };
        self.0.lock().entry(cursor).or_insert(unknown);
    }

    /// No more.
    pub fn unfollow(&self, cursor: u32) {
        self.0.lock().remove(&cursor);
    }

    /// How many are to be taken, as far as that is known.
    pub fn count(&self, cursor: u32) -> usize {
        self.0
            .lock()
            .get(&cursor)
            .map_or(0, |fresh| fresh.ids.len())
    }

    /// Takes what was noted.
    pub fn take(&self, cursor: u32) -> Fresh {
        let mut all = self.0.lock();
        all.get_mut(&cursor).map(std::mem::take).unwrap_or_default()
    }

    /// What was taken did not all arrive.
    pub fn give_back(&self, cursor: u32, fresh: Fresh) {
        if let Some(noted) = self.0.lock().get_mut(&cursor) {
            noted.is_incomplete |= fresh.is_incomplete;
            noted.add(&fresh.ids);
        }
    }

    pub(crate) fn note(&self, id: BlobId) {
        self.0
            .lock()
            .values_mut()
            .for_each(|fresh| fresh.add(&[id]));
    }
}

impl Fresh {
    fn add(&mut self, ids: &[BlobId]) {
        // Also where the catalog is to be walked: of what was finished last, the rows may be
        // committed after the walk.
        self.ids.extend_from_slice(ids);
        if self.ids.len() > TAPPED_BLOBS_MAX {
            self.is_incomplete = true;
            // Rows of the older half are committed long since: the walk finds them.
            self.ids.drain(..self.ids.len() - TAPPED_BLOBS_MAX / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_taken_once_and_never_grows_for_ever() {
        let tap = BlobTap::default();
        tap.follow(1);
        tap.note(BlobId([3; 16]));
        let first = tap.take(1);
        assert!(first.is_incomplete, "what was there is not known");
        let kept = [BlobId([3; 16])];
        assert_eq!(first.ids, kept, "its row may be committed after the walk");
        tap.note(BlobId([1; 16]));
        let fresh = tap.take(1);
        assert_eq!((fresh.ids.len(), fresh.is_incomplete), (1, false));
        assert_eq!(tap.count(1), 0);
        tap.give_back(1, fresh);
        assert_eq!(tap.count(1), 1);
        for _ in 0..TAPPED_BLOBS_MAX {
            tap.note(BlobId([2; 16]));
        }
        assert!(tap.count(1) <= TAPPED_BLOBS_MAX);
        assert!(tap.take(1).is_incomplete);
        assert_eq!(
            tap.take(2).ids.len(),
            0,
            "one who does not follow has nothing"
        );
    }
}
