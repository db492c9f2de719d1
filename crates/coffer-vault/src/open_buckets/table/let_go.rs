//! Letting go of a bucket that may be there again.

use coffer_seal::BucketId;

use super::OpenBuckets;
use crate::open_buckets::open_bucket::UsedBucket;
use crate::open_buckets::open_catalog::see_commits;
use crate::open_buckets::slots::Slots;

impl OpenBuckets {
    /// Lets go of a bucket whose key is about to be destroyed. What it holds still counts, by its
    /// level, by who made it and by who has uploads there: it may be spared.
    pub(crate) fn let_go(&self, id: BucketId) {
        self.totals.lock().remove(&id);
        self.versioning.lock().remove(&id);
        self.taps.forget(id);
        self.slots.lock().by_id.remove(&id);
    }

    /// Takes out those that have to make room for one more, to be closed. How far they have come is
    /// remembered at once: who opens the other one may leave before they are.
    pub(super) fn make_room(&self, slots: &mut Slots) -> Vec<UsedBucket> {
        let surplus = slots.make_room(self.open_max);
        for bucket in &surplus {
            let is_committing = bucket.catalog.is_committing();
            self.commits.seen(bucket.id, bucket.catalog.last_commit());
            if is_committing {
                // One that is in doubt shows, perhaps, and is not the last that is known.
                self.commits.is_to_be_met(bucket.id);
            }
        }
        surplus
    }

    /// Closes one of them.
    pub(super) async fn close_idle(&self, bucket: UsedBucket) {
        // It is not in use, so nothing is committed after this look.
        self.look(bucket.id, &bucket.catalog).await;
        see_commits(bucket.id, &bucket.catalog, &self.commits).await;
        bucket.catalog.close().await;
    }
}
