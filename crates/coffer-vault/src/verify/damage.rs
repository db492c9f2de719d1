//! What a verification does with what does not open, and with what was closed under it.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use coffer_seal::{BlobId, BucketId};
use coffer_store::StoreError;
use coffer_store::record::ObjectName;

use super::{Abandoned, Walk};
use crate::access::BucketName;
use crate::blocking::blocking;
use crate::counters::add;
use crate::error::VaultError;
use crate::open_buckets::OpenBucket;
use crate::verify::VerifyEvent;

/// What opens may still have had another checksum than was told with it.
pub(crate) async fn check_not_noted(bucket: &OpenBucket, blob: BlobId) -> Result<(), StoreError> {
    if bucket.catalog.is_noted_damaged(blob).await? {
        return Err(StoreError::Damaged {
            what: "it came sealed, and did not open then or had another checksum than was told",
            bucket: bucket.id,
            blob: Some(blob),
        });
    }
    Ok(())
}

impl Walk {
    pub(super) async fn damage(
        &mut self,
        bucket: &BucketName,
        name: Option<ObjectName>,
        what: String,
    ) -> Result<(), Abandoned> {
        add(&self.vault.inner.tally.damage_count, 1);
        self.counted_damage(bucket, name, what).await
    }

    /// Every page of `system.db`.
    pub(super) async fn system(&mut self) -> Result<(), Abandoned> {
        let inner = self.vault.inner.clone();
        let found = blocking(move || inner.system.find_damage()).await;
        let damage = match found {
            Ok(damage) => damage,
            Err(VaultError::ShuttingDown) => return Err(Abandoned),
            Err(error) => vec![format!("it can't be verified: {error}")],
        };
        for what in damage {
            add(&self.vault.inner.tally.damage_count, 1);
            self.damage_count += 1;
            let what = format!("system.db: {what}");
            self.vault.inner.audit.note_damaged_place("-", &what);
            self.tell(VerifyEvent::Damage {
                bucket: None,
                name: None,
                what,
            })
            .await?;
        }
        Ok(())
    }

    /// Buckets that a restore of others left out. A gateway has catalogs as it reads them.
    pub(super) async fn not_restored(&self) -> Result<HashSet<BucketId>, Abandoned> {
        let inner = self.vault.inner.clone();
        if inner.folder.is_cache() {
            return Ok(HashSet::new());
        }
        match blocking(move || inner.system.not_restored()).await {
            Err(VaultError::ShuttingDown) => Err(Abandoned),
            // What is damaged there is told, and so are all buckets that do not open.
            noted => Ok(noted.unwrap_or_default()),
        }
    }

    /// A catalog was closed under it: the server stops, or the bucket has been deleted.
    pub(super) fn closed(&self) -> Result<(), Abandoned> {
        if self.vault.inner.closed.load(Ordering::Acquire) {
            Err(Abandoned)
        } else {
            Ok(())
        }
    }

    pub(super) async fn not_opened(
        &mut self,
        bucket: &BucketName,
        error: VaultError,
    ) -> Result<(), Abandoned> {
        if !matches!(error, VaultError::Damaged) {
            let what = format!("the catalog can't be opened: {error}");
            return self.damage(bucket, None, what).await;
        }
        // Who opened it has counted it.
        let what = "the catalog can't be opened: it is missing, or its first page or its log is \
                    damaged, as the server's log says";
        self.counted_damage(bucket, None, what.to_owned()).await
    }

    /// A catalog could not be read to its end.
    pub(super) async fn not_read(
        &mut self,
        bucket: &BucketName,
        what: String,
        error: &StoreError,
    ) -> Result<(), Abandoned> {
        match error {
            StoreError::Damaged { .. } => self.counted_damage(bucket, None, what).await,
            _ => self.damage(bucket, None, what).await,
        }
    }

    /// Tells of damage that was counted already: what reads a catalog counts the damage that it
    /// meets.
    async fn counted_damage(
        &mut self,
        bucket: &BucketName,
        name: Option<ObjectName>,
        what: String,
    ) -> Result<(), Abandoned> {
        self.damage_count += 1;
        let audit = &self.vault.inner.audit;
        audit.note_damaged_place(bucket.as_str(), &what);
        self.tell(VerifyEvent::Damage {
            bucket: Some(bucket.clone()),
            name: name.filter(|_| self.tells_names),
            what,
        })
        .await
    }
}
