//! How many requests may be under way at once.
//!
//! What a request needs in memory is bounded, so their number bounds the server. A request waits
//! a while for its turn, then it is answered `503 SlowDown`, on which S3's clients try again. A
//! turn lasts until the last byte of the answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use coffer_admin::Traffic;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::service::Service;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::Limits;
use crate::pace::Minimum;
use crate::request_body::PacedBody;

/// A service that lets only so many requests through to another.
#[derive(Debug, Clone)]
pub struct Turnstile<S> {
    inner: S,
    turns: Arc<Semaphore>,
    wait: Duration,
    minimum: Minimum,
    traffic: Arc<Traffic>,
}

impl<S> Turnstile<S> {
    /// Stands before `inner`.
    pub fn new(inner: S, limits: &Limits, traffic: Arc<Traffic>) -> Self {
        Self {
            inner,
            turns: Arc::new(Semaphore::new(limits.requests)),
            wait: Duration::from_secs(limits.request_wait_seconds),
            minimum: limits.minimum(),
            traffic,
        }
    }

    /// A turn; none if there was none in time.
    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = self.turns.clone().try_acquire_owned() {
            return Some(turn);
        }
        let turn = self.turns.clone().acquire_owned();
        tokio::time::timeout(self.wait, turn).await.ok()?.ok()
    }
}

impl<S, B> Service<Request<Incoming>> for Turnstile<S>
where
    S: Service<Request<PacedBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<AnswerBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let Some(turn) = this.turn().await else {
                this.traffic.turned_away();
                return Ok(slow_down());
            };
            let traffic = this.traffic.clone();
            let request = request.map(|body| PacedBody::new(body, this.minimum, traffic));
            let answer = this.inner.call(request).await?;
            Ok(answer.map(|body| AnswerBody::Granted { body, _turn: turn }))
        })
    }
}

fn slow_down<B>() -> Response<AnswerBody<B>> {
    const TEXT: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>SlowDown</Code>\
        <Message>The server has as many requests under way as it may. Please try again.</Message>\
        </Error>";
    let mut answer = Response::new(AnswerBody::Refused(Bytes::from_static(TEXT.as_bytes())));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    answer
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// The body of an answer.
#[derive(Debug)]
pub enum AnswerBody<B> {
    /// That of the service, which keeps its turn.
    Granted {
        /// The body.
        body: B,
        /// Given back when the body is dropped.
        _turn: OwnedSemaphorePermit,
    },
    /// The refusal; empty when it has been sent.
    Refused(Bytes),
}

impl<B: Body<Data = Bytes> + Unpin> Body for AnswerBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.get_mut() {
            Self::Granted { body, .. } => Pin::new(body).poll_frame(cx),
            Self::Refused(text) if text.is_empty() => Poll::Ready(None),
            Self::Refused(text) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Granted { body, .. } => body.is_end_stream(),
            Self::Refused(text) => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Granted { body, .. } => body.size_hint(),
            Self::Refused(text) => SizeHint::with_exact(text.len() as u64),
        }
    }
}
