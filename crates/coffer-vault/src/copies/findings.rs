//! What a check found to be missing or damaged in a copy, for the task that puts it again.

use std::collections::HashMap;

use coffer_seal::{BlobId, BucketId};
use parking_lot::Mutex;

use crate::limits::COPY_RENEWED_MAX;

/// What is to be put again.
#[derive(Default)]
pub(crate) struct Found {
    /// Small files: all of them.
    pub(crate) are_files: bool,
    /// The keystore that went along.
    pub(crate) is_keystore: bool,
    /// By bucket.
    pub(crate) buckets: HashMap<BucketId, FoundOf>,
}

/// Of one bucket.
#[derive(Default)]
pub(crate) struct FoundOf {
    /// Its catalog: all of its pages.
    pub(crate) is_catalog: bool,
    /// Blobs. What is found beyond the limit is found by the next check.
    pub(crate) blobs: Vec<BlobId>,
}

/// The same, between a check and the task.
#[derive(Default)]
pub(crate) struct Findings(Mutex<Found>);

impl Findings {
    /// A small file is wrong.
    pub(crate) fn files(&self) {
        self.0.lock().are_files = true;
    }

    /// The keystore that went along is.
    pub(crate) fn keystore(&self) {
        self.0.lock().is_keystore = true;
    }

    /// A catalog is.
    pub(crate) fn catalog(&self, id: BucketId) {
        self.0.lock().buckets.entry(id).or_default().is_catalog = true;
    }

    /// A blob is.
    pub(crate) fn blob(&self, bucket: BucketId, id: BlobId) {
        let mut found = self.0.lock();
        let blobs = &mut found.buckets.entry(bucket).or_default().blobs;
        if blobs.len() < COPY_RENEWED_MAX {
            blobs.push(id);
        }
    }

    /// What there is, which is none afterwards.
    pub(crate) fn take(&self) -> Found {
        std::mem::take(&mut self.0.lock())
    }
}
