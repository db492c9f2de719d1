//! A store of a cloud, which may hang, or list without an end: as it is, but that each request has
//! to be answered in a time that its length allows for, and that a list has an end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::{DELIMITER, Path};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use tokio::time::timeout;

use crate::error::Endless;
use crate::limits::{
    ANSWER_TIMEOUT, EMPTY_PAGES_MAX, LISTED_MAX, REQUEST_TIMEOUT, SLOWEST_BYTES_PER_SECOND,
};

/// A store that is not waited for without an end.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    inner: Arc<S>,
}

#[derive(Debug, thiserror::Error)]
#[error("it does not answer: a request was given up after {} seconds", .0.as_secs())]
struct Unanswered(Duration);

impl<S> Guarded<S> {
    pub(crate) fn new(store: S) -> Self {
        let inner = Arc::new(store);
        Self { inner }
    }
}

impl<S: fmt::Display> fmt::Display for Guarded<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

/// How long a request may take that sends so many bytes.
fn time_for(bytes: usize) -> Duration {
    ANSWER_TIMEOUT + Duration::from_secs(bytes as u64 / SLOWEST_BYTES_PER_SECOND)
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic {
        store: "copy",
        source: error.into(),
    }
}

async fn within<T>(time: Duration, work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = timeout(time, work).await;
    done.unwrap_or_else(|_| Err(failed(Unanswered(time))))
}

/// Each next one has to come in this time. After one that does not, nothing comes.
fn each_within<T: Send + 'static>(
    time: Duration,
    all: BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    let next = move |all: Option<BoxStream<'static, Result<T>>>| async move {
        let mut all = all?;
        match timeout(time, all.next()).await {
            Ok(found) => found.map(|found| (found, Some(all))),
            Err(_) => Some((Err(failed(Unanswered(time))), None)),
        }
    };
    // Who collects an empty object asks once more behind its end.
    stream::unfold(Some(all), next).fuse().boxed()
}

/// The pages of a list. A page may have nothing in it, but not one after the other for ever.
fn pages<S: PaginatedListStore>(
    store: Arc<S>,
    prefix: Option<&Path>,
    is_flat: bool,
) -> impl Stream<Item = Result<ListResult>> + Send + 'static {
    let folder = prefix.map(ToString::to_string).unwrap_or_default();
    let next = move |(token, empty): (Option<Option<String>>, usize)| {
        let (store, folder) = (store.clone(), folder.clone());
        async move {
            let Some(token) = token else {
                return Ok(None);
            };
            let prefix = (!folder.is_empty()).then(|| format!("{folder}{DELIMITER}"));
            let options = PaginatedListOptions {
                delimiter: (!is_flat).then(|| DELIMITER.into()),
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            let page = store.list_paginated(prefix.as_deref(), options);
            let page = within(ANSWER_TIMEOUT, page).await?;
            let next = page.page_token.filter(|token| !token.is_empty());
            let is_empty = page.result.objects.is_empty() && page.result.common_prefixes.is_empty();
            let empty = if is_empty { empty + 1 } else { 0 };
            if empty > EMPTY_PAGES_MAX || next.is_some() && next == token {
                return Err(failed(Endless { folder }));
            }
            Ok(Some((page.result, (next.map(Some), empty))))
        }
    };
    stream::try_unfold((Some(None), 0), next)
}

#[async_trait]
impl<S: ObjectStore + PaginatedListStore> ObjectStore for Guarded<S> {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let time = time_for(payload.content_length());
        within(time, self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, options);
        Ok(Box::new(Upload(within(ANSWER_TIMEOUT, upload).await?)))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut found = within(ANSWER_TIMEOUT, self.inner.get_opts(location, options)).await?;
        if let GetResultPayload::Stream(bytes) = found.payload {
            found.payload = GetResultPayload::Stream(each_within(ANSWER_TIMEOUT, bytes));
        }
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        each_within(ANSWER_TIMEOUT, self.inner.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let pages = pages(self.inner.clone(), prefix, true);
        let listed = pages.map_ok(|page| stream::iter(page.objects.into_iter().map(Ok)));
        listed.try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let mut pages = Box::pin(pages(self.inner.clone(), prefix, false));
        let mut all = ListResult {
            common_prefixes: Vec::new(),
            objects: Vec::new(),
            extensions: Default::default(),
        };
        while let Some(page) = pages.try_next().await? {
            all.common_prefixes.extend(page.common_prefixes);
            all.objects.extend(page.objects);
            if all.common_prefixes.len() + all.objects.len() > LISTED_MAX {
                let folder = prefix.map(ToString::to_string).unwrap_or_default();
                return Err(failed(Endless { folder }));
            }
        }
        Ok(all)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        within(REQUEST_TIMEOUT, self.inner.copy_opts(from, to, options)).await
    }
}

/// An upload in parts.
#[derive(Debug)]
struct Upload(Box<dyn MultipartUpload>);

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let time = time_for(data.content_length());
        Box::pin(within(time, self.0.put_part(data)))
    }

    /// A store may put the parts together while it is waited for.
    async fn complete(&mut self) -> Result<PutResult> {
        within(REQUEST_TIMEOUT, self.0.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        within(ANSWER_TIMEOUT, self.0.abort()).await
    }
}
