//! Before a quota is judged, all that it counts has been read.
//!
//! A start opens all buckets in the background. Until that is done, a level's or a subject's
//! buckets may lack in the sum.

use std::sync::Arc;

use crate::quotas::QuotaOf;
use crate::system::BucketRow;
use crate::vault::Vault;

impl Vault {
    /// Has the buckets read that count in the same sums as this one, where those have quotas; gives
    /// the row back.
    pub(crate) async fn counted(&self, row: Arc<BucketRow>) -> Arc<BucketRow> {
        let ledger = &self.inner.open_buckets.quotas;
        ledger.place(row.id, row.level_id, row.made_by.as_deref());
        if !ledger.is_empty() {
            self.read_for(&ledger.sums_that_limit(row.id)).await;
        }
        row
    }

    /// Has the buckets read that count in these sums.
    pub(crate) async fn read_for(&self, of: &[QuotaOf]) {
        let ledger = &self.inner.open_buckets.quotas;
        if of.is_empty() {
            return;
        }
        for id in ledger.unread(of) {
            let (folder, keystore) = (&self.inner.folder, &self.inner.keystore);
            let opened = self.inner.open_buckets.open(folder, keystore, id).await;
            if let Err(error) = opened {
                tracing::warn!(bucket = %id, %error, "no quota counts what this bucket holds");
            }
            // It is read now; or else it counts nothing until it can be opened.
            ledger.give_up(id);
        }
    }
}
