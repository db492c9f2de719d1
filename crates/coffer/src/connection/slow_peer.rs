//! A socket whose peer is held to a pace.
//!
//! Stands below TLS, where it sees what really leaves. Only writing is watched: whether the
//! server waits for a client to send is known further up, for while a request is answered hyper
//! reads on, without a claim on more bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use coffer_admin::Traffic;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::activity::Activity;
use crate::connection::minimum_rate::{MinimumRate, RateWatch, TooSlow};

/// A stream that ends with an error when its peer takes bytes too slowly.
#[derive(Debug)]
pub struct SlowPeerLimit<S> {
    inner: S,
    pace: RateWatch,
    traffic: Arc<Traffic>,
    /// Who wants to know whether bytes wait for the peer.
    activity: Option<Arc<Activity>>,
    is_waiting: bool,
}

impl<S> SlowPeerLimit<S> {
    /// Watches `inner`; counts its bytes in `traffic`.
    pub fn new(inner: S, minimum: MinimumRate, traffic: Arc<Traffic>) -> Self {
        Self {
            inner,
            pace: RateWatch::new(minimum),
            traffic,
            activity: None,
            is_waiting: false,
        }
    }

    /// Tells this activity whether bytes wait for the peer.
    pub fn reporting_to(self, activity: Arc<Activity>) -> Self {
        Self {
            activity: Some(activity),
            ..self
        }
    }

    fn tell(&mut self, is_waiting: bool) {
        if self.is_waiting != is_waiting {
            self.is_waiting = is_waiting;
            if let Some(activity) = &self.activity {
                activity.set_sending(is_waiting);
            }
        }
    }

    /// Passes on the result of a write of `length` bytes, or cuts the peer off.
    fn watch(
        &mut self,
        cx: &mut Context<'_>,
        length: usize,
        polled: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Ready(Ok(count)) => {
                self.traffic.sent(*count as u64);
                // A write that falls short will go on when the peer has taken some of it.
                if *count < length {
                    self.pace.moved(*count as u64);
                } else {
                    self.tell(false);
                    self.pace.idle();
                }
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => {
                self.tell(true);
                if let Poll::Ready(TooSlow) = self.pace.poll_waiting(cx) {
                    self.traffic.cut_off();
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, TooSlow)));
                }
            }
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SlowPeerLimit<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = out.filled().len();
        let polled = Pin::new(&mut this.inner).poll_read(cx, out);
        if polled.is_ready() {
            this.traffic.received((out.filled().len() - before) as u64);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SlowPeerLimit<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.watch(cx, bytes.len(), polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.inner).poll_write_vectored(cx, slices);
        this.watch(cx, slices.iter().map(|slice| slice.len()).sum(), polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::{Instant, sleep};

    const MINIMUM: MinimumRate = MinimumRate {
        bytes: 1000,
        period: Duration::from_secs(10),
    };

    fn pair(
        capacity: usize,
    ) -> (
        tokio::io::DuplexStream,
        SlowPeerLimit<tokio::io::DuplexStream>,
    ) {
        let (far, near) = duplex(capacity);
        (far, SlowPeerLimit::new(near, MINIMUM, Arc::default()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_cut_off() {
        let (_far, mut near) = pair(64);
        let start = Instant::now();
        let error = near.write_all(&[1; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= MINIMUM.period && start.elapsed() < MINIMUM.period * 2);
        assert_eq!(near.traffic.snapshot().cut_off_count, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_trickles_is_cut_off() {
        let (mut far, mut near) = pair(64);
        tokio::spawn(async move {
            while far.read_u8().await.is_ok() {
                sleep(Duration::from_millis(100)).await;
            }
        });
        let error = near.write_all(&[1; 10_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_at_pace_gets_everything() {
        let (mut far, mut near) = pair(64);
        let reader = tokio::spawn(async move {
            let mut got = 0;
            let mut part = [0; 64];
            loop {
                match far.read(&mut part).await.unwrap() {
                    0 => return got,
                    count => got += count,
                }
                sleep(Duration::from_millis(500)).await;
            }
        });
        near.write_all(&[1; 10_000]).await.unwrap();
        near.flush().await.unwrap();
        // A long silence between answers is allowed.
        sleep(MINIMUM.period * 5).await;
        near.write_all(&[1; 10_000]).await.unwrap();
        near.shutdown().await.unwrap();
        assert_eq!(reader.await.unwrap(), 20_000);
        assert_eq!(near.traffic.snapshot().sent_bytes, 20_000);
    }
}
