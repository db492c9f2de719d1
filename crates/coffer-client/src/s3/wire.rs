//! Connections, as the pool of hyper makes them.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::error::ClientError;
use crate::https::{HttpsServer, may_pass};
use crate::limits::CONNECT_TIMEOUT;
use crate::s3::endpoint::{Endpoint, Reached};

/// Makes connections to one service.
#[derive(Clone)]
pub(super) struct Connector {
    endpoint: Arc<str>,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Https(HttpsServer, TlsConnector),
    Http { host: String, port: u16 },
}

impl Connector {
    /// To this service, which an authority vouches for where it has TLS.
    pub(super) fn new(endpoint: &Endpoint, ca: Option<&Path>) -> Result<Self, ClientError> {
        let way = match &endpoint.reached {
            Reached::Https(server) => Way::Https(server.clone(), server.connector(ca)?),
            Reached::Http { host, port } => Way::Http {
                host: host.clone(),
                port: *port,
            },
        };
        Ok(Self {
            endpoint: endpoint.text().into(),
            way,
        })
    }

    /// Whom it trusts, where it speaks TLS.
    pub(super) fn tls(&self) -> Option<Arc<ClientConfig>> {
        match &self.way {
            Way::Https(_, tls) => Some(Arc::clone(tls.config())),
            Way::Http { .. } => None,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Wire;
    type Error = ClientError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, ClientError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self { endpoint, way } = self.clone();
        Box::pin(async move {
            Ok(match way {
                Way::Https(server, tls) => Wire::new(server.connect(&tls).await?),
                Way::Http { host, port } => {
                    let connected = timeout(CONNECT_TIMEOUT, connect(&host, port)).await;
                    let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
                    let connected = connected.unwrap_or_else(|_| Err(timed_out()));
                    Wire::new(connected.map_err(|error| ClientError::Unreachable {
                        endpoint: endpoint.to_string(),
                        problem: error.to_string(),
                        may_pass: may_pass(&error),
                    })?)
                }
            })
        })
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, with TLS or without, as the pool of hyper takes it.
pub struct Wire(TokioIo<Box<dyn Stream>>);

impl Wire {
    /// Over this stream.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(TokioIo::new(Box::new(stream)))
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }
}
