//! A request's body from the connection: counted, its chunks taken apart, compared with what was
//! signed, small pieces gathered, and read to its end even when the answer does not need it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use aws_lc_rs::digest;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};

use crate::counters::Tally;
use crate::limits::{GATHERED_BYTES, SMALL_PIECE_BYTES};
use crate::request::aws_chunked::ChunkReader;
use crate::request::context::{BodyFault, RequestContext};
use crate::request::drain::drain_in_background;
use crate::signature::payload::Payload;

/// Why the connection's side of a body broke off, as far as an answer can tell.
pub trait BrokenOff {
    /// Whether the client was cut off because it sent too little in the time that it is allowed.
    fn is_too_slow(&self) -> bool;
}

/// Bodies that are in memory already don't break off.
impl BrokenOff for Infallible {
    fn is_too_slow(&self) -> bool {
        match *self {}
    }
}

impl BrokenOff for std::io::Error {
    fn is_too_slow(&self) -> bool {
        self.kind() == std::io::ErrorKind::TimedOut
    }
}

/// How a body is compared with what was signed.
pub(crate) enum BodyCheck {
    None,
    Sha256 {
        expected: [u8; 32],
        hash: digest::Context,
    },
    Chunks {
        reader: Box<ChunkReader>,
        /// Trailers that were announced.
        announced: Vec<HeaderName>,
    },
}

impl BodyCheck {
    pub(crate) fn new(payload: Payload, headers: &HeaderMap) -> Self {
        match payload {
            Payload::Unsigned => Self::None,
            Payload::Hash(expected) => Self::Sha256 {
                expected,
                hash: digest::Context::new(&digest::SHA256),
            },
            Payload::Chunks(signatures) => {
                let lists = headers.get_all("x-amz-trailer").iter();
                let lists = lists.filter_map(|list| list.to_str().ok());
                let names = lists.flat_map(|list| list.split(','));
                let names = names.filter_map(|name| name.trim().parse().ok());
                Self::Chunks {
                    reader: Box::new(ChunkReader::new(signatures.map(|signatures| *signatures))),
                    announced: names.collect(),
                }
            }
        }
    }
}

/// The body of one request. When it is dropped before its end, because the request was answered
/// early, it is drained in the background.
pub(crate) struct RequestBody<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    inner: Option<B>,
    check: BodyCheck,
    /// Small pieces, which others hold for a while, each with its own overhead.
    gathered: BytesMut,
    queue: VecDeque<Bytes>,
    /// The client waits for `100 Continue`, which hyper sends when the body is first polled.
    waits: bool,
    context: Arc<RequestContext>,
    tally: Arc<Tally>,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> RequestBody<B> {
    pub(crate) fn new(
        inner: B,
        check: BodyCheck,
        waits: bool,
        context: Arc<RequestContext>,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            inner: Some(inner),
            check,
            gathered: BytesMut::new(),
            queue: VecDeque::new(),
            waits,
            context,
            tally,
        }
    }

    /// Takes what arrived.
    fn arrived(&mut self, bytes: Bytes) -> Result<(), BodyFault> {
        self.tally.received(bytes.len());
        self.context.make_room(bytes.len())?;
        let is_last = self.inner.as_ref().is_none_or(Body::is_end_stream);
        if bytes.len() >= SMALL_PIECE_BYTES || (is_last && self.gathered.is_empty()) {
            self.pass_gathered()?;
            self.pass(bytes)?;
        } else {
            self.gathered.extend_from_slice(&bytes);
            if self.gathered.len() >= GATHERED_BYTES {
                self.pass_gathered()?;
            }
        }
        // The last piece is not given out before all of it has been compared.
        if is_last { self.ended() } else { Ok(()) }
    }

    fn ended(&mut self) -> Result<(), BodyFault> {
        self.inner = None;
        self.pass_gathered()?;
        match std::mem::replace(&mut self.check, BodyCheck::None) {
            BodyCheck::None => Ok(()),
            BodyCheck::Sha256 { expected, hash } => {
                let computed = hash.finish();
                if computed.as_ref() == expected {
                    return Ok(());
                }
                if let Ok(computed) = computed.as_ref().try_into() {
                    self.context.set_other_sha256(expected, computed);
                }
                Err(BodyFault::Sha256)
            }
            BodyCheck::Chunks {
                mut reader,
                announced,
            } => {
                let trailers = reader.end(&mut self.queue)?;
                let is_missing = announced.iter().any(|name| !trailers.contains_key(name));
                if is_missing || trailers.keys().any(|name| !announced.contains(name)) {
                    return Err(BodyFault::Trailers);
                }
                self.context.set_trailers(trailers);
                Ok(())
            }
        }
    }

    fn pass_gathered(&mut self) -> Result<(), BodyFault> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let gathered = std::mem::take(&mut self.gathered);
        self.pass(gathered.freeze())
    }

    fn pass(&mut self, bytes: Bytes) -> Result<(), BodyFault> {
        match &mut self.check {
            BodyCheck::Chunks { reader, .. } => {
                reader.push(bytes, &mut self.queue)?;
                return Ok(());
            }
            BodyCheck::Sha256 { hash, .. } => hash.update(&bytes),
            BodyCheck::None => {}
        }
        self.queue.push_back(bytes);
        Ok(())
    }

    fn fail(&mut self, fault: BodyFault) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        self.context.set_fault(fault);
        self.queue.clear();
        self.gathered.clear();
        if matches!(fault, BodyFault::Disconnected | BodyFault::TooSlow) {
            self.inner = None;
        }
        Poll::Ready(Some(Err(fault)))
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes, Error: BrokenOff> + Send + Unpin + 'static,
{
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = &mut *self;
        loop {
            if let Some(bytes) = this.queue.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            let Some(inner) = &mut this.inner else {
                return Poll::Ready(None);
            };
            this.waits = false;
            let taken = match ready!(Pin::new(inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => this.arrived(bytes),
                    Err(_trailers) => continue, // HTTP's own; aws-chunked has them in its data
                },
                Some(Err(error)) if error.is_too_slow() => Err(BodyFault::TooSlow),
                Some(Err(_)) => Err(BodyFault::Disconnected),
                None => this.ended(),
            };
            if let Err(fault) = taken {
                return this.fail(fault);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.check, BodyCheck::None)
            && self.queue.is_empty()
            && self.gathered.is_empty()
            && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let is_chunked = matches!(self.check, BodyCheck::Chunks { .. });
        match &self.inner {
            Some(inner) if !is_chunked && self.gathered.is_empty() && self.queue.is_empty() => {
                inner.size_hint()
            }
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.queue.iter().map(|b| b.len() as u64).sum()),
        }
    }
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Drop for RequestBody<B> {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take()
            && !inner.is_end_stream()
        {
            // A client that still waits has sent nothing, and hyper can't tell whether it will.
            if self.waits {
                self.context.set_body_withheld();
            } else {
                drain_in_background(inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::request::memory_budget::MemoryBudget;

    impl BrokenOff for BodyFault {
        fn is_too_slow(&self) -> bool {
            *self == BodyFault::TooSlow
        }
    }

    /// Frames, an error at the end perhaps, and a count of how many were taken.
    struct Frames(VecDeque<Result<Bytes, BodyFault>>, Arc<AtomicUsize>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = BodyFault;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Poll::Ready(self.0.pop_front().map(|bytes| bytes.map(Frame::data)))
        }
    }

    fn body(
        frames: &[Result<&'static [u8], BodyFault>],
        waits: bool,
    ) -> (RequestBody<Frames>, Arc<RequestContext>, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let frames = frames
            .iter()
            .map(|frame| frame.map(Bytes::from_static))
            .collect();
        let context = Arc::new(RequestContext::new(&MemoryBudget::answers()));
        let inner = Frames(frames, taken.clone());
        let body = RequestBody::new(
            inner,
            BodyCheck::None,
            waits,
            context.clone(),
            Arc::default(),
        );
        (body, context, taken)
    }

    async fn next(body: &mut RequestBody<Frames>) -> Option<Result<Bytes, BodyFault>> {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    #[tokio::test]
    async fn bodies_pass_and_faults_are_noted() {
        const PIECE: &[u8] = &[7; SMALL_PIECE_BYTES];
        let (mut body, context, _) = body(&[Ok(PIECE), Err(BodyFault::Malformed)], false);
        assert_eq!(next(&mut body).await, Some(Ok(Bytes::from_static(PIECE))));
        assert_eq!(next(&mut body).await, Some(Err(BodyFault::Disconnected)));
        assert_eq!(next(&mut body).await, None);
        assert_eq!(context.fault(), Some(BodyFault::Disconnected));
    }

    #[tokio::test]
    async fn slowness_is_told_from_a_broken_connection() {
        let (mut body, context, _) = body(&[Ok(b"ab"), Err(BodyFault::TooSlow)], false);
        assert_eq!(next(&mut body).await, Some(Err(BodyFault::TooSlow)));
        assert_eq!(context.fault(), Some(BodyFault::TooSlow));
    }

    #[tokio::test]
    async fn small_pieces_are_gathered() {
        let pieces = [Ok(&b"ab"[..]); GATHERED_BYTES];
        let (mut body, _, _) = body(&pieces, false);
        let mut seen = Vec::new();
        while let Some(Ok(bytes)) = next(&mut body).await {
            seen.push(bytes);
        }
        assert_eq!(seen.concat(), b"ab".repeat(GATHERED_BYTES));
        assert_eq!(seen.len(), 2);
    }

    #[tokio::test]
    async fn bodies_that_are_held_take_room() {
        let (mut body, context, _) = body(&[Ok(b"ab"), Ok(b"c"), Ok(b"d")], false);
        context.set_reservation(MemoryBudget::bodies().reservation(3));
        assert_eq!(next(&mut body).await, Some(Err(BodyFault::TooLong)));
        assert_eq!(context.fault(), Some(BodyFault::TooLong));
    }

    #[tokio::test]
    async fn unwanted_bodies_are_drained() {
        let (body, _, taken) = body(&[Ok(b"a"), Ok(b"b"), Ok(b"c")], false);
        drop(body);
        tokio::task::yield_now().await;
        assert_eq!(taken.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn bodies_that_the_client_holds_back_are_not_asked_for() {
        let (body, context, taken) = body(&[Ok(b"a")], true);
        drop(body);
        tokio::task::yield_now().await;
        assert_eq!(taken.load(Ordering::Relaxed), 0);
        assert!(context.body_withheld());
    }
}
