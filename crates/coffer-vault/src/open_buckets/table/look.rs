//! How much buckets hold: looked at now and then, and kept for those that are closed.

use coffer_seal::BucketId;
use coffer_store::version::Versioning;
use coffer_store::{Catalog, Change, OpenUploads, StoreError, Totals};

use super::OpenBuckets;

impl OpenBuckets {
    /// How much a bucket holds, and its uploads, as far as that is known without opening it.
    pub(crate) async fn known(&self, id: BucketId) -> Option<(Totals, OpenUploads)> {
        // Used from within the lock on, so that it is not closed meanwhile.
        let opened = self.slots.lock().by_id.get(&id).and_then(|it| it.opened());
        if let Some(bucket) = opened {
            self.look(id, &bucket.catalog).await;
        }
        self.last_seen(id)
    }

    /// How much a bucket holds, as far as that is known without opening it.
    pub(crate) async fn known_totals(&self, id: BucketId) -> Option<Totals> {
        // Used from within the lock on, so that it is not closed meanwhile.
        let opened = self.slots.lock().by_id.get(&id).and_then(|it| it.opened());
        match opened {
            Some(bucket) => bucket.catalog.totals().await.ok(),
            None => self.totals.lock().get(&id).copied(),
        }
    }

    /// Notes how much a bucket holds now.
    pub(crate) async fn look(&self, id: BucketId, catalog: &Catalog) {
        let look = self.quotas.begin_look(id);
        let versioning = catalog.versioning().await;
        let is_in_doubt = matches!(versioning, Err(StoreError::InDoubt));
        match versioning {
            Ok(versioning) => drop(self.versioning.lock().insert(id, versioning)),
            Err(StoreError::InDoubt) => drop(self.versioning.lock().remove(&id)),
            Err(_) => {}
        }
        let totals = catalog.totals().await.ok();
        if let Some(totals) = totals {
            self.totals.lock().insert(id, totals);
        }
        if is_in_doubt {
            // What may yet stand would be counted no more.
            return;
        }
        let uploads = self.uploads.look(id, catalog).await;
        if let (Some(totals), Some(uploads)) = (totals, uploads) {
            let count = |number| i64::try_from(number).unwrap_or(i64::MAX);
            let held = Change {
                objects: count(totals.objects),
                bytes: count(totals.bytes.saturating_add(uploads.bytes)),
                uploads: count(uploads.count),
            };
            self.quotas.end_look(id, &look, held);
        }
    }

    /// How much a bucket held when it was last looked at, and its uploads.
    pub(crate) fn last_seen(&self, id: BucketId) -> Option<(Totals, OpenUploads)> {
        let totals = self.totals.lock().get(&id).copied()?;
        Some((totals, self.uploads.of(id).unwrap_or_default()))
    }

    /// Whether a bucket kept versions when it was last looked at.
    pub(crate) fn last_versioning(&self, id: BucketId) -> Option<Versioning> {
        self.versioning.lock().get(&id).copied()
    }

    /// Looks again at those in which it was in doubt whether something was committed, as soon as
    /// that can be known. False where it can't be yet.
    pub(crate) async fn look_where_in_doubt(&self) -> bool {
        let mut are_known = true;
        for id in self.quotas.in_doubt() {
            // Used from within the lock on, so that it is not closed meanwhile.
            let opened = self.slots.lock().by_id.get(&id).and_then(|it| it.opened());
            let Some(bucket) = opened else {
                continue;
            };
            if bucket.settle().await.is_err() {
                are_known = false;
            } else if !bucket.catalog.is_committing() {
                self.look(id, &bucket.catalog).await;
            }
        }
        are_known
    }
}
