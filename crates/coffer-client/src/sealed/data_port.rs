//! Where a ticket is good, and connections to there.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};

use http::Uri;
use zeroize::Zeroizing;

use crate::limits::{CONNECT_TIMEOUT, TRANSFER_STANDSTILL};
use crate::sealed::error::SealedError;

/// A data port, and the path of one ticket there, which is as secret as the ticket.
pub(super) struct DataPort {
    host: String,
    port: u16,
    path: Zeroizing<String>,
}

impl DataPort {
    /// At a host, an address of IPv6 without brackets.
    pub(super) fn new(host: &str, port: u16, ticket: &str) -> Self {
        Self {
            host: host.to_owned(),
            port,
            path: Zeroizing::new(format!("/transfer/{ticket}")),
        }
    }

    /// At an `http://` URL.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        (uri.scheme_str() == Some("http")).then_some(())?;
        Some(Self {
            host: uri.host()?.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(80),
            path: Zeroizing::new(uri.path_and_query()?.as_str().to_owned()),
        })
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

    pub(super) fn connect(&self) -> Result<TcpStream, SealedError> {
        self.reach().map_err(|source| SealedError::Unreachable {
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
                    stream.set_read_timeout(Some(TRANSFER_STANDSTILL))?;
                    stream.set_write_timeout(Some(TRANSFER_STANDSTILL))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Whether a connection that nothing was asked on is as it was left: not ended, not spoken on.
pub(super) fn is_quiet(stream: &TcpStream) -> bool {
    let look = || {
        stream.set_nonblocking(true)?;
        let seen = stream.peek(&mut [0]);
        stream.set_nonblocking(false)?;
        seen
    };
    matches!(look(), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}
