//! Commits, which run to their end: a client that goes away while one runs must not take a blob's
//! file along after the catalog has it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use coffer_seal::BlobId;
use futures::future::BoxFuture;
use tokio::runtime::Handle;

use crate::open_buckets::UsedBucket;

/// Work that goes on in a task of its own when the request that waits for it goes away. As long as
/// one waits it needs no task, and none is woken for it.
pub(crate) struct ToItsEnd<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> ToItsEnd<T> {
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for ToItsEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let work = self.0.as_mut().expect("polled after its end");
        let outcome = ready!(work.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(outcome)
    }
}

impl<T: Send + 'static> Drop for ToItsEnd<T> {
    fn drop(&mut self) {
        // Without a runtime the server is gone, and the next start finds what was left.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

/// Removes files that no row refers to any more, in the background: they are noise by now.
pub(super) fn reclaim(bucket: &UsedBucket, freed: Vec<BlobId>) {
    if !freed.is_empty() {
        let bucket = bucket.clone();
        tokio::spawn(async move { bucket.blobs.remove(freed).await });
    }
}
