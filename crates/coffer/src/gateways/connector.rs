//! Connections to the gateway that serves, as the pool of hyper makes them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use coffer_client::s3::Wire;
use http::Uri;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{KeepAlive, TcpKeepCount, TcpKeepIdle, TcpKeepInterval};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::gateways::identity::GATEWAY_NAME;
use crate::limits::{
    GATEWAY_ASKED_AFTER_SECONDS, GATEWAY_ASKED_EVERY_SECONDS, GATEWAY_ASKED_TIMES,
    GATEWAY_CONNECT_TIMEOUT,
};

/// Makes connections to gateways of one engine.
#[derive(Clone)]
pub struct GatewayConnector {
    tls: TlsConnector,
}

impl GatewayConnector {
    /// By this TLS.
    pub fn new(tls: Arc<ClientConfig>) -> Self {
        Self { tls: tls.into() }
    }

    async fn connect(self, to: Uri) -> io::Result<Wire> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        let host = to.host().ok_or_else(invalid)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = to.port_u16().ok_or_else(invalid)?;
        let name = ServerName::try_from(GATEWAY_NAME).map_err(|_| invalid())?;
        let connecting = async {
            let tcp = TcpStream::connect((host, port)).await?;
            tcp.set_nodelay(true)?;
            keep_asking(&tcp)?;
            self.tls.connect(name, tcp).await
        };
        let late = || io::Error::from(io::ErrorKind::TimedOut);
        let connected = timeout(GATEWAY_CONNECT_TIMEOUT, connecting).await;
        Ok(Wire::new(connected.unwrap_or_else(|_| Err(late()))?))
    }
}

/// Has the kernel ask a connection over which nothing comes whether its other end is still there: a
/// machine that lost its power ends none, and may be back at the same address.
fn keep_asking(tcp: &TcpStream) -> nix::Result<()> {
    setsockopt(tcp, TcpKeepIdle, &GATEWAY_ASKED_AFTER_SECONDS)?;
    setsockopt(tcp, TcpKeepInterval, &GATEWAY_ASKED_EVERY_SECONDS)?;
    setsockopt(tcp, TcpKeepCount, &GATEWAY_ASKED_TIMES)?;
    setsockopt(tcp, KeepAlive, &true)
}

impl Service<Uri> for GatewayConnector {
    type Response = Wire;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Wire>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        Box::pin(self.clone().connect(to))
    }
}
