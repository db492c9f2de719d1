//! Wrapping a bucket's data keys anew.

use std::time::Instant;

use coffer_keys::BucketKey;
use coffer_seal::BucketId;
use coffer_store::{HeldKey, KeyPlace};

use super::Plan;
use super::retiring::LeftGeneration;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::limits::{REWRAP_COMMIT, REWRAP_PASSES_MAX, REWRAP_REST, REWRAP_REST_MAX};
use crate::open_buckets::{OpenBucket, customer_key};
use crate::vault::Vault;

impl Vault {
    /// Rewraps all that the older generation of a bucket's key wrapped.
    pub(super) async fn leave_generation(
        &self,
        plan: &Plan,
        bucket: &OpenBucket,
        id: BucketId,
        older: u32,
    ) -> Result<LeftGeneration> {
        let key = self.inner.keystore.bucket_key(id)?;
        bucket.take_key(key.clone()).await;
        // What was in doubt until then may stand under the older one.
        bucket.settle().await?;
        let catalog = &bucket.catalog;
        let mut left = catalog.count_of_other_generations(key.generation()).await?;
        self.tell(plan, |told| told.key_count += left);
        for _ in 0..REWRAP_PASSES_MAX {
            if left == 0 {
                break;
            }
            self.rewrap_all(plan, bucket, &key).await?;
            // All in one look: what was moved while it was being walked over is found.
            left = catalog.count_of_other_generations(key.generation()).await?;
        }
        if left > 0 {
            return Err(VaultError::Invalid {
                what: "data keys kept appearing under the older key",
            });
        }
        // From here on none is wrapped by it.
        let commits = catalog.commit_count().await?;
        Ok(LeftGeneration { id, older, commits })
    }

    async fn rewrap_all(&self, plan: &Plan, bucket: &OpenBucket, key: &BucketKey) -> Result<()> {
        let generation = key.generation();
        let mut after = KeyPlace::FIRST;
        let mut rewrapped = Vec::new();
        loop {
            let begun = Instant::now();
            let catalog = &bucket.catalog;
            let found = catalog.keys_of_other_generations(generation, after).await?;
            let is_end = found.is_empty();
            if let Some(last) = found.last() {
                after = last.place;
                let key = key.clone();
                rewrapped.extend(blocking(move || rewrap(&key, found)).await?);
            }
            let is_due = rewrapped.len() >= REWRAP_COMMIT || is_end;
            if is_due && !rewrapped.is_empty() {
                let count = rewrapped.len() as u64;
                let done = std::mem::take(&mut rewrapped);
                catalog.replace_keys(done, generation).await?;
                self.inner.at("some rewrapped");
                self.tell(plan, |told| told.keys_done += count);
            }
            if is_end {
                return Ok(());
            }
            tokio::time::sleep(REWRAP_REST_MAX.min(begun.elapsed() * REWRAP_REST)).await;
        }
    }
}

fn rewrap(key: &BucketKey, mut found: Vec<HeldKey>) -> Result<Vec<HeldKey>> {
    for held in &mut found {
        let from = (key, held.generation);
        held.wrapped_key = customer_key::rewrap(from, key, held.blob_id, &held.wrapped_key)?;
        held.generation = key.generation();
    }
    Ok(found)
}
