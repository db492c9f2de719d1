//! Reading a socket in large steps.
//!
//! rustls asks its socket for 4 KiB at a time. [`ReadAhead`] stands between the two and reads
//! 32 KiB at a time into a buffer of a [`Pool`], which it holds only while there are bytes that
//! rustls has not taken. So an idle connection holds none, a few buffers serve many connections
//! while they stay warm in the cache, and their number is bounded: without one, the read goes
//! straight to the socket.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::forward_writes::forward_writes;
use crate::limits::{READ_AHEAD_BUFFERS, READ_AHEAD_BYTES, READ_AHEAD_IDLE_BUFFERS};

/// The buffers of all connections.
#[derive(Debug, Default)]
pub struct Pool {
    shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    /// Last in, first out: the last one is still in the cache.
    idle: Vec<Box<[u8]>>,
    lent: usize,
}

impl Pool {
    fn lend(&self) -> Option<Box<[u8]>> {
        let mut shelf = self.shelf.lock();
        if shelf.lent == READ_AHEAD_BUFFERS {
            return None;
        }
        shelf.lent += 1;
        let idle = shelf.idle.pop();
        drop(shelf);
        Some(idle.unwrap_or_else(|| vec![0; READ_AHEAD_BYTES].into_boxed_slice()))
    }

    fn take_back(&self, buffer: Box<[u8]>) {
        let mut shelf = self.shelf.lock();
        shelf.lent -= 1;
        if shelf.idle.len() < READ_AHEAD_IDLE_BUFFERS {
            shelf.idle.push(buffer);
        }
    }
}

/// A stream that is read ahead. Writes pass through.
#[derive(Debug)]
pub struct ReadAhead<S> {
    inner: S,
    pool: Arc<Pool>,
    held: Option<Held>,
}

/// Bytes that were read and not yet taken: `buffer[start..end]`, never empty.
#[derive(Debug)]
struct Held {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl<S> ReadAhead<S> {
    /// Reads `inner` ahead with buffers of `pool`.
    pub fn new(inner: S, pool: Arc<Pool>) -> Self {
        Self {
            inner,
            pool,
            held: None,
        }
    }

    /// Hands out what fits, and keeps the buffer only for what does not.
    fn hand_out(&mut self, mut held: Held, out: &mut ReadBuf<'_>) {
        let count = (held.end - held.start).min(out.remaining());
        out.put_slice(&held.buffer[held.start..held.start + count]);
        held.start += count;
        if held.start < held.end {
            self.held = Some(held);
        } else {
            self.pool.take_back(held.buffer);
        }
    }
}

impl<S> Drop for ReadAhead<S> {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.pool.take_back(held.buffer);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(held) = this.held.take() {
            this.hand_out(held, out);
            return Poll::Ready(Ok(()));
        }
        let Some(mut buffer) = this.pool.lend() else {
            return Pin::new(&mut this.inner).poll_read(cx, out);
        };
        let mut filled = ReadBuf::new(&mut buffer);
        let polled = Pin::new(&mut this.inner).poll_read(cx, &mut filled);
        let end = filled.filled().len();
        if end == 0 {
            this.pool.take_back(buffer);
        } else {
            this.hand_out(
                Held {
                    buffer,
                    start: 0,
                    end,
                },
                out,
            );
        }
        ready!(polled)?;
        Poll::Ready(Ok(()))
    }
}

forward_writes!(impl[S: AsyncWrite + Unpin] ReadAhead<S>, inner);

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    impl Pool {
        fn counts(&self) -> (usize, usize) {
            let shelf = self.shelf.lock();
            (shelf.lent, shelf.idle.len())
        }
    }

    fn noise(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index * 31 % 251) as u8).collect()
    }

    #[tokio::test]
    async fn bytes_arrive_in_order_in_any_step() {
        let pool = Arc::new(Pool::default());
        let sent = noise(3 * READ_AHEAD_BYTES + 77);
        for step in [1000, 4096, READ_AHEAD_BYTES, 5 * READ_AHEAD_BYTES] {
            let (mut far, near) = duplex(READ_AHEAD_BYTES + 1);
            let mut near = ReadAhead::new(near, pool.clone());
            let text = sent.clone();
            let writer = tokio::spawn(async move { far.write_all(&text).await.unwrap() });
            let mut got = Vec::new();
            let mut part = vec![0; step];
            loop {
                let count = near.read(&mut part).await.unwrap();
                if count == 0 {
                    break;
                }
                got.extend_from_slice(&part[..count]);
            }
            writer.await.unwrap();
            assert!(got == sent, "step {step}");
        }
        assert_eq!(pool.counts().0, 0, "all buffers are back");
    }

    #[tokio::test]
    async fn an_idle_connection_holds_no_buffer() {
        let pool = Arc::new(Pool::default());
        let (mut far, near) = duplex(1 << 20);
        let mut near = ReadAhead::new(near, pool.clone());
        let mut part = [0; 10];
        let waiting =
            tokio::time::timeout(std::time::Duration::from_millis(5), near.read(&mut part));
        assert!(waiting.await.is_err(), "nothing to read yet");
        assert_eq!(pool.counts(), (0, 1));
        far.write_all(&[7; 15]).await.unwrap();
        assert_eq!(near.read(&mut part).await.unwrap(), 10);
        assert_eq!(pool.counts(), (1, 0), "five bytes wait to be taken");
        assert_eq!(near.read(&mut part).await.unwrap(), 5);
        assert_eq!(pool.counts(), (0, 1));
    }

    #[tokio::test]
    async fn a_connection_that_ends_gives_its_buffer_back() {
        let pool = Arc::new(Pool::default());
        let (mut far, near) = duplex(1 << 20);
        let mut near = ReadAhead::new(near, pool.clone());
        far.write_all(&[7; 15]).await.unwrap();
        near.read_u8().await.unwrap();
        drop(near);
        assert_eq!(pool.counts(), (0, 1));
    }

    #[tokio::test]
    async fn buffers_are_bounded_and_reading_goes_on_without() {
        let pool = Arc::new(Pool::default());
        let mut streams = Vec::new();
        for _ in 0..READ_AHEAD_BUFFERS + 3 {
            let (mut far, near) = duplex(64);
            let mut near = ReadAhead::new(near, pool.clone());
            far.write_all(b"ab").await.unwrap();
            assert_eq!(near.read_u8().await.unwrap(), b'a');
            streams.push((far, near));
        }
        assert_eq!(pool.counts().0, READ_AHEAD_BUFFERS);
        for (_, near) in &mut streams {
            assert_eq!(near.read_u8().await.unwrap(), b'b');
        }
        assert_eq!(pool.counts(), (0, READ_AHEAD_IDLE_BUFFERS));
    }

    #[tokio::test]
    async fn writes_pass_through() {
        let (mut far, near) = duplex(64);
        let mut near = ReadAhead::new(near, Arc::default());
        near.write_all(b"there").await.unwrap();
        near.shutdown().await.unwrap();
        let mut got = String::new();
        far.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "there");
    }
}
