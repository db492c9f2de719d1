//! How many multipart uploads are open, and thus keep the bytes of their parts.

use std::collections::{HashMap, HashSet};

use coffer_seal::BucketId;
use coffer_store::Catalog;
use parking_lot::Mutex;

/// How many uploads each bucket had open when it was last looked at. A bucket that is closed has no
/// fewer or more than it had then.
#[derive(Default)]
pub(crate) struct OpenUploads(Mutex<HashMap<BucketId, u64>>);

impl OpenUploads {
    /// Looks how many a bucket has. A catalog that can't be read keeps the count that it had.
    pub(crate) async fn look(&self, id: BucketId, catalog: &Catalog) {
        match catalog.upload_count().await {
            Ok(0) => drop(self.0.lock().remove(&id)),
            Ok(count) => drop(self.0.lock().insert(id, count)),
            Err(_) => {}
        }
    }

    /// Forgets all buckets but these.
    pub(crate) fn keep(&self, ids: &HashSet<BucketId>) {
        self.0.lock().retain(|id, _| ids.contains(id));
    }

    /// How many there are in all buckets.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().values().sum()
    }
}
