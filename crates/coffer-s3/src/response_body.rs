//! The body of an answer: counted as it is sent, and its request as under way until then.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::counters::Tally;

/// Counts a request as under way until its answer has been sent or given up.
pub(crate) struct InFlight(Arc<Tally>, Option<Arc<()>>);

impl InFlight {
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        tally.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(tally, None)
    }

    /// The same, which holds what is served until then.
    pub(crate) fn holding(mut self, lease: Arc<()>) -> Self {
        self.1 = Some(lease);
        self
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer.
pub struct ResponseBody {
    body: s3s::Body,
    in_flight: InFlight,
}

impl ResponseBody {
    pub(crate) fn new(body: s3s::Body, in_flight: InFlight) -> Self {
        Self { body, in_flight }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = s3s::StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, s3s::StdError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.in_flight
                .0
                .sent(frame.data_ref().map_or(0, Bytes::len));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
