//! A store in memory that fails, forgets and takes its time as it is told.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use parking_lot::Mutex;
use tokio::time::sleep;

/// A store that can be told to fail.
#[derive(Debug, Default)]
pub(super) struct Fickle {
    pub(super) inner: InMemory,
    /// How many were asked for.
    pub(super) requests: AtomicU32,
    /// How long it takes for each request.
    pub(super) takes: Duration,
    /// So many of the next puts are done, and answered as failed.
    pub(super) unheard: AtomicU32,
    /// So many of the next puts are not done.
    pub(super) refused: AtomicU32,
    /// So many of the next puts are answered as failed, and done when they arrive.
    pub(super) late: AtomicU32,
    pub(super) arriving: Mutex<Vec<(Path, PutPayload, PutOptions)>>,
    /// After so many removals, if any are counted, none is done.
    pub(super) removals_left: AtomicU32,
    pub(super) counts_removals: AtomicBool,
    /// What is read breaks off after so many bytes, if any are counted.
    pub(super) breaks_after: AtomicU32,
    /// Reads of this are not answered, if it is said.
    pub(super) silent_at: Mutex<Option<Path>>,
    /// Whether an object can be created twice.
    pub(super) is_careless: AtomicBool,
}

impl fmt::Display for Fickle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("fickle")
    }
}

fn timed_out() -> object_store::Error {
    object_store::Error::Generic {
        store: "fickle",
        source: "timed out".into(),
    }
}

fn takes_one(count: &AtomicU32) -> bool {
    let less = |count: u32| count.checked_sub(1);
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}

impl Fickle {
    /// What was late is done.
    pub(super) async fn arrive(&self) {
        let arriving = std::mem::take(&mut *self.arriving.lock());
        for (location, payload, opts) in arriving {
            let _ = self.inner.put_opts(&location, payload, opts).await;
        }
    }
}

#[async_trait]
impl ObjectStore for Fickle {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        sleep(self.takes).await;
        if takes_one(&self.refused) {
            return Err(timed_out());
        }
        if takes_one(&self.late) {
            let put = (location.clone(), payload, opts);
            self.arriving.lock().push(put);
            return Err(timed_out());
        }
        if self.is_careless.load(Ordering::SeqCst) {
            opts.mode = PutMode::Overwrite;
        }
        let put = self.inner.put_opts(location, payload, opts).await;
        if takes_one(&self.unheard) {
            return Err(timed_out());
        }
        put
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        sleep(self.takes).await;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        sleep(self.takes).await;
        if self.silent_at.lock().as_ref() == Some(location) {
            return Err(timed_out());
        }
        let mut found = self.inner.get_opts(location, options).await?;
        let most = self.breaks_after.load(Ordering::SeqCst) as usize;
        if most > 0 && found.range.end - found.range.start > most as u64 {
            let (meta, range) = (found.meta.clone(), found.range.clone());
            let all = found.bytes().await?;
            let pieces = [Ok(all.slice(..most)), Err(timed_out())];
            found = GetResult {
                payload: GetResultPayload::Stream(futures::stream::iter(pieces).boxed()),
                meta,
                range,
                attributes: Attributes::default(),
                extensions: Default::default(),
            };
        }
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        let counts = self.counts_removals.load(Ordering::SeqCst);
        if counts && !takes_one(&self.removals_left) {
            return futures::stream::once(async { Err(timed_out()) }).boxed();
        }
        let takes = self.takes;
        let removed = self.inner.delete_stream(locations);
        let late = removed.then(move |removed| async move {
            sleep(takes).await;
            removed
        });
        late.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
