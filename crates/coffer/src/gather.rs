//! Reading a TLS stream in larger steps: hyper gets up to 64 KiB a read, not 16.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::quantum::ReadCount;

/// A stream whose reads gather what is there. Writes pass through.
#[derive(Debug)]
pub struct Gathered<S> {
    inner: S,
    read: ReadCount,
    /// An error that came after bytes in one read; the next read reports it.
    late_error: Option<io::Error>,
}

impl<S> Gathered<S> {
    /// Gathers the reads of `inner`, and counts in `read`.
    pub fn new(inner: S, read: ReadCount) -> Self {
        Self {
            inner,
            read,
            late_error: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gathered<S> {
    /// Reads until `out` is full or nothing is left: a TLS stream gives out one record of 16 KiB
    /// at a time, and what is done with each read costs as much for one as for four.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(error) = this.late_error.take() {
            return Poll::Ready(Err(error));
        }
        let before = out.filled().len();
        let polled = loop {
            let held = out.filled().len();
            match Pin::new(&mut this.inner).poll_read(cx, out) {
                Poll::Ready(Ok(())) if out.filled().len() > held && out.remaining() > 0 => {}
                Poll::Ready(Err(error)) if held > before => {
                    this.late_error = Some(error);
                    break Poll::Ready(Ok(()));
                }
                Poll::Pending if held > before => break Poll::Ready(Ok(())),
                other => break other,
            }
        };
        this.read.add(out.filled().len() - before);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gathered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(cx, slices)
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
    use tokio::io::AsyncReadExt;

    /// Gives out what it is told, a step a read.
    struct Steps(Vec<Poll<io::Result<&'static [u8]>>>);

    impl AsyncRead for Steps {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.0.remove(0).map_ok(|bytes| out.put_slice(bytes))
        }
    }

    #[tokio::test]
    async fn one_read_gathers_what_is_there_and_loses_no_error() {
        let steps = vec![
            Poll::Ready(Ok(&b"abc"[..])),
            Poll::Ready(Ok(&b"def"[..])),
            Poll::Pending,
            Poll::Ready(Ok(&b"gh"[..])),
            Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        ];
        let count = ReadCount::default();
        let mut gathered = Gathered::new(Steps(steps), count.clone());
        let mut part = [0; 100];
        assert_eq!(gathered.read(&mut part).await.unwrap(), 6);
        assert_eq!(&part[..6], b"abcdef");
        assert_eq!(gathered.read(&mut part).await.unwrap(), 2);
        let error = gathered.read(&mut part).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(
            gathered.read(&mut part).await.unwrap(),
            0,
            "then it has ended"
        );
        assert_eq!(count.take(), 8);
    }

    #[tokio::test]
    async fn a_full_buffer_ends_the_read() {
        let steps = vec![
            Poll::Ready(Ok(&b"abcd"[..])),
            Poll::Ready(Ok(&b"efgh"[..])),
            Poll::Pending,
        ];
        let mut gathered = Gathered::new(Steps(steps), ReadCount::default());
        let mut part = [0; 8];
        assert_eq!(gathered.read(&mut part).await.unwrap(), 8);
    }
}
