//! Connections that can be cut off at once, when what they carry has been erased.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use coffer_vault::ConnectionCutoff;
use hyper::service::Service;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::futures::TaskLocalFuture;

/// A socket on a lifeline. Once that was cut, closing it throws away what waits to be sent, also
/// what the kernel holds, and resets the connection.
#[derive(Debug)]
pub struct Severable {
    tcp: TcpStream,
    lifeline: ConnectionCutoff,
}

impl Severable {
    /// Hangs the socket on a lifeline.
    pub fn new(tcp: TcpStream, lifeline: ConnectionCutoff) -> Self {
        Self { tcp, lifeline }
    }
}

impl Drop for Severable {
    fn drop(&mut self) {
        if self.lifeline.is_cut() {
            // Should it fail, the kernel sends on for a while what it holds already.
            let _ = rustix::net::sockopt::set_socket_linger(&self.tcp, Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Severable {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_read(cx, out)
    }
}

impl AsyncWrite for Severable {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().tcp).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_shutdown(cx)
    }
}

/// A service whose requests are served on a connection's lifeline.
#[derive(Debug)]
pub struct OnLifeline<S> {
    service: S,
    lifeline: ConnectionCutoff,
}

impl<S> OnLifeline<S> {
    /// Serves with `service` what comes by the connection of this lifeline.
    pub fn new(service: S, lifeline: ConnectionCutoff) -> Self {
        Self { service, lifeline }
    }
}

impl<R, S: Service<R>> Service<R> for OnLifeline<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = TaskLocalFuture<ConnectionCutoff, S::Future>;

    fn call(&self, request: R) -> Self::Future {
        self.lifeline.scope(self.service.call(request))
    }
}
