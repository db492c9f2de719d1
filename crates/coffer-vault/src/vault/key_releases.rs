//! Counting data keys that are given to clients, durably and before they are.

use std::sync::Arc;

use crate::blocking::blocking;
use crate::error::Result;
use crate::system::BucketRow;
use crate::vault::Vault;

impl Vault {
    /// Has so many data keys of a bucket counted that are about to be given to a client: one for
    /// each blob of which it is told the key. Durable when this returns.
    ///
    /// # Errors
    /// Then none may be given: the bucket is out of use, or it can't be counted.
    pub(crate) async fn cover_key_release(&self, row: &Arc<BucketRow>, count: u64) -> Result<()> {
        let gate = &self.inner.gate;
        gate.refuse_on_standby("no data keys are released here")?;
        if self.inner.system.covers_key_release(row, count) {
            return Ok(());
        }
        let (inner, row) = (self.inner.clone(), row.clone());
        blocking(move || inner.system.cover_key_release(&row, count)).await
    }

    /// Has the counts be exact at a stop. Where that fails they are too high, which they may be.
    pub(super) async fn settle_key_releases(&self) {
        let inner = self.inner.clone();
        if let Err(error) = blocking(move || inner.system.settle_key_releases()).await {
            tracing::warn!(%error, "counts of data keys that clients were given stay too high");
        }
    }
}
