//! Opens what was stored as it came: one blob after the other, in the background.
//!
//! Until then the catalog has a row for it. What does not open, or is other than its checksum says,
//! is not given out any more.

use std::sync::Weak;

use coffer_seal::BucketId;
use coffer_store::{StoreError, WaitingBlob};
use tokio::time::sleep;

use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{UNVERIFIED_AGAIN, UNVERIFIED_PAGE};
use crate::objects::{Keys, look_through};
use crate::open_buckets::UsedBucket;
use crate::transfers::Unverified;
use crate::vault::{Inner, Vault};

/// Verifies what waits in the buckets that are noted, as long as the vault is there.
pub(super) async fn verify_as_noted(inner: Weak<Inner>, unverified: Unverified) {
    loop {
        let id = unverified.next().await;
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = (Vault { inner }).verify_waiting(id).await {
            tracing::warn!(bucket = %id, %error, "what was stored unverified waits on");
            let again = unverified.clone();
            tokio::spawn(async move {
                sleep(UNVERIFIED_AGAIN).await;
                again.note(id);
            });
        }
    }
}

impl Vault {
    async fn verify_waiting(&self, id: BucketId) -> Result<()> {
        let inner = &self.inner;
        let opened = inner.open_buckets.open(&inner.folder, &inner.keystore, id);
        let bucket = match opened.await {
            // Deleted or erased since.
            Err(VaultError::NoSuchBucket) => return Ok(()),
            opened => opened?,
        };
        tokio::select! {
            () = bucket.cut_off() => Ok(()),
            verified = self.verify_in(&bucket) => verified,
        }
    }

    /// What can't be read is left to the next time, and keeps no other waiting.
    async fn verify_in(&self, bucket: &UsedBucket) -> Result<()> {
        // A commit in doubt tells only then whether its blob is one to be verified.
        bucket.settle().await?;
        let (mut after, mut outcome) = (None, Ok(()));
        loop {
            let page = bucket.catalog.waiting_blobs(after, UNVERIFIED_PAGE).await?;
            let Some(last) = page.last() else {
                return outcome;
            };
            after = Some(last.id);
            for waiting in &page {
                let verified = self.verify_blob(bucket, waiting).await;
                outcome = outcome.and(verified);
            }
        }
    }

    async fn verify_blob(&self, bucket: &UsedBucket, waiting: &WaitingBlob) -> Result<()> {
        // Asked first, for what is in flight may be referred to a moment later; the end of its
        // commit notes the bucket again.
        let is_in_flight = bucket.blobs.is_in_flight(waiting.id);
        let (_pin, before) = (bucket.blobs.pin(), bucket.key());
        let Some(blob) = bucket.catalog.blob(waiting.id).await? else {
            if !is_in_flight {
                self.note_gone(bucket, waiting).await?;
            }
            return Ok(());
        };
        let keys = Keys::around(before, bucket);
        let transfers = &self.inner.tally.transfers;
        match look_through(bucket, &keys, &blob, waiting).await {
            Ok(()) => {
                bucket.catalog.note_verified(waiting.id).await?;
                add(&transfers.verified_count, 1);
            }
            Err(StoreError::Damaged { what, .. }) => {
                if !bucket.catalog.contains_blob(&waiting.id).await? {
                    return self.note_gone(bucket, waiting).await;
                }
                bucket.catalog.note_damaged(waiting.id).await?;
                add(&transfers.verify_failed_count, 1);
                self.tell_damaged(bucket.id, waiting, what);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// What was replaced or deleted, or never committed, has no verdict.
    async fn note_gone(&self, bucket: &UsedBucket, waiting: &WaitingBlob) -> Result<()> {
        bucket.catalog.note_verified(waiting.id).await?;
        add(&self.inner.tally.transfers.verify_gone_count, 1);
        Ok(())
    }

    fn tell_damaged(&self, bucket: BucketId, waiting: &WaitingBlob, what: &'static str) {
        let blob = Some(waiting.id);
        let damage = StoreError::Damaged { what, bucket, blob };
        self.inner.tally.met(&damage);
        let row = self.inner.system.bucket_of_id(bucket);
        let name = row.as_ref().map_or("-", |row| row.name.as_str());
        let place = format!("blob {}: {what}", waiting.id);
        self.inner.audit.note_damaged_place(name, &place);
    }
}
