//! What lifecycle rules end: once a day, soon after midnight (UTC), and once after each start,
//! which goes on with what a stop interrupted. All of it is judged anew then, so nothing is kept of
//! how far a run came. Uploads that no rule speaks of are ended as well, after some days.

use std::sync::Arc;

use coffer_audit::Outcome;
use coffer_durable::now_ms;
use coffer_seal::BucketId;

use super::lifecycle_run::Run;
use crate::access::Act;
use crate::audit::{Facts, SERVER};
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{LIFECYCLE_AFTER_START, LIFECYCLE_LOOK};
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

impl Vault {
    /// Runs as long as the vault is there.
    pub(crate) fn start_lifecycle(&self) {
        let inner = Arc::downgrade(&self.inner);
        let day = self.inner.lifecycle.day;
        let running = tokio::spawn(async move {
            let pause = std::time::Duration::from_millis(day.ms.unsigned_abs());
            tokio::time::sleep(LIFECYCLE_AFTER_START.min(pause)).await;
            let mut last = None;
            loop {
                // The clock may be set, so it is looked at again and again.
                let today = day.number(now_ms());
                if last != Some(today) {
                    let Some(inner) = inner.upgrade() else { return };
                    Vault { inner }.run_lifecycle().await;
                    last = Some(today);
                }
                let left_ms = (day.number(now_ms()) + 1) * day.ms - now_ms();
                let left = std::time::Duration::from_millis(u64::try_from(left_ms).unwrap_or(0));
                tokio::time::sleep(left.min(LIFECYCLE_LOOK)).await;
            }
        });
        *self.inner.lifecycle.task.lock() = Some(running);
    }

    /// Breaks it off: the next start goes on.
    pub(crate) async fn stop_lifecycle(&self) {
        let running = self.inner.lifecycle.task.lock().take();
        if let Some(running) = running {
            running.abort();
            let _ = running.await;
        }
    }

    pub(crate) async fn run_lifecycle(&self) {
        let rows = self.inner.system.buckets();
        let is_there = |id: &BucketId| rows.iter().any(|row| row.id == *id);
        let mut kept = std::mem::take(&mut *self.inner.lifecycle.kept.lock());
        kept.retain(|id, _| is_there(id));
        *self.inner.lifecycle.kept.lock() = kept;
        if self.inner.system.is_an_erase_in_doubt() {
            tracing::warn!(
                "it is in doubt whether buckets are being erased: what lifecycle rules end there \
                 stays until the next run"
            );
        }
        for row in rows {
            match self.run_in(&row).await {
                Ok(()) => {}
                // Deleted or erased meanwhile.
                Err(VaultError::NoSuchBucket) if !self.inner.system.is_going(row.id) => {}
                Err(error) => {
                    add(&self.inner.tally.lifecycle_postponed_count, 1);
                    tracing::warn!(
                        bucket = %row.id, %error,
                        "what lifecycle rules end stays until the next run"
                    );
                }
            }
        }
    }

    async fn run_in(&self, row: &Arc<BucketRow>) -> Result<()> {
        // Which rules it has may be what is in doubt.
        if self.inner.system.is_in_doubt(row) {
            return Err(VaultError::BucketInDoubt);
        }
        let now_ms = now_ms();
        self.end_by_rules(row, now_ms).await?;
        self.end_forgotten_uploads(row, now_ms).await
    }

    async fn end_by_rules(&self, row: &Arc<BucketRow>, now_ms: i64) -> Result<()> {
        let Some(rules) = row.documents.lifecycle()? else {
            return Ok(());
        };
        let bucket = self.opened(row).await?;
        let row = &self.counted(row.clone()).await;
        Run::new(self, row, bucket, rules, now_ms).finish().await
    }

    /// Ends the uploads that are as old as the server's setting, where no rule of the bucket speaks
    /// of uploads.
    async fn end_forgotten_uploads(&self, row: &Arc<BucketRow>, now_ms: i64) -> Result<()> {
        let settings = &self.inner.lifecycle;
        let rules = row.documents.lifecycle()?;
        let Some(days) = settings.abort_uploads_days else {
            return Ok(());
        };
        let uploads = self.inner.open_buckets.uploads.of(row.id);
        let has_none = uploads.is_some_and(|uploads| uploads.count == 0);
        if has_none || rules.is_some_and(|rules| rules.ends_uploads()) {
            return Ok(());
        }
        let age_ms = settings.day.ms.saturating_mul(days.get().into());
        let midnight_ms = settings.day.number(now_ms) * settings.day.ms;
        let before_ms = midnight_ms.saturating_sub(age_ms).saturating_add(1);
        let bucket = self.opened(row).await?;
        if bucket.catalog.open_uploads(Some(before_ms)).await?.count == 0 {
            return Ok(());
        }
        let mut facts = Facts::from([
            ("bucket", row.name.to_string()),
            ("older-than-seconds", (age_ms / 1000).to_string()),
        ]);
        let (act, server) = (Act::EndUploads, &SERVER);
        self.record(act, server, Outcome::Begun, &[facts.clone()])
            .await?;
        let waited_for = &self.inner.copies.waited_for;
        let under_way = waited_for.begin_change(Some(row.id));
        let ended = self.end_in(&bucket, before_ms).await;
        let ended = waited_for.settle_own(under_way, ended).await?;
        add(&self.inner.tally.lifecycle_upload_count, ended.count);
        facts.insert("count", ended.count.to_string());
        facts.insert("bytes", ended.bytes.to_string());
        self.record(act, server, Outcome::Done, &[facts]).await?;
        Ok(())
    }

    /// A bucket for the server's own use.
    async fn opened(&self, row: &BucketRow) -> Result<UsedBucket> {
        let inner = &self.inner;
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, row.id)
            .await;
        if row.is_out_of_use() {
            return Err(inner.system.out_of_use(row));
        }
        opened.map_err(|error| error.of_bucket(row.name.as_str(), row.id))
    }
}
