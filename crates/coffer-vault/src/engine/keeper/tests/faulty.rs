//! A store in memory that leaves requests without an answer, or refuses them, as it is told.

use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

#[derive(Debug, Default)]
pub(super) struct Faulty {
    inner: InMemory,
    /// So many of the next requests for an object, and puts, are never answered.
    pub(super) silent: AtomicU32,
    /// So many of the next puts are refused.
    pub(super) refused: AtomicU32,
}

impl fmt::Display for Faulty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("faulty")
    }
}

fn takes_one(count: &AtomicU32) -> bool {
    let less = |count: u32| count.checked_sub(1);
    let taken = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    taken.is_ok()
}

impl Faulty {
    async fn may_be_silent(&self) {
        if takes_one(&self.silent) {
            pending().await
        }
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.may_be_silent().await;
        if takes_one(&self.refused) {
            return Err(Error::Generic {
                store: "faulty",
                source: "refused".into(),
            });
        }
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.may_be_silent().await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
