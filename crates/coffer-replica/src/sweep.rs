//! Removing what no head names any more.

use std::collections::HashSet;

use coffer_seal::{BlobId, BucketId};
use futures::{Stream, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::error::{ReplicaError, Result};
use crate::limits::HEADS_KEPT;
use crate::names::{self, Number};
use crate::write::CopyWriter;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many objects.
    pub object_count: u64,
}

impl CopyWriter {
    /// Which blobs there are whose ids begin with this byte.
    ///
    /// # Errors
    /// Of the store.
    pub async fn blobs_from(&self, bucket: BucketId, first: u8) -> Result<HashSet<BlobId>> {
        let listed = self
            .copy
            .store
            .list(Some(&names::blobs_from(bucket, first)));
        let ids = listed.try_filter_map(async |found| Ok(names::blob_at(&found.location)));
        Ok(ids.try_collect().await?)
    }

    /// All blobs that there are of a bucket.
    pub fn blobs(&self, bucket: BucketId) -> impl Stream<Item = Result<BlobId>> + use<> {
        let listed = self.copy.store.list(Some(&names::blobs_of(bucket)));
        let ids = listed.try_filter_map(async |found| Ok(names::blob_at(&found.location)));
        ids.map_err(ReplicaError::from)
    }

    /// Removes blobs.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remove_blobs(&self, bucket: BucketId, ids: &[BlobId]) -> Result<()> {
        for id in ids {
            remove(&*self.copy.store, &names::blob(bucket, *id)).await?;
        }
        Ok(())
    }

    /// Removes old heads, pieces that are of no file, segments that are before the base of their
    /// chain, and all of buckets that the newest head does not have. No round is under way.
    ///
    /// # Errors
    /// Of the store.
    pub async fn sweep(&self) -> Result<Swept> {
        let mut swept = Swept::default();
        let newest = self.head.number;
        for number in self.copy.heads_from(0).await? {
            if number + HEADS_KEPT <= newest {
                swept.object_count += self.remove(&names::head(number)).await?;
            }
        }
        let pieces = self.head.files.values().flatten();
        let pieces: HashSet<Number> = pieces.map(|piece| piece.at).collect();
        for number in self.numbers_in(&Path::from(names::PIECES)).await? {
            if !pieces.contains(&number) {
                swept.object_count += self.remove(&names::piece(number)).await?;
            }
        }
        for (id, state) in &self.head.buckets {
            let Some(bucket) = BucketId::from_hex(id) else {
                continue;
            };
            for number in self.numbers_in(&names::segments_of(bucket)).await? {
                if number < state.first {
                    swept.object_count += self.remove(&names::segment(bucket, number)).await?;
                }
            }
        }
        for kind in [names::SEGMENTS, names::BLOBS] {
            for bucket in self.buckets_in(kind).await? {
                if !self.head.buckets.contains_key(&bucket.to_string()) {
                    swept.object_count += self.remove_bucket(bucket).await?;
                }
            }
        }
        Ok(swept)
    }

    async fn remove_bucket(&self, bucket: BucketId) -> Result<u64> {
        let mut count = 0;
        for folder in [names::segments_of(bucket), names::blobs_of(bucket)] {
            let listed: Vec<_> = self.copy.store.list(Some(&folder)).try_collect().await?;
            for found in listed {
                count += self.remove(&found.location).await?;
            }
        }
        Ok(count)
    }

    async fn buckets_in(&self, kind: &str) -> Result<Vec<BucketId>> {
        let listed = self
            .copy
            .store
            .list_with_delimiter(Some(&Path::from(kind)))
            .await?;
        let names = listed
            .common_prefixes
            .iter()
            .filter_map(|prefix| prefix.filename());
        Ok(names.filter_map(BucketId::from_hex).collect())
    }

    async fn numbers_in(&self, folder: &Path) -> Result<Vec<Number>> {
        let listed: Vec<_> = self.copy.store.list(Some(folder)).try_collect().await?;
        let names = listed.iter().filter_map(|found| found.location.filename());
        Ok(names.filter_map(Number::from_name).collect())
    }

    async fn remove(&self, path: &Path) -> Result<u64> {
        remove(&*self.copy.store, path).await
    }
}

/// One that is not there is removed.
async fn remove(store: &dyn ObjectStore, path: &Path) -> Result<u64> {
    match store.delete(path).await {
        Ok(()) => Ok(1),
        Err(object_store::Error::NotFound { .. }) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
