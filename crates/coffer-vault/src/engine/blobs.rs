//! Where a gateway's cache of blobs has them from: the store of the engine's log.

use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use coffer_replica::{BlobPlace, Place, ReplicaError};
use coffer_seal::{BlobId, BucketId};
use coffer_store::{BlobCache, BlobSource, ComingBlob, Fetched, NotFetched};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use crate::error;

/// The blobs of an engine's log.
#[derive(Debug)]
struct LogBlobs(BlobPlace);

impl BlobSource for LogBlobs {
    fn fetch(&self, bucket: BucketId, id: BlobId) -> BoxFuture<'static, Fetched> {
        let place = self.0.clone();
        let fetched = async move {
            let found = place.blob(bucket, id).await.map_err(not_fetched)?;
            let bytes = found.bytes.map(|piece| piece.map_err(not_fetched));
            Ok(ComingBlob {
                length_bytes: found.length_bytes,
                bytes: bytes.boxed(),
            })
        };
        fetched.boxed()
    }

    fn fetch_part(
        &self,
        bucket: BucketId,
        id: BlobId,
        range: Range<u64>,
    ) -> BoxFuture<'static, Result<Bytes, NotFetched>> {
        let place = self.0.clone();
        let part = async move { place.part(bucket, id, range).await.map_err(not_fetched) };
        part.boxed()
    }
}

fn not_fetched(error: ReplicaError) -> NotFetched {
    match error {
        ReplicaError::Missing { .. } => NotFetched::Lost,
        error => NotFetched::Away(error.to_string()),
    }
}

/// The cache of blobs in a gateway's folder, of files of so many bytes together. What lies there
/// is known when [`BlobCache::look`] has been called, which takes its time where there is much.
/// Blocks.
///
/// # Errors
/// Of the store's URL, and what it names.
pub fn blob_cache(data: &Path, from: &Place, max_bytes: u64) -> error::Result<BlobCache> {
    let place = BlobPlace::new(from.open(false)?);
    let cache = BlobCache::new(data, max_bytes, std::sync::Arc::new(LogBlobs(place)));
    cache.remove_unfinished();
    Ok(cache)
}
