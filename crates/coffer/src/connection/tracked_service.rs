//! Requests as the connection's slot sees them: under way or not, signed rightly or not.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coffer_vault::ConnectionCutoff;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};
use hyper::service::Service;
use pin_project_lite::pin_project;

use crate::connection::activity::Activity;
use crate::connection::slots::Slot;

/// A service whose requests are counted in the slot of their connection.
#[derive(Debug)]
pub struct TrackedService<S> {
    service: S,
    slot: Arc<Slot>,
    cutoff: ConnectionCutoff,
}

impl<S> TrackedService<S> {
    /// Serves with `service` what comes by the connection of this slot and this cutoff.
    pub fn new(service: S, slot: Arc<Slot>, cutoff: ConnectionCutoff) -> Self {
        Self {
            service,
            slot,
            cutoff,
        }
    }
}

impl<R, B, S> Service<R> for TrackedService<S>
where
    S: Service<R, Response = Response<B>>,
{
    type Response = Response<TrackedBody<B>>;
    type Error = S::Error;
    type Future = TrackedFuture<S::Future>;

    fn call(&self, request: R) -> Self::Future {
        TrackedFuture {
            turn: Some(Turn::new(self.slot.activity().clone())),
            inner: self.service.call(request),
            slot: self.slot.clone(),
            cutoff: self.cutoff.clone(),
        }
    }
}

/// A request under way, until it is dropped.
#[derive(Debug)]
struct Turn(Arc<Activity>);

impl Turn {
    fn new(activity: Arc<Activity>) -> Self {
        activity.begin();
        Self(activity)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.end();
    }
}

pin_project! {
    /// The answer to come.
    pub struct TrackedFuture<F> {
        #[pin]
        inner: F,
        turn: Option<Turn>,
        slot: Arc<Slot>,
        cutoff: ConnectionCutoff,
    }
}

impl<F, B, E> Future for TrackedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<TrackedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.inner.poll(cx))?;
        if !this.slot.activity().is_signed_in() && this.cutoff.is_signed_in() {
            this.slot.sign_in();
        }
        let turn = this.turn.take();
        Poll::Ready(Ok(answer.map(|body| TrackedBody { body, _turn: turn })))
    }
}

pin_project! {
    /// The body of an answer. The request is under way until it is dropped.
    pub struct TrackedBody<B> {
        #[pin]
        body: B,
        _turn: Option<Turn>,
    }
}

impl<B: Body> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
