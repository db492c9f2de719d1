//! What is put in order after a start, in the background: remains of buckets whose making or
//! deletion was interrupted, and blob files that no catalog refers to.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use coffer_seal::BucketId;
use coffer_store::{Catalog, Swept};

use crate::blocking::blocking;
use crate::buckets::remove_empty_folders;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::{BUCKETS_LOOK, DOUBTS_LOOK, DOUBTS_LOOK_MAX};
use crate::upkeep::unverified::verify_as_noted;
use crate::vault::{Inner, Vault};

impl Vault {
    pub(crate) fn start_recovery(&self) {
        let this = self.clone();
        let (inner, unverified) = (
            Arc::downgrade(&self.inner),
            self.inner.transfers.unverified(),
        );
        let verifying = verify_as_noted(inner, unverified.clone());
        let order = async move {
            this.adopt_waiting().await;
            this.remove_remains().await;
            this.remove_doomed_folders_soon();
            this.remove_empty_folders().await;
            this.count_all().await;
            this.sweep_all().await;
            this.start_lifecycle();
            let inner = Arc::downgrade(&this.inner);
            drop(this);
            tokio::join!(look_at_buckets(inner.clone()), look_where_in_doubt(inner));
        };
        let recovery = tokio::spawn(async move {
            tokio::join!(verifying, order);
        });
        *self.inner.recovery.lock() = Some(recovery);
    }

    /// Breaks off what is still being put in order: the next start does it.
    pub(crate) async fn stop_recovery(&self) {
        let recovery = self.inner.recovery.lock().take();
        if let Some(recovery) = recovery {
            recovery.abort();
            let _ = recovery.await;
        }
    }

    /// Removes buckets that have a key but no row. Such a bucket is empty, for it was being made or
    /// deleted; one that is not empty is kept whatever it takes, since then it is `system.db` that
    /// must have lost the row.
    async fn remove_remains(&self) {
        for entry in self.inner.keystore.buckets() {
            let id = entry.id;
            // That of an imported bucket may still be on its way here.
            if self.is_known_now(id) || self.is_imported(id) {
                continue;
            }
            // Bucket by bucket, so that what makes, deletes or erases does not wait for long.
            let _changing = self.inner.changing_buckets.lock().await;
            let inner = self.inner.clone();
            // Or its row may be there.
            if let Err(error) = blocking(move || inner.system.assure_certain()).await {
                tracing::warn!(bucket = %id, %error, "remains are left to the next start");
                continue;
            }
            if self.is_known_now(id) {
                continue;
            }
            match self.is_remains(id).await {
                Ok(true) => match self.remove_bucket_remains(id).await {
                    Ok(()) => tracing::info!(bucket = %id, "removed what was left of a bucket"),
                    Err(error) => tracing::warn!(bucket = %id, %error, "could not remove remains"),
                },
                Ok(false) => tracing::error!(
                    bucket = %id,
                    "this bucket holds objects but system.db does not know it; it is kept: \
                     `coffer offline ls` shows it"
                ),
                Err(error) => tracing::error!(
                    bucket = %id, %error,
                    "system.db does not know this bucket and it can't be opened; it is kept"
                ),
            }
        }
    }

    async fn remove_empty_folders(&self) {
        let _changing = self.inner.changing_buckets.lock().await;
        let inner = self.inner.clone();
        if let Err(error) = blocking(move || remove_empty_folders(&inner)).await {
            tracing::warn!(%error, "could not look for empty folders");
        }
    }

    fn is_known_now(&self, id: BucketId) -> bool {
        let inner = &self.inner;
        let has_row = inner.system.bucket_of_id(id).is_some() || inner.system.is_going(id);
        has_row || !inner.keystore.holds_bucket(id)
    }

    async fn is_remains(&self, id: BucketId) -> Result<bool> {
        let dir = self.inner.folder.bucket(id);
        if !dir.join("catalog.db").exists() {
            // The catalog is made right after the key: no blob can have been stored yet, unless
            // the catalog was taken away.
            return Ok(!dir.join("blobs").exists());
        }
        let key = self.inner.keystore.bucket_key(id)?;
        let inner = self.inner.clone();
        let is_deleted = blocking(move || Ok(inner.system.doomed()?.contains(&id))).await?;
        let catalog = Catalog::open(&dir, &key.catalog_key()).await?;
        // A deletion takes uploads under way with it, and is noted together with the row's removal.
        let empty = if is_deleted {
            catalog.is_without_objects().await
        } else {
            catalog.is_empty().await
        };
        catalog.close().await;
        Ok(empty?)
    }

    /// Opens every catalog once: from then on what each holds is known, open or closed. What is
    /// damaged is told of on that occasion.
    async fn count_all(&self) {
        let inner = &self.inner;
        for row in inner.system.buckets() {
            let opened = inner
                .open_buckets
                .open(&inner.folder, &inner.keystore, row.id)
                .await;
            match opened.map_err(|error| error.of_bucket(row.name.as_str(), row.id)) {
                // Its opening has counted.
                Ok(_) => {}
                Err(
                    error @ (VaultError::NewerCatalog { .. } | VaultError::CatalogRolledBack(_)),
                ) => {
                    tracing::error!(%error, "a bucket can't be used");
                }
                Err(_) => {} // it is told of by those who need it
            }
        }
    }

    async fn sweep_all(&self) {
        for row in self.inner.system.buckets() {
            if let Err(error) = self.sweep(row.id).await {
                tracing::warn!(bucket = %row.id, %error, "could not look for orphaned blobs");
            }
        }
    }

    async fn sweep(&self, id: BucketId) -> Result<()> {
        let inner = &self.inner;
        let bucket = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, id)
            .await?;
        if !bucket.catalog.waiting_blobs(None, 1).await?.is_empty() {
            inner.transfers.unverified().note(id);
        }
        let swept = tokio::select! {
            () = bucket.cut_off() => return Ok(()),
            swept = bucket.blobs.sweep(&bucket.catalog) => swept?,
        };
        let Swept {
            files,
            bytes,
            kept_files,
        } = swept;
        if kept_files > 0 {
            add(&inner.tally.kept_orphan_count, kept_files);
            tracing::error!(
                bucket = %id, kept_files,
                "blobs that no object refers to are kept, for the catalog is in doubt: the file \
                 catalog.in-doubt in its folder says why"
            );
        }
        if files > 0 {
            add(&inner.tally.reclaimed_count, files);
            tracing::info!(bucket = %id, files, bytes, "reclaimed orphaned blobs");
        }
        Ok(())
    }
}

/// Looks how much open buckets hold now and then, as long as the vault is there.
async fn look_at_buckets(inner: Weak<Inner>) {
    loop {
        tokio::time::sleep(BUCKETS_LOOK).await;
        let Some(inner) = inner.upgrade() else { return };
        for bucket in inner.open_buckets.all() {
            inner.open_buckets.look(bucket.id, &bucket.catalog).await;
            // Should one ever be left there, no other commit needs to come first.
            let waiting = bucket.catalog.waiting_blobs(None, 1).await;
            if waiting.is_ok_and(|waiting| !waiting.is_empty()) {
                inner.transfers.unverified().note(bucket.id);
            }
        }
        let known: HashSet<BucketId> = inner.system.buckets().iter().map(|row| row.id).collect();
        inner.open_buckets.uploads.keep(&known);
    }
}

/// Looks again at buckets in which a commit has ended in doubt, soon after it is known whether it
/// stands: until then quotas count what it would add, and what it would free, and reads go by the
/// lists, tags and locks of before.
async fn look_where_in_doubt(inner: Weak<Inner>) {
    let mut pause = DOUBTS_LOOK;
    loop {
        let Some(quotas) = inner.upgrade().map(|it| it.open_buckets.quotas.clone()) else {
            return;
        };
        quotas.doubted().await;
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        // A disk that takes nothing is asked again, less and less often.
        pause = if inner.open_buckets.look_where_in_doubt().await {
            DOUBTS_LOOK
        } else {
            (pause * 2).min(DOUBTS_LOOK_MAX)
        };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use coffer_seal::UploadId;
    use coffer_store::record::{Details, ObjectName, Tags, Upload};

    use super::*;
    use crate::access::BucketName;
    use crate::vault::VaultOptions;
    use crate::vault::owners::first_subject;

    async fn open(data: &std::path::Path) -> Vault {
        Vault::open(VaultOptions::new(data)).await.unwrap()
    }

    async fn bucket(vault: &Vault, data: &std::path::Path) -> BucketId {
        let subject = first_subject(vault, data);
        let name = BucketName::new("left").unwrap();
        vault.create_bucket(&subject, &name, None).await.unwrap();
        vault.inner.system.bucket(&name).unwrap().id
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_folder_whose_key_is_there_stays_whatever_is_noted() {
        let data = tempfile::tempdir().unwrap();
        let vault = open(data.path()).await;
        let id = bucket(&vault, data.path()).await;
        vault.inner.system.doom(id).unwrap();
        let folder = vault.inner.folder.bucket(id);
        crate::buckets::remove_doomed_folder(&vault.inner, id).unwrap();
        assert!(folder.join("catalog.db").exists());
        vault.inner.keystore.destroy_bucket(id).unwrap();
        crate::buckets::remove_doomed_folder(&vault.inner, id).unwrap();
        assert!(!folder.exists());
        assert!(vault.inner.system.doomed().unwrap().is_empty());
        vault.close().await;
    }

    async fn begin_upload(vault: &Vault, id: BucketId) {
        let upload = Upload {
            id: UploadId::random(),
            name: ObjectName::new("o").unwrap(),
            started_ms: 5,
            details: Details::default(),
            checksum: None,
            tags: Tags::new(),
            lock: Default::default(),
            acl: None,
            made_by: None,
        };
        let inner = &vault.inner;
        let opened = inner.open_buckets.open(&inner.folder, &inner.keystore, id);
        let bucket = opened.await.unwrap();
        bucket.catalog.create_upload(upload).await.unwrap();
    }

    /// A deletion ends when the key is gone, and before the folder is; or even before the key is.
    /// Uploads under way keep no bucket.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_deletion_left_is_removed_by_the_next_start() {
        let cases = [(true, false), (false, false), (false, true)];
        for (was_key_destroyed, has_upload) in cases {
            let data = tempfile::tempdir().unwrap();
            let vault = open(data.path()).await;
            let id = bucket(&vault, data.path()).await;
            let name = BucketName::new("left").unwrap();
            if has_upload {
                begin_upload(&vault, id).await;
            }
            let row = vault.inner.system.bucket(&name).unwrap();
            vault.inner.system.remove_bucket(&row, || ()).unwrap();
            if was_key_destroyed {
                vault.inner.keystore.destroy_bucket(id).unwrap();
            }
            let folder = vault.inner.folder.bucket(id);
            vault.close().await;
            drop(vault);
            assert!(folder.exists());

            let vault = open(data.path()).await;
            for _ in 0..500 {
                if !folder.exists() && vault.inner.system.doomed().unwrap().is_empty() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(!folder.exists(), "{was_key_destroyed} {has_upload}");
            assert!(vault.inner.keystore.buckets().is_empty());
            assert!(vault.inner.system.doomed().unwrap().is_empty());
            vault.close().await;
        }
    }
}
