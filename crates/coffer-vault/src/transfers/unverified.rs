//! Buckets in which blobs wait to be verified that were stored as they came.

use std::collections::HashSet;
use std::sync::Arc;

use coffer_seal::{BlobId, BucketId};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Those buckets. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Unverified(Arc<Shared>);

#[derive(Default)]
struct Shared {
    buckets: Mutex<HashSet<BucketId>>,
    noted: Notify,
    /// Verdicts of which it is not known whether they stand.
    doubts: Mutex<Vec<(BucketId, Verdict)>>,
}

/// What was found of a blob that waited.
#[derive(Clone)]
pub(crate) struct Verdict {
    /// Which one.
    pub(crate) blob: BlobId,
    /// What it is.
    pub(crate) found: Found,
}

/// What a blob is found to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// All has opened, and has the checksum that was told.
    Whole,
    /// It was replaced or deleted, or never committed.
    Gone,
    /// It does not open, or has another checksum: what it says of it.
    Damaged(&'static str),
}

impl Unverified {
    /// Notes that something waits in a bucket.
    pub(crate) fn note(&self, bucket: BucketId) {
        self.0.buckets.lock().insert(bucket);
        self.0.noted.notify_one();
    }

    /// Keeps a verdict until it is known whether it stands, for it is counted and told only then.
    pub(crate) fn doubt(&self, bucket: BucketId, verdict: Verdict) {
        self.0.doubts.lock().push((bucket, verdict));
    }

    /// Takes the verdicts in doubt of a bucket.
    pub(crate) fn take_doubts(&self, bucket: BucketId) -> Vec<Verdict> {
        let mut doubts = self.0.doubts.lock();
        let of_bucket = doubts.extract_if(.., |(of, _)| *of == bucket);
        of_bucket.map(|(_, verdict)| verdict).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_in_doubt_is_taken_once_and_of_its_bucket() {
        let unverified = Unverified::default();
        let (bucket, other) = (BucketId::random(), BucketId::random());
        let blob = BlobId::random();
        let found = Found::Damaged("a chunk");
        unverified.doubt(bucket, Verdict { blob, found });
        assert!(unverified.take_doubts(other).is_empty());
        let taken = unverified.take_doubts(bucket);
        assert!(matches!(&taken[..], [verdict] if verdict.blob == blob && verdict.found == found));
        assert!(unverified.take_doubts(bucket).is_empty());
    }
}
