//! Reading a TLS stream in larger steps: hyper gets up to 64 KiB a read, not 16.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::forward_writes::forward_writes;
use crate::connection::quanta::ReadCount;

/// A stream whose reads gather what is there. Writes pass through.
#[derive(Debug)]
pub struct CoalesceReads<S> {
    inner: S,
    read: ReadCount,
    /// An error that came after bytes in one read; the next read reports it.
    late_error: Option<io::Error>,
}

impl<S> CoalesceReads<S> {
    /// Gathers the reads of `inner`, and counts in `read`.
    pub fn new(inner: S, read: ReadCount) -> Self {
        Self {
            inner,
            read,
            late_error: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CoalesceReads<S> {
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

forward_writes!(impl[S: AsyncWrite + Unpin] CoalesceReads<S>, inner);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::quanta::by_quanta;
    use crate::limits::{HTTP_BUFFER_BYTES, QUANTUM_BYTES};
    use http::{Request, Response};
    use http_body_util::{BodyExt, Full};
    use hyper::body::{Bytes, Incoming};
    use hyper_util::rt::TokioIo;
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
        let mut gathered = CoalesceReads::new(Steps(steps), count.clone());
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

    /// How often a real server of HTTP gives up its thread while it takes `request`, all of which
    /// is there to be read.
    fn rests(request: Vec<u8>, in_turns: bool) -> usize {
        let count = ReadCount::default();
        let stream = tokio::io::join(io::Cursor::new(request), tokio::io::sink());
        let service = hyper::service::service_fn(|request: Request<Incoming>| async {
            let body = request.into_body().collect().await?;
            let whole = Full::new(Bytes::from(body.to_bytes().len().to_string()));
            Ok::<_, hyper::Error>(Response::new(whole))
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .half_close(true)
            .max_buf_size(HTTP_BUFFER_BYTES)
            .serve_connection(
                TokioIo::new(CoalesceReads::new(stream, count.clone())),
                service,
            );
        let mut connection = std::pin::pin!(connection);
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut rests = 0;
        loop {
            let polled = if in_turns {
                std::pin::pin!(by_quanta(connection.as_mut(), &count)).poll(&mut cx)
            } else {
                connection.as_mut().poll(&mut cx)
            };
            match polled {
                Poll::Pending => rests += 1,
                Poll::Ready(ended) => {
                    ended.unwrap();
                    return rests;
                }
            }
        }
    }

    #[test]
    fn an_upload_through_hyper_takes_a_turn_for_each_quantum() {
        let mebibytes = 8;
        let mut request = format!(
            "PUT / HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
            mebibytes << 20
        )
        .into_bytes();
        request.resize(request.len() + (mebibytes << 20), 7);
        let quanta = (mebibytes << 20) / QUANTUM_BYTES;
        let rests_by_quanta = rests(request.clone(), true);
        assert!(
            (quanta - 1..=quanta + 1).contains(&rests_by_quanta),
            "{rests_by_quanta}"
        );
        let without = rests(request, false);
        assert!(
            without > 4 * rests_by_quanta,
            "not needed: hyper rests {without} times"
        );
    }

    #[tokio::test]
    async fn a_full_buffer_ends_the_read() {
        let steps = vec![
            Poll::Ready(Ok(&b"abcd"[..])),
            Poll::Ready(Ok(&b"efgh"[..])),
            Poll::Pending,
        ];
        let mut gathered = CoalesceReads::new(Steps(steps), ReadCount::default());
        let mut part = [0; 8];
        assert_eq!(gathered.read(&mut part).await.unwrap(), 8);
    }
}
