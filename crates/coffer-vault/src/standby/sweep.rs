//! Removing blobs that no object has any more, some time after they were deleted at the original.

use std::time::Instant;

use coffer_replica::CopyReader;
use coffer_seal::BucketId;
use coffer_store::Catalog;

use super::Standby;
use super::room::remove_unnamed_by;
use crate::error::Result;
use crate::limits::STANDBY_SWEEPS_EVERY;

impl Standby {
    /// Removes them, where that is due and nothing is to be fetched. `reader` is of what is held.
    pub(super) async fn sweep(&mut self, reader: &CopyReader) -> Result<()> {
        let began = self.swept.get_or_insert_with(Instant::now);
        // A cache removes what is not asked for by itself.
        if began.elapsed() < STANDBY_SWEEPS_EVERY || self.vault.cache.is_some() {
            return Ok(());
        }
        for id in self.wanted(reader).into_keys() {
            self.sweep_bucket(id).await?;
        }
        self.swept = Some(Instant::now());
        Ok(())
    }

    async fn sweep_bucket(&self, id: BucketId) -> Result<()> {
        let Some(reached) = &self.reached else {
            return Ok(());
        };
        let folder = self.data().join("buckets").join(id.to_string());
        let key = reached.keystore.bucket_key(id)?;
        let catalog = Catalog::open_read_only(&folder, &key.catalog_key()).await?;
        let swept = remove_unnamed_by(&[&catalog], folder.join("blobs")).await;
        catalog.close().await;
        swept
    }
}
