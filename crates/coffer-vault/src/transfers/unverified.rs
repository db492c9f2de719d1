//! Buckets in which blobs wait to be verified that were stored as they came.

use std::collections::HashSet;
use std::sync::Arc;

use coffer_seal::BucketId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Those buckets. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Unverified(Arc<Shared>);

#[derive(Default)]
struct Shared {
    buckets: Mutex<HashSet<BucketId>>,
    noted: Notify,
}

impl Unverified {
    /// Notes that something waits in a bucket.
    pub(crate) fn note(&self, bucket: BucketId) {
        self.0.buckets.lock().insert(bucket);
        self.0.noted.notify_one();
    }

    /// What notes a bucket when it goes: a commit whose outcome, whatever it is, lets the blob be
    /// looked at.
    pub(crate) fn awaited(&self, bucket: BucketId) -> Awaited {
        let unverified = self.clone();
        Awaited { unverified, bucket }
    }

    /// Takes one of them, once there is one.
    pub(crate) async fn next(&self) -> BucketId {
        loop {
            let noted = self.0.noted.notified();
            if let Some(bucket) = self.take() {
                return bucket;
            }
            noted.await;
        }
    }

    fn take(&self) -> Option<BucketId> {
        let mut buckets = self.0.buckets.lock();
        let bucket = *buckets.iter().next()?;
        buckets.remove(&bucket);
        Some(bucket)
    }
}

/// That a blob waits to be verified, but is not committed yet.
pub(crate) struct Awaited {
    unverified: Unverified,
    bucket: BucketId,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.unverified.note(self.bucket);
    }
}
