//! Copies of buckets: their blobs, and their catalogs.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use coffer_seal::{BlobId, BucketId};
use coffer_store::{BlobCopied, BlobCopies, BlobStore, CATALOG_FILE, Catalog};

use super::BackupCounts;
use super::run::Run;
use crate::blocking::blocking;
use crate::error::{BackupError, Result, VaultError};
use crate::limits::{BACKUP_BLOBS_AT_ONCE, BACKUP_BYTES_AT_ONCE};
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;

/// What became of a bucket.
pub(super) enum BucketCopied {
    /// How many commits the catalog had that was copied.
    Whole(u64),
    /// It is being erased or deleted.
    Gone,
}

impl Run {
    /// Copies the blobs that a bucket has now, as far as they stay.
    pub(super) async fn copy_blobs_ahead(&mut self, row: &BucketRow) -> Result<()> {
        let Some(bucket) = self.open(row).await? else {
            return Ok(());
        };
        let copies = self.copies(row.id);
        let mut counts = self.counts;
        let done = async {
            // What an earlier attempt left takes room, as far as it was removed here since.
            BlobStore::new(&self.folder_of(row.id), row.id)
                .sweep(&bucket.catalog)
                .await?;
            self.copy_blobs(&bucket, &bucket.catalog, &copies, &mut counts)
                .await
        };
        let done = done.await;
        self.counts.copied_count = counts.copied_count;
        self.counts.copied_bytes = counts.copied_bytes;
        unless_gone(&bucket, done.map(drop))
            .map(drop)
            .map_err(|error| unreadable(row, error))
    }

    /// Copies a bucket as it is at one moment.
    pub(super) async fn copy_bucket(&mut self, row: &BucketRow) -> Result<BucketCopied> {
        let Some(bucket) = self.open(row).await? else {
            return Ok(BucketCopied::Gone);
        };
        let copied = self.copy_open(&bucket, row).await;
        let copied = unless_gone(&bucket, copied).map_err(|error| unreadable(row, error));
        Ok(match copied? {
            Some(commits) => BucketCopied::Whole(commits),
            None => BucketCopied::Gone,
        })
    }

    async fn copy_open(&mut self, bucket: &UsedBucket, row: &BucketRow) -> Result<u64> {
        // From here on nothing is removed that the catalog may name.
        let _pin = bucket.blobs.pin();
        let folder = self.folder_of(row.id);
        let key = bucket.key().catalog_key();
        let catalog = bucket.catalog.copy_into(&folder, &key).await?;
        let copies = self.copies(row.id);
        let mut counts = self.counts;
        let done = async {
            let missing = self
                .copy_blobs(bucket, &catalog, &copies, &mut counts)
                .await?;
            // What an earlier attempt left.
            BlobStore::new(&folder, row.id).sweep(&catalog).await?;
            Ok::<_, VaultError>((missing, catalog.commit_count().await?))
        };
        let done = done.await;
        catalog.close().await;
        let (missing, commits) = done?;
        if missing > 0 && !bucket.is_cut() {
            self.missing_count += missing;
        }
        counts.bucket_count += 1;
        self.counts = counts;
        Ok(commits)
    }

    /// Copies all blobs that a catalog names, and tells how many are missing.
    async fn copy_blobs(
        &self,
        bucket: &UsedBucket,
        catalog: &Catalog,
        copies: &BlobCopies,
        counts: &mut BackupCounts,
    ) -> Result<u64> {
        let (mut after, mut missing) = (None, 0);
        loop {
            let page = catalog.blobs_after(after).await?;
            let Some((last, _)) = page.last() else {
                return Ok(missing);
            };
            after = Some(*last);
            let mut rest = &page[..];
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(piece_of(rest));
                rest = more;
                for copied in self
                    .copy_piece(bucket, piece.to_vec(), copies.clone())
                    .await?
                {
                    counts.blob_count += 1;
                    match copied {
                        BlobCopied::There | BlobCopied::Shared => {}
                        BlobCopied::Missing => missing += 1,
                        BlobCopied::Anew(bytes) => {
                            counts.copied_count += 1;
                            counts.copied_bytes += bytes;
                        }
                    }
                }
                self.tell(*counts).await?;
            }
        }
    }

    async fn copy_piece(
        &self,
        bucket: &UsedBucket,
        blobs: Vec<(BlobId, u64)>,
        copies: BlobCopies,
    ) -> Result<Vec<BlobCopied>> {
        let (bucket, events, inner) = (
            bucket.clone(),
            self.events.clone(),
            self.vault.inner.clone(),
        );
        blocking(move || {
            let is_over =
                || bucket.is_cut() || events.is_closed() || inner.closed.load(Ordering::Acquire);
            let copy = |blob| Ok(copies.take(&bucket.blobs, blob, &is_over)?);
            blobs.into_iter().map(copy).collect()
        })
        .await
    }

    /// The bucket, if it is there and not about to go.
    async fn open(&self, row: &BucketRow) -> Result<Option<UsedBucket>> {
        let inner = &self.vault.inner;
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, row.id)
            .await;
        match opened {
            Ok(bucket) => Ok(Some(bucket)),
            Err(_) if inner.system.bucket_of_id(row.id).is_none() => Ok(None),
            Err(VaultError::NoSuchBucket) => Ok(None),
            // There is nothing of it to copy.
            Err(_) if inner.is_left_to_erase(row) => Ok(None),
            Err(_) if !inner.folder.has_catalog(row.id) => self.refuse_where_held(row),
            Err(error) => Err(unreadable(row, error)),
        }
    }

    /// What the copy before has of a bucket is not given up for a copy without it.
    fn refuse_where_held(&self, row: &BucketRow) -> Result<Option<UsedBucket>> {
        let Some(before) = self.destination.before() else {
            return Ok(None);
        };
        let folder = before.join("buckets").join(row.id.to_string());
        if folder.join(CATALOG_FILE).exists() {
            let (bucket, folder) = (row.name.to_string(), folder.display().to_string());
            return Err(BackupError::BucketLost { bucket, folder }.into());
        }
        Ok(None)
    }

    fn copies(&self, id: BucketId) -> BlobCopies {
        let before = self.destination.before();
        let before = before.map(|before| before.join("buckets").join(id.to_string()));
        BlobCopies::new(
            &self.folder_of(id),
            before.as_deref(),
            &self.destination.blob(),
        )
    }

    pub(super) fn folder_of(&self, id: BucketId) -> PathBuf {
        self.folder.join("buckets").join(id.to_string())
    }
}

/// Names the bucket that an error is about, where the error itself does not.
fn unreadable(row: &BucketRow, error: VaultError) -> VaultError {
    match error {
        error @ (VaultError::Damaged | VaultError::Keys(_)) => BackupError::BucketUnreadable {
            bucket: row.name.to_string(),
            problem: error.to_string(),
        }
        .into(),
        error => error.of_bucket(row.name.as_str(), row.id),
    }
}

/// What a bucket that is erased, or deleted, meanwhile can't be copied for is no failure.
fn unless_gone<T>(bucket: &UsedBucket, copied: Result<T>) -> Result<Option<T>> {
    match copied {
        Ok(copied) => Ok(Some(copied)),
        Err(_) if bucket.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}

/// How many of these are copied before it is told.
fn piece_of(blobs: &[(BlobId, u64)]) -> usize {
    let mut bytes = 0;
    let fits = |(_, plaintext_bytes): &&(BlobId, u64)| {
        bytes += plaintext_bytes;
        bytes <= BACKUP_BYTES_AT_ONCE
    };
    blobs
        .iter()
        .take(BACKUP_BLOBS_AT_ONCE)
        .take_while(fits)
        .count()
        .max(1)
}
