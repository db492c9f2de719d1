//! The body of a request whose client is held to a pace.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use coffer_admin::Traffic;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use crate::connection::minimum_rate::{MinimumRate, RateWatch, TooSlow};

/// A body that ends with an error when its client sends too slowly. Only the time counts in which
/// the server waits for the body.
#[derive(Debug)]
pub struct WatchedBody<B = Incoming> {
    inner: B,
    pace: RateWatch,
    traffic: Arc<Traffic>,
    ended: bool,
}

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError<E> {
    /// The connection failed.
    #[error(transparent)]
    Connection(E),
    /// The client was too slow.
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
}

impl<E> coffer_s3::BrokenOff for BodyError<E> {
    fn is_too_slow(&self) -> bool {
        matches!(self, Self::TooSlow(_))
    }
}

impl<B> WatchedBody<B> {
    /// Watches `inner`.
    pub fn new(inner: B, minimum: MinimumRate, traffic: Arc<Traffic>) -> Self {
        Self {
            inner,
            pace: RateWatch::new(minimum),
            traffic,
            ended: false,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = BodyError<B::Error>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        match Pin::new(&mut this.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                this.pace
                    .moved(frame.data_ref().map_or(0, |bytes| bytes.len() as u64));
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(end) => Poll::Ready(end.map(|end| end.map_err(BodyError::Connection))),
            Poll::Pending => this.pace.poll_waiting(cx).map(|too_slow| {
                this.ended = true;
                this.traffic.cut_off();
                Some(Err(too_slow.into()))
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{Stream, stream};
    use http_body_util::{BodyExt, StreamBody};
    use std::convert::Infallible;
    use std::time::Duration;
    use tokio::time::{Instant, sleep};

    const SECOND: Duration = Duration::from_secs(1);
    const MINIMUM: MinimumRate = MinimumRate {
        bytes: 1000,
        period: Duration::from_secs(10),
    };

    /// `count` frames of `bytes` each, a second apart; then silence.
    fn trickle(
        bytes: usize,
        count: usize,
    ) -> impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Unpin {
        Box::pin(stream::unfold(0, move |sent| async move {
            if sent == count {
                std::future::pending().await
            } else {
                sleep(SECOND).await
            }
            Some((Ok(Frame::data(Bytes::from(vec![0; bytes]))), sent + 1))
        }))
    }

    async fn outcome(
        body: impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Unpin,
    ) -> (usize, Duration) {
        let start = Instant::now();
        let mut body = WatchedBody::new(StreamBody::new(body), MINIMUM, Arc::default());
        let mut got = 0;
        loop {
            match body.frame().await {
                Some(Ok(frame)) => got += frame.into_data().unwrap().len(),
                Some(Err(BodyError::TooSlow(_))) => break,
                Some(Err(BodyError::Connection(never))) => match never {},
                None => panic!("ended well"),
            }
        }
        assert!(
            body.frame().await.is_none(),
            "nothing comes after the error"
        );
        assert_eq!(body.traffic.snapshot().cut_off_count, 1);
        (got, start.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_and_trickles_are_cut_off_but_a_steady_pace_is_not() {
        let (got, elapsed) = outcome(trickle(0, 0)).await;
        assert_eq!((got, elapsed.as_secs()), (0, 10));
        let (got, elapsed) = outcome(trickle(1, 1000)).await;
        assert!(got <= 10 && elapsed <= SECOND * 11, "{got} {elapsed:?}");
        let (got, elapsed) = outcome(trickle(150, 1000)).await;
        assert_eq!(got, 150_000);
        assert!(elapsed >= SECOND * 1000);
    }

    #[tokio::test]
    async fn a_whole_body_passes() {
        let body = http_body_util::Full::new(Bytes::from_static(b"all of it"));
        let body = WatchedBody::new(body, MINIMUM, Arc::default());
        assert_eq!(body.size_hint().exact(), Some(9));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "all of it");
    }
}
