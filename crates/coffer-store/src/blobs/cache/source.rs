//! Where blobs come from that a cache does not have.

use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use coffer_seal::{BlobId, BucketId};
use futures::future::BoxFuture;
use futures::stream::BoxStream;

/// What has all blobs, as they are sealed.
pub trait BlobSource: fmt::Debug + Send + Sync {
    /// Asks for a blob.
    fn fetch(&self, bucket: BucketId, id: BlobId) -> BoxFuture<'static, Fetched>;

    /// Asks for these bytes of a blob, which it has.
    fn fetch_part(
        &self,
        bucket: BucketId,
        id: BlobId,
        range: Range<u64>,
    ) -> BoxFuture<'static, Result<Bytes, NotFetched>>;
}

/// A blob that comes, or why it doesn't.
pub type Fetched = Result<ComingBlob, NotFetched>;

/// A blob as a source has it. Nothing is known of what it holds until it opens.
pub struct ComingBlob {
    /// How long it is.
    pub length_bytes: u64,
    /// Its bytes as they come.
    pub bytes: BoxStream<'static, Result<Bytes, NotFetched>>,
}

/// Why a blob did not come from a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotFetched {
    /// The source does not have it.
    Lost,
    /// The source can't be asked now, or failed half-way.
    Away(String),
}
