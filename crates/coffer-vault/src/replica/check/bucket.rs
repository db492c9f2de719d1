//! A bucket of a copy that is checked: its catalog, and the blobs that this names.
//!
//! What wraps the keys of its blobs is the server's own, as it is now. A rotation destroys the
//! older generation at once where no keystore goes along, and the copy takes up what was wrapped
//! anew with its next round: until then it is behind, which is no damage. So a later head is
//! looked for, for a while.

use std::fs;
use std::path::Path;

use coffer_keys::KeysError;
use coffer_replica::{BucketState, CopyReader};
use coffer_seal::BucketId;
use coffer_store::record::BlobRef;
use coffer_store::{BlobStore, CATALOG_FILE, Catalog, ContentWalk};

use super::{Check, CopyCheckEvent};
use crate::error::{Result, VaultError};
use crate::limits::{COPY_ROTATED_LOOKS_EVERY, VERIFY_PAGE};
use crate::open_buckets::{OpenBucket, customer_key};
use crate::replica::blobs::check_blob;
use crate::replica::files::new_file;

impl Check {
    /// Checks a bucket as the checked head has it, or as a later one does.
    pub(super) async fn bucket(&mut self, id: BucketId, state: &BucketState) -> Result<()> {
        let folder = self.scratch.join(id.to_string());
        let mut later: Option<(CopyReader, BucketState)> = None;
        loop {
            let (reader, state) = match &later {
                Some((reader, state)) => (reader, state),
                None => (&self.reader, state),
            };
            let file = new_file(&folder, CATALOG_FILE)?;
            let page_count = match reader.catalog(id, state, Some(&file)).await {
                Err(error) => {
                    self.findings.catalog(id);
                    return self.damage(error.to_string()).await;
                }
                Ok(restored) => u64::from(restored.page_count),
            };
            let commits = state.commits;
            let is_behind = self.catalog(id, &folder, commits, &mut later).await?;
            let _ = fs::remove_dir_all(&folder);
            if !is_behind {
                self.page_count += page_count;
                return Ok(());
            }
        }
    }

    /// Checks a catalog that was put together, and what it names, unless there is a later one
    /// that a rotation is in: whether there is.
    async fn catalog(
        &mut self,
        id: BucketId,
        folder: &Path,
        commits: u64,
        later: &mut Option<(CopyReader, BucketState)>,
    ) -> Result<bool> {
        // One that was erased since is noise, and is removed from the copy soon.
        let Ok(key) = self.vault.inner.keystore.bucket_key(id) else {
            return Ok(false);
        };
        let catalog = match Catalog::open_read_only(folder, &key.catalog_key()).await {
            Ok(catalog) => catalog,
            Err(error) => {
                self.findings.catalog(id);
                self.damage(format!("the catalog of {id}: {error}")).await?;
                return Ok(false);
            }
        };
        let bucket = OpenBucket::new(id, catalog, BlobStore::new(folder, id), key);
        let checked = match self.is_behind(&bucket, commits, later).await {
            // It was erased meanwhile.
            Ok(false) if !self.vault.inner.keystore.holds_bucket(id) => Ok(false),
            Ok(false) => self.walk(&bucket).await.map(|()| false),
            is_behind => is_behind,
        };
        bucket.catalog.close().await;
        match checked {
            Err(error @ VaultError::Backup(_)) => Err(error),
            Err(error) => {
                self.damage(format!("the catalog of {id}: {error}")).await?;
                Ok(false)
            }
            checked => checked,
        }
    }

    /// Whether the catalog has keys that a rotation has wrapped anew since, as a later head shows.
    /// Where none does in time, what can't be opened is told.
    async fn is_behind(
        &mut self,
        bucket: &OpenBucket,
        commits: u64,
        later: &mut Option<(CopyReader, BucketState)>,
    ) -> Result<bool> {
        let key = bucket.key();
        let own = key.generation();
        let kept = [own, key.older_generation().unwrap_or(own)];
        let count = bucket.catalog.count_of_neither_generation(kept).await?;
        if count == 0 {
            return Ok(false);
        }
        // Once in any case, for the waiting is for all buckets together.
        let mut is_due = later.is_none();
        while is_due || self.looks_left > 0 {
            is_due = false;
            self.looks_left = self.looks_left.saturating_sub(1);
            let (copy, known) = (self.reader.copy().clone(), self.reader.known());
            let newest = CopyReader::newest(copy, Some(known)).await?;
            let state = newest.head().buckets.get(&bucket.id.to_string()).cloned();
            if let Some(state) = state.filter(|state| state.commits != commits) {
                *later = Some((newest, state));
                return Ok(true);
            }
            if !self.vault.inner.keystore.holds_bucket(bucket.id) {
                return Ok(false);
            }
            tokio::time::sleep(COPY_ROTATED_LOOKS_EVERY).await;
        }
        let what = format!(
            "BEHIND: the copy has not taken up a rotation of the key of bucket {} yet: {count} \
             blobs can't be opened until it has, which is no damage. `coffer replica status` \
             tells how far the copy is: verify again then",
            bucket.id
        );
        self.tell(CopyCheckEvent::Note { what }).await?;
        Ok(false)
    }

    async fn walk(&mut self, bucket: &OpenBucket) -> Result<()> {
        bucket.catalog.check_integrity().await?;
        let mut walk = ContentWalk::default();
        while let Some(page) = walk.next(&bucket.catalog, VERIFY_PAGE).await? {
            for blob in page.iter().flat_map(|(_, content)| content.blobs()) {
                self.blob(bucket, blob).await?;
            }
        }
        Ok(())
    }

    async fn blob(&mut self, bucket: &OpenBucket, blob: &BlobRef) -> Result<()> {
        let key = match customer_key::unwrap(&bucket.key(), blob, None) {
            // Its length can be told all the same.
            Err(KeysError::OtherGeneration { wrapped, own }) if wrapped < own => {
                self.behind_count += 1;
                Ok(None)
            }
            key => key,
        };
        let checked = match key {
            Ok(key) => check_blob(&self.reader, bucket.id, blob, key.as_ref()).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = checked {
            self.findings.blob(bucket.id, blob.id);
            self.damage(error.to_string()).await?;
        }
        self.blob_count += 1;
        self.blob_bytes += blob.plaintext_bytes;
        let (blob_count, blob_bytes) = (self.blob_count, self.blob_bytes);
        self.tell(CopyCheckEvent::Progress {
            blob_count,
            blob_bytes,
        })
        .await
    }
}
