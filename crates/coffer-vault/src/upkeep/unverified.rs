//! Opens what was stored as it came: one blob after the other, in the background.
//!
//! Until then the catalog has a row for it. What does not open, or is other than its checksum says,
//! is not given out any more.

use std::sync::Weak;

use coffer_seal::{BlobId, BucketId};
use coffer_store::{BlobState, StoreError, WaitingBlob};
use tokio::time::sleep;

use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{UNVERIFIED_AGAIN, UNVERIFIED_PAGE};
use crate::objects::{Keys, look_through};
use crate::open_buckets::UsedBucket;
use crate::transfers::{Found, Unverified, Verdict};
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

impl Inner {
    /// Whether a bucket was deleted or erased. What waited there went with its catalog.
    fn is_bucket_gone(&self, id: BucketId) -> bool {
        let has_row = self.system.bucket_of_id(id).is_some() || self.system.is_going(id);
        !has_row && !self.keystore.holds_bucket(id)
    }
}

impl Vault {
    async fn verify_waiting(&self, id: BucketId) -> Result<()> {
        let inner = &self.inner;
        let opened = inner.open_buckets.open(&inner.folder, &inner.keystore, id);
        let bucket = match opened.await {
            // Being deleted or erased.
            Err(VaultError::NoSuchBucket) => return Ok(()),
            Err(_) if inner.is_bucket_gone(id) => {
                self.forget_doubts(id);
                return Ok(());
            }
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
        self.settle_doubts(bucket).await?;
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
                self.note_verdict(bucket, waiting.id, Found::Gone).await?;
            }
            return Ok(());
        };
        let keys = Keys::around(before, bucket);
        let found = match look_through(bucket, &keys, &blob, waiting).await {
            Ok(()) => Found::Whole,
            Err(StoreError::Damaged { what, .. }) => {
                if bucket.catalog.contains_blob(&waiting.id).await? {
                    Found::Damaged(what)
                } else {
                    Found::Gone
                }
            }
            Err(error) => return Err(error.into()),
        };
        self.note_verdict(bucket, waiting.id, found).await
    }

    /// Notes a verdict. One whose commit fails may stand all the same, and the blob waits no more
    /// then: the verdict is kept until that is known.
    async fn note_verdict(&self, bucket: &UsedBucket, blob: BlobId, found: Found) -> Result<()> {
        let noted = match found {
            Found::Damaged(_) => bucket.catalog.note_damaged(blob).await,
            Found::Whole | Found::Gone => bucket.catalog.note_verified(blob).await,
        };
        let verdict = Verdict { blob, found };
        match noted {
            Ok(()) => self.tell_verdict(bucket.id, &verdict),
            Err(_) => self.inner.transfers.unverified().doubt(bucket.id, verdict),
        }
        Ok(noted?)
    }

    /// Counts and tells verdicts that were in doubt, and stand. What waits still is verified anew.
    async fn settle_doubts(&self, bucket: &UsedBucket) -> Result<()> {
        let unverified = self.inner.transfers.unverified();
        let mut outcome = Ok(());
        for verdict in unverified.take_doubts(bucket.id) {
            match bucket.catalog.blob_state(verdict.blob).await {
                Ok(BlobState::Waits(_)) => {}
                Ok(_) => self.tell_verdict(bucket.id, &verdict),
                Err(error) => {
                    unverified.doubt(bucket.id, verdict);
                    outcome = Err(error.into());
                }
            }
        }
        outcome
    }

    /// Those of a bucket that is gone: so is what they were on.
    fn forget_doubts(&self, bucket: BucketId) {
        let found = Found::Gone;
        for Verdict { blob, .. } in self.inner.transfers.unverified().take_doubts(bucket) {
            self.tell_verdict(bucket, &Verdict { blob, found });
        }
    }

    /// Counts a verdict that stands, and tells of damage.
    fn tell_verdict(&self, bucket: BucketId, verdict: &Verdict) {
        let transfers = &self.inner.tally.transfers;
        match verdict.found {
            Found::Whole => add(&transfers.verified_count, 1),
            Found::Gone => add(&transfers.verify_gone_count, 1),
            Found::Damaged(what) => {
                add(&transfers.verify_failed_count, 1);
                self.tell_damaged(bucket, verdict.blob, what);
            }
        }
    }

    fn tell_damaged(&self, bucket: BucketId, id: BlobId, what: &'static str) {
        let blob = Some(id);
        let damage = StoreError::Damaged { what, bucket, blob };
        self.inner.tally.met(&damage);
        let row = self.inner.system.bucket_of_id(bucket);
        let name = row.as_ref().map_or("-", |row| row.name.as_str());
        let place = format!("blob {id}: {what}");
        self.inner.audit.note_damaged_place(name, &place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rotation::tests::LOCAL;
    use crate::tests::erase_doubts::scene;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_in_a_bucket_that_was_erased_waits_no_more() {
        let data = tempfile::tempdir().unwrap();
        let (vault, _subject, name) = scene(data.path()).await;
        let id = vault.inner.system.bucket(&name).unwrap().id;
        vault.erase_bucket(&LOCAL, &name).await.unwrap();
        let unverified = vault.inner.transfers.unverified();
        let found = Found::Damaged("a chunk");
        let blob = BlobId::random();
        unverified.doubt(id, Verdict { blob, found });
        vault.verify_waiting(id).await.unwrap();
        assert!(unverified.take_doubts(id).is_empty());
        let transfers = &vault.inner.tally.transfers;
        assert_eq!(transfers.snapshot(0).verify_gone_count, 1);
        vault.close().await;
    }

    /// It may be there again: nothing says that it was erased.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_waits_in_a_bucket_that_can_not_be_opened_waits_on() {
        let data = tempfile::tempdir().unwrap();
        let (vault, _subject, name) = scene(data.path()).await;
        let id = vault.inner.system.bucket(&name).unwrap().id;
        vault.inner.open_buckets.forget(id);
        vault.inner.keystore.destroy_bucket(id).unwrap();
        assert!(vault.verify_waiting(id).await.is_err());
        vault.close().await;
    }
}
