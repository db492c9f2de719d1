//! Buckets: made, listed, deleted, tagged.
//!
//! A bucket is made in three durable steps: its key in the keystore, its folder with an empty
//! catalog, its row in the system database; only the row makes it exist. It is deleted in the
//! opposite order. What is left when the server dies in between has a key but no row, and an empty
//! catalog: recovery removes it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use coffer_store::record::{Id, Tags};
use coffer_store::{BlobStore, Catalog};

use crate::bucket::OpenBucket;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::folder::{failed, sync_folder};
use crate::limits::BUCKET_COUNT_MAX;
use crate::monitor::{may_read, may_write};
use crate::name::BucketName;
use crate::request::BucketInfo;
use crate::subject::Subject;
use crate::system::BucketRow;
use crate::vault::{DEFAULT_LEVEL, Inner, Vault, info, now_ms};

impl Vault {
    /// Makes a bucket in a level, or in `default`.
    ///
    /// # Errors
    /// [`VaultError::BucketAlreadyOwnedByYou`], [`VaultError::NoSuchLevel`] also for a level that
    /// the subject may not write, [`VaultError::TooManyBuckets`].
    pub async fn create_bucket(
        &self,
        subject: &Subject,
        name: &BucketName,
        level: Option<&str>,
    ) -> Result<BucketInfo> {
        let level_name = level.unwrap_or(DEFAULT_LEVEL);
        let levels = self.inner.keystore.levels();
        let level = levels
            .into_iter()
            .find(|level| level.name == level_name && may_write(subject, &level.label));
        let Some(level) = level else {
            add(&self.inner.tally.denied_count, 1);
            return Err(VaultError::NoSuchLevel);
        };
        let (this, row_name) = (self.clone(), name.clone());
        let level_id = level.id;
        // A task of its own: the steps go on when the client does not wait for them.
        let made = tokio::spawn(async move { this.make_bucket(row_name, level_id).await });
        let row = made.await.map_err(|_| VaultError::ShuttingDown)??;
        Ok(info(&row, level))
    }

    async fn make_bucket(&self, name: BucketName, level_id: [u8; 16]) -> Result<BucketRow> {
        let _changing = self.inner.changing_buckets.lock().await;
        if self.inner.system.bucket(&name).is_some() {
            return Err(VaultError::BucketAlreadyOwnedByYou);
        }
        if self.inner.system.buckets().len() >= BUCKET_COUNT_MAX {
            return Err(VaultError::TooManyBuckets {
                limit: BUCKET_COUNT_MAX,
            });
        }
        let id = Id(coffer_seal::random_bytes());
        let inner = self.inner.clone();
        let key = blocking(move || {
            make_bucket_folder(&inner, id)?;
            Ok(inner.keystore.add_bucket(id.0, level_id)?)
        })
        .await?;
        let dir = self.inner.folder.bucket(id);
        let catalog = Catalog::create(&dir, &key.catalog_key(), name.as_str()).await?;
        let blobs = BlobStore::new(&dir, id);
        let row = BucketRow {
            id,
            name,
            level_id,
            created_ms: now_ms(),
        };
        let (inner, new_row) = (self.inner.clone(), row.clone());
        blocking(move || {
            sync_folder(&dir).map_err(failed("sync", &dir))?;
            inner.system.add_bucket(new_row)
        })
        .await?;
        self.inner
            .open_buckets
            .insert(OpenBucket::new(id, catalog, blobs, key));
        Ok(row)
    }

    /// Deletes an empty bucket, its key included.
    ///
    /// # Errors
    /// [`VaultError::BucketNotEmpty`] while it holds objects or multipart uploads.
    pub async fn delete_bucket(&self, subject: &Subject, name: &BucketName) -> Result<()> {
        let granted = self.writable(subject, name).await?;
        let (this, name) = (self.clone(), name.clone());
        let deleted = tokio::spawn(async move {
            let _changing = this.inner.changing_buckets.lock().await;
            granted.bucket.delete_if_empty().await?;
            let id = granted.bucket.id;
            let inner = this.inner.clone();
            blocking(move || inner.system.remove_bucket(&name)).await?;
            this.inner.open_buckets.close(id).await;
            this.remove_bucket_remains(id).await
        });
        deleted.await.map_err(|_| VaultError::ShuttingDown)?
    }

    /// Destroys the key and the folder of a bucket that has no row any more.
    pub(crate) async fn remove_bucket_remains(&self, id: Id) -> Result<()> {
        let inner = self.inner.clone();
        blocking(move || {
            inner.keystore.destroy_bucket(&id.0)?;
            let dir = inner.folder.bucket(id);
            match std::fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(failed("remove", &dir)(error))
                }
                _ => Ok(()),
            }
        })
        .await
    }

    /// A bucket.
    pub async fn bucket(&self, subject: &Subject, name: &BucketName) -> Result<BucketInfo> {
        let (row, level) = self.known(subject, name)?;
        Ok(info(&row, level))
    }

    /// All buckets that the subject may read, by name.
    pub async fn buckets(&self, subject: &Subject) -> Result<Vec<BucketInfo>> {
        let Inner {
            system, keystore, ..
        } = &*self.inner;
        let readable = |row: Arc<BucketRow>| {
            let level = keystore.level(&row.level_id)?;
            may_read(subject, &level.label).then(|| info(&row, level))
        };
        Ok(system.buckets().into_iter().filter_map(readable).collect())
    }

    /// The bucket's tags, if it has any.
    pub async fn bucket_tags(&self, subject: &Subject, name: &BucketName) -> Result<Option<Tags>> {
        let granted = self.readable(subject, name).await?;
        Ok(granted.bucket.catalog.bucket_tags().await?)
    }

    /// Sets or removes the bucket's tags.
    pub async fn set_bucket_tags(
        &self,
        subject: &Subject,
        name: &BucketName,
        tags: Option<Tags>,
    ) -> Result<()> {
        let granted = self.writable(subject, name).await?;
        let _guard = granted.bucket.commit_guard().await?;
        Ok(granted.bucket.catalog.set_bucket_tags(tags).await?)
    }
}

fn make_bucket_folder(inner: &Inner, id: Id) -> Result<()> {
    let buckets = inner.folder.buckets();
    let dir = inner.folder.bucket(id);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(failed("make the bucket's folder", &dir))?;
    sync_folder(&buckets).map_err(failed("sync", &buckets))?;
    sync_folder(inner.folder.path()).map_err(failed("sync", inner.folder.path()))
}

/// Runs what waits for the disk where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| VaultError::ShuttingDown)?
}
