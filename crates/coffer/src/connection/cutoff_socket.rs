//! Connections that can be cut off at once, when what they carry has been erased.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use coffer_vault::ConnectionCutoff;
use hyper::service::Service;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::futures::TaskLocalFuture;

use crate::connection::forward_writes::forward_writes;

/// A socket on a cutoff. Once that was cut, closing it throws away what waits to be sent, also
/// what the kernel holds, and resets the connection.
#[derive(Debug)]
pub struct CutoffSocket {
    tcp: TcpStream,
    cutoff: ConnectionCutoff,
}

impl CutoffSocket {
    /// Hangs the socket on a cutoff.
    pub fn new(tcp: TcpStream, cutoff: ConnectionCutoff) -> Self {
        Self { tcp, cutoff }
    }

    /// The socket itself.
    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }
}

impl Drop for CutoffSocket {
    fn drop(&mut self) {
        if self.cutoff.is_cut() {
            // Should it fail, the kernel sends on for a while what it holds already.
            let _ = rustix::net::sockopt::set_socket_linger(&self.tcp, Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for CutoffSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().tcp).poll_read(cx, out)
    }
}

forward_writes!(impl[] CutoffSocket, tcp);

/// A service whose requests are served on a connection's cutoff.
#[derive(Debug)]
pub struct CutoffService<S> {
    service: S,
    cutoff: ConnectionCutoff,
}

impl<S> CutoffService<S> {
    /// Serves with `service` what comes by the connection of this cutoff.
    pub fn new(service: S, cutoff: ConnectionCutoff) -> Self {
        Self { service, cutoff }
    }
}

impl<R, S: Service<R>> Service<R> for CutoffService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = TaskLocalFuture<ConnectionCutoff, S::Future>;

    fn call(&self, request: R) -> Self::Future {
        self.cutoff.scope(self.service.call(request))
    }
}
