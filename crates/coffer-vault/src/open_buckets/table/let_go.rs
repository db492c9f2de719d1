//! Letting go of a bucket that may be there again.

use coffer_seal::BucketId;

use super::OpenBuckets;

impl OpenBuckets {
    /// Lets go of a bucket whose key is about to be destroyed. What it holds still counts, by its
    /// level, by who made it and by who has uploads there: it may be spared.
    pub(crate) fn let_go(&self, id: BucketId) {
        self.totals.lock().remove(&id);
        self.versioning.lock().remove(&id);
        self.taps.forget(id);
        self.slots.lock().by_id.remove(&id);
    }
}
