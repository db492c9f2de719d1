//! Requests as the connection's slot sees them: under way or not, signed rightly or not.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use coffer_vault::ConnectionCutoff;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};
use hyper::service::Service;
use pin_project_lite::pin_project;

use crate::connection::activity::Seat;
use crate::connection::slots::Slot;

/// A service whose requests are counted in the slot of their connection.
#[derive(Debug)]
pub struct Seated<S> {
    service: S,
    slot: Arc<Slot>,
    lifeline: ConnectionCutoff,
}

impl<S> Seated<S> {
    /// Serves with `service` what comes by the connection of this slot and this lifeline.
    pub fn new(service: S, slot: Arc<Slot>, lifeline: ConnectionCutoff) -> Self {
        Self {
            service,
            slot,
            lifeline,
        }
    }
}

impl<R, B, S> Service<R> for Seated<S>
where
    S: Service<R, Response = Response<B>>,
{
    type Response = Response<SeatedBody<B>>;
    type Error = S::Error;
    type Future = SeatedFuture<S::Future>;

    fn call(&self, request: R) -> Self::Future {
        SeatedFuture {
            turn: Some(Turn::new(self.slot.seat().clone())),
            inner: self.service.call(request),
            slot: self.slot.clone(),
            lifeline: self.lifeline.clone(),
        }
    }
}

/// A request under way, until it is dropped.
#[derive(Debug)]
struct Turn(Arc<Seat>);

impl Turn {
    fn new(seat: Arc<Seat>) -> Self {
        seat.begin();
        Self(seat)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.end();
    }
}

pin_project! {
    /// The answer to come.
    pub struct SeatedFuture<F> {
        #[pin]
        inner: F,
        turn: Option<Turn>,
        slot: Arc<Slot>,
        lifeline: ConnectionCutoff,
    }
}

impl<F, B, E> Future for SeatedFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<SeatedBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.inner.poll(cx))?;
        if !this.slot.seat().is_signed_in() && this.lifeline.is_signed_in() {
            this.slot.sign_in();
        }
        let turn = this.turn.take();
        Poll::Ready(Ok(answer.map(|body| SeatedBody { body, _turn: turn })))
    }
}

pin_project! {
    /// The body of an answer. The request is under way until it is dropped.
    pub struct SeatedBody<B> {
        #[pin]
        body: B,
        _turn: Option<Turn>,
    }
}

impl<B: Body> Body for SeatedBody<B> {
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
