//! Where a ticket is good, and connections to there.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;

use http::Uri;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use zeroize::Zeroizing;

use crate::https::{AUTHORITY_BY, has_odd_port, told};
use crate::limits::{CONNECT_TIMEOUT, TRANSFER_STANDSTILL, TRANSFER_TICKET_BYTES};
use crate::sealed::error::SealedError;

/// A data port, and the path of one ticket there, which is as secret as the ticket.
pub(super) struct DataPort {
    host: String,
    port: u16,
    path: Zeroizing<String>,
    pub(super) speaks_tls: bool,
}

impl DataPort {
    /// At a host, an address of IPv6 without brackets.
    pub(super) fn new(host: &str, port: u16, speaks_tls: bool, ticket: &str) -> Self {
        Self {
            host: host.to_owned(),
            port,
            speaks_tls,
            path: Zeroizing::new(format!("/transfer/{ticket}")),
        }
    }

    /// At an `http://` or `https://` URL.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let (speaks_tls, usual_port) = match uri.scheme_str()? {
            "http" => (false, 80),
            "https" => (true, 443),
            _ => return None,
        };
        if has_odd_port(&uri) {
            return None;
        }
        Some(Self {
            speaks_tls,
            host: uri.host()?.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(usual_port),
            path: Zeroizing::new(uri.path_and_query()?.as_str().to_owned()),
        })
    }

    /// The same with a ticket that there is none of.
    pub(super) fn without_ticket(&self) -> Self {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let ticket = "A".repeat(TRANSFER_TICKET_BYTES);
        Self {
            host: self.host.clone(),
            port: self.port,
            path: Zeroizing::new(format!("{folder}/{ticket}")),
            speaks_tls: self.speaks_tls,
        }
    }

    /// Host and port, as in a `Host` header.
    pub(super) fn address(&self) -> String {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }

    /// The head of a request.
    pub(super) fn request(&self, method: &str, content_length: Option<u64>) -> Zeroizing<String> {
        let mut head = Zeroizing::new(format!("{method} {} HTTP/1.1\r\n", *self.path));
        head.push_str(&format!("host: {}\r\n", self.address()));
        if let Some(bytes) = content_length {
            head.push_str(&format!("content-length: {bytes}\r\n"));
        }
        head.push_str("\r\n");
        head
    }

    /// Connects; where TLS is spoken, to a server that is the right one by `tls`.
    pub(super) fn connect(&self, tls: Option<&Arc<ClientConfig>>) -> Result<Wire, SealedError> {
        let connected = self.reach().and_then(|tcp| {
            let wire = match (self.speaks_tls, tls) {
                (false, _) => Wire::Plain(tcp),
                (true, Some(tls)) => Wire::Tls(Box::new(self.shake_hands(tcp, tls)?)),
                (true, None) => {
                    let problem = "it speaks TLS, and the service was asked without: nothing says \
                                   whom to trust";
                    return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
                }
            };
            let tcp = wire.tcp();
            tcp.set_read_timeout(Some(TRANSFER_STANDSTILL))?;
            tcp.set_write_timeout(Some(TRANSFER_STANDSTILL))?;
            Ok(wire)
        });
        connected.map_err(|source| SealedError::Unreachable {
            address: self.address(),
            source,
        })
    }

    fn reach(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
                    stream.set_write_timeout(Some(CONNECT_TIMEOUT))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn shake_hands(&self, mut tcp: TcpStream, tls: &Arc<ClientConfig>) -> io::Result<TlsWire> {
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(tls), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            let shaken = connection.complete_io(&mut tcp);
            shaken.map_err(|error| io::Error::new(error.kind(), told(&error, AUTHORITY_BY)))?;
        }
        Ok(TlsWire {
            stream: StreamOwned::new(connection, tcp),
            bytes: 0,
        })
    }
}

/// TLS, and how many bytes went through it, either way.
pub(super) struct TlsWire {
    stream: StreamOwned<ClientConnection, TcpStream>,
    bytes: u64,
}

/// A connection to a data port.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsWire>),
}

impl Wire {
    /// The socket of it.
    pub(super) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.stream.get_ref(),
        }
    }

    /// How many bytes went through TLS.
    pub(super) fn tls_bytes(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(tls) => tls.bytes,
        }
    }

    /// Whether a connection that nothing was asked on is as it was left: not ended, not spoken on.
    pub(super) fn is_quiet(&self) -> bool {
        let tcp = self.tcp();
        let look = || {
            tcp.set_nonblocking(true)?;
            let seen = tcp.peek(&mut [0]);
            tcp.set_nonblocking(false)?;
            seen
        };
        matches!(look(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Read for Wire {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(out),
            Self::Tls(tls) => {
                let count = tls.stream.read(out)?;
                tls.bytes += count as u64;
                Ok(count)
            }
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(bytes),
            Self::Tls(tls) => {
                let count = tls.stream.write(bytes)?;
                tls.bytes += count as u64;
                Ok(count)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(tls) => tls.stream.flush(),
        }
    }
}
