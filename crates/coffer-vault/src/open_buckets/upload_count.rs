//! How many multipart uploads are open, and thus keep the bytes of their parts.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use coffer_store::Catalog;
use coffer_store::record::Id;

use crate::locks::lock;

/// How many uploads each bucket had open when it was last looked at. A bucket that is closed has no
/// fewer or more than it had then.
#[derive(Default)]
pub(crate) struct OpenUploads(Mutex<HashMap<Id, u64>>);

impl OpenUploads {
    /// Looks how many a bucket has. A catalog that can't be read keeps the count that it had.
    pub(crate) async fn look(&self, id: Id, catalog: &Catalog) {
        match catalog.upload_count().await {
            Ok(0) => drop(self.lock().remove(&id)),
            Ok(count) => drop(self.lock().insert(id, count)),
            Err(_) => {}
        }
    }

    /// Forgets all buckets but these.
    pub(crate) fn keep(&self, ids: &HashSet<Id>) {
        self.lock().retain(|id, _| ids.contains(id));
    }

    /// How many there are in all buckets.
    pub(crate) fn count(&self) -> u64 {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Id, u64>> {
        lock(&self.0)
    }
}
