//! Keeping the cache of a gateway within its bounds.

use coffer_vault::{BlobCache, Hesitation};
use tokio::task::JoinHandle;

use crate::limits::CACHE_TENDED_EVERY;

/// What keeps the cache of blobs within its bounds.
#[derive(Default)]
pub struct Tending(Option<JoinHandle<()>>);

impl Tending {
    /// A gateway whose disk has no room for what is new rather leaves the lease to others.
    pub fn begin(&mut self, cache: BlobCache, hesitation: Hesitation) {
        self.0 = Some(tokio::spawn(async move {
            let look = cache.clone();
            let _ = tokio::task::spawn_blocking(move || look.look()).await;
            loop {
                tokio::time::sleep(CACHE_TENDED_EVERY).await;
                let cache = cache.clone();
                let tended = tokio::task::spawn_blocking(move || {
                    cache.tend();
                    cache.is_full()
                });
                hesitation.set(tended.await.unwrap_or_default());
            }
        }));
    }
}

impl Drop for Tending {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}
