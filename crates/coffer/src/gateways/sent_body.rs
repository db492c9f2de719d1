//! The body of a request that is forwarded.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::HeaderMap;
use hyper::body::{Body, Bytes, Frame, SizeHint};

/// A body on its way to the gateway that serves. Where that does not take it to its end, it is read
/// on in the background: its client may be sending, and would see a broken connection in place of
/// the answer.
pub struct SentBody<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    /// None, once it has ended, or broken off.
    inner: Option<B>,
    /// The client waits for `100 Continue`, which hyper sends when the body is first polled.
    waits: bool,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> SentBody<B> {
    /// Of a client that waits to send it, or does not.
    pub fn new(inner: B, waits: bool) -> Self {
        Self {
            inner: Some(inner),
            waits,
        }
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Body for SentBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        let Some(inner) = &mut this.inner else {
            return Poll::Ready(None);
        };
        this.waits = false;
        let frame = std::task::ready!(Pin::new(inner).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            this.inner = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let none = || SizeHint::with_exact(0);
        self.inner.as_ref().map_or_else(none, Body::size_hint)
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for SentBody<B> {
    fn drop(&mut self) {
        // A client that still waits has sent nothing.
        if let Some(inner) = self.inner.take()
            && !self.waits
        {
            coffer_s3::discard(&HeaderMap::new(), inner);
        }
    }
}
