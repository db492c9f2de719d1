//! A head that is too long for HTTP, refused in the words of who is asked.
//!
//! hyper answers such a head by itself, with a status and no more, before any service hears of it,
//! and closes the connection. Its answer is looked for where it alone can be: in the first bytes
//! that are written after all answers to requests were flushed. Those are the first line of an
//! answer in any case, so that no byte of an object is ever taken for it. Where a client sends such
//! a head before it has heard the answer to its last request, hyper's own may come.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::activity::Activity;

/// How hyper's answer begins. No service that is asked here answers so.
const TOO_LONG: &[u8] = b"HTTP/1.1 431 ";

/// Makes the answer that is sent in its place: all of it, from its first line on.
pub type Refusal = fn() -> Vec<u8>;

/// A stream that says in other words what hyper says of a head that is too long.
#[derive(Debug)]
pub struct RefusedHeads<S> {
    inner: S,
    activity: Arc<Activity>,
    refusal: Option<Refusal>,
    /// Whether nothing was written since the answers to all requests were flushed.
    is_between: bool,
    /// What is still to be sent in place of hyper's answer, once that has come.
    answer: Option<Bytes>,
}

impl<S> RefusedHeads<S> {
    /// What is written to `inner`, the connection of this activity, for requests that it counts.
    pub fn new(inner: S, activity: Arc<Activity>, refusal: Option<Refusal>) -> Self {
        Self {
            inner,
            activity,
            refusal,
            is_between: true,
            answer: None,
        }
    }

    /// Whether something else is sent in place of what is about to be written.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        if self.is_between && bytes.starts_with(TOO_LONG) {
            self.answer = self.refusal.map(|refusal| refusal().into());
        }
        self.is_between = false;
        self.answer.is_some()
    }
}

impl<S: AsyncWrite + Unpin> RefusedHeads<S> {
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(answer) = &mut self.answer else {
            return Poll::Ready(Ok(()));
        };
        while answer.has_remaining() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, answer))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            answer.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RefusedHeads<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_read(cx, out)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RefusedHeads<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut this.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let [first, ..] = slices
            && this.replaces(first)
        {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        Pin::new(&mut this.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_answer(cx))?;
        ready!(Pin::new(&mut this.inner).poll_flush(cx))?;
        this.is_between = this.activity.is_between_requests();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_answer(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::limits::{HEADERS_MAX, HTTP_BUFFER_BYTES};
    use http::{Request, Response};
    use http_body_util::Full;
    use hyper::body::Incoming;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const ANSWER: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\nno";

    /// An object that reads like hyper's own answer.
    const OBJECT: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n";

    fn answer() -> Vec<u8> {
        ANSWER.into()
    }

    /// Answers each request with the object, and with a header of so many bytes.
    async fn serve(stream: DuplexStream, refusal: Option<Refusal>, header_bytes: usize) {
        let activity = Arc::new(Activity::new(false));
        let counted = activity.clone();
        let service = hyper::service::service_fn(move |_: Request<Incoming>| {
            // Answered before anything is written: all depends on what was flushed.
            counted.begin();
            counted.end();
            let object = Full::new(Bytes::from_static(OBJECT.as_bytes()));
            let response = Response::builder().header("x", "y".repeat(header_bytes));
            std::future::ready(Ok::<_, Infallible>(response.body(object).unwrap()))
        });
        let stream = RefusedHeads::new(stream, activity, refusal);
        let connection = hyper::server::conn::http1::Builder::new()
            .max_headers(HEADERS_MAX)
            .max_buf_size(HTTP_BUFFER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let _ = connection.await;
    }

    fn head(headers: usize) -> String {
        let lines: String = (0..headers).map(|n| format!("x-{n}: a\r\n")).collect();
        format!("GET / HTTP/1.1\r\n{lines}\r\n")
    }

    /// Reads what comes up to the end of an object.
    async fn object(client: &mut DuplexStream) -> String {
        let mut told = String::new();
        while !told.ends_with(OBJECT) {
            told.push(char::from(client.read_u8().await.unwrap()));
        }
        told
    }

    async fn all(client: &mut DuplexStream) -> String {
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        told
    }

    #[tokio::test]
    async fn a_head_that_is_too_long_is_refused_in_other_words() {
        // hyper looks after it has read, so it takes up to two buffers.
        let bytes = 3 * HTTP_BUFFER_BYTES;
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(bytes));
        for too_long in [head(HEADERS_MAX + 1), long] {
            let (mut client, server) = tokio::io::duplex(1 << 20);
            let serving = tokio::spawn(serve(server, Some(answer), 1));
            for _ in 0..2 {
                client
                    .write_all(head(HEADERS_MAX).as_bytes())
                    .await
                    .unwrap();
                let told = object(&mut client).await;
                assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
            }
            client.write_all(too_long.as_bytes()).await.unwrap();
            assert_eq!(all(&mut client).await, ANSWER);
            serving.await.unwrap();
        }
    }

    #[tokio::test]
    async fn where_nothing_else_is_said_hyper_says_it() {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let serving = tokio::spawn(serve(server, None, 1));
        let too_long = head(HEADERS_MAX + 1);
        client.write_all(too_long.as_bytes()).await.unwrap();
        let told = all(&mut client).await;
        assert!(told.starts_with("HTTP/1.1 431 "), "{told}");
        serving.await.unwrap();
    }

    /// Wherever an answer is cut between two writes.
    #[tokio::test]
    async fn no_object_is_taken_for_a_refusal() {
        const PIECE_BYTES: usize = 64;
        for header_bytes in 1..=PIECE_BYTES {
            let (mut client, server) = tokio::io::duplex(PIECE_BYTES);
            let serving = tokio::spawn(serve(server, Some(answer), header_bytes));
            for _ in 0..2 {
                client.write_all(head(1).as_bytes()).await.unwrap();
                let told = object(&mut client).await;
                assert!(told.starts_with("HTTP/1.1 200 OK\r\n"), "{told}");
                assert!(told.contains(&format!("\r\n\r\n{OBJECT}")), "{told}");
            }
            drop(client);
            serving.await.unwrap();
        }
    }
}
