//! The blobs of a copy, read without its key: what they are is told by their own.

use std::ops::Range;

use bytes::Bytes;
use coffer_seal::{BlobId, BucketId};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt};

use crate::error::{ReplicaError, Result};
use crate::names;
use crate::store::Store;

/// Where the blobs of a copy are.
#[derive(Clone, Debug)]
pub struct BlobPlace(Store);

/// A blob as it lies there.
pub struct StoredBlob {
    /// How long it is.
    pub length_bytes: u64,
    /// Its bytes as they come.
    pub bytes: BoxStream<'static, Result<Bytes>>,
}

/// What is to come of a blob.
struct Rest {
    store: Store,
    path: Path,
    at: u64,
    length_bytes: u64,
    bytes: BoxStream<'static, object_store::Result<Bytes>>,
    /// Whether any came since it was asked for.
    has_moved: bool,
}

impl BlobPlace {
    /// That of the copy in this store.
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// A blob. Whether its bytes are the blob's is told by its data key only.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`].
    pub async fn blob(&self, bucket: BucketId, id: BlobId) -> Result<StoredBlob> {
        let path = names::blob(bucket, id);
        // Boxed, for what a store does for a request is large.
        let found = match self.0.get(&path).boxed().await {
            Err(object_store::Error::NotFound { .. }) => {
                let object = path.to_string();
                return Err(ReplicaError::Missing { object });
            }
            found => found?,
        };
        let length_bytes = found.meta.size;
        let rest = Rest {
            store: self.0.clone(),
            path,
            at: 0,
            length_bytes,
            bytes: found.into_stream(),
            has_moved: false,
        };
        let next = |rest: Option<Rest>| async move { rest?.next().await };
        Ok(StoredBlob {
            length_bytes,
            bytes: stream::unfold(Some(rest), next).boxed(),
        })
    }
}

impl BlobPlace {
    /// These bytes of a blob, or as many as there are.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`].
    pub async fn part(&self, bucket: BucketId, id: BlobId, range: Range<u64>) -> Result<Bytes> {
        let path = names::blob(bucket, id);
        match self.0.get_range(&path, range).boxed().await {
            Err(object_store::Error::NotFound { .. }) => {
                let object = path.to_string();
                Err(ReplicaError::Missing { object })
            }
            found => Ok(found?),
        }
    }
}

impl Rest {
    /// What comes next. Where it breaks off, the rest is asked for, as long as each answer has some
    /// of it: a request may not take longer than its time, and a long blob does.
    async fn next(mut self) -> Option<(Result<Bytes>, Option<Self>)> {
        loop {
            match self.bytes.next().await? {
                Ok(piece) => {
                    self.at += piece.len() as u64;
                    self.has_moved = true;
                    return Some((Ok(piece), Some(self)));
                }
                Err(error) => {
                    if !std::mem::take(&mut self.has_moved) || self.at >= self.length_bytes {
                        return Some((Err(error.into()), None));
                    }
                    let options = GetOptions {
                        range: Some(GetRange::Bounded(self.at..self.length_bytes)),
                        ..GetOptions::default()
                    };
                    match self.store.get_opts(&self.path, options).await {
                        Ok(found) => self.bytes = found.into_stream(),
                        Err(error) => return Some((Err(error.into()), None)),
                    }
                }
            }
        }
    }
}
