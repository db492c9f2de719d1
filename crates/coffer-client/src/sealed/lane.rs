//! What one transfer after the other uses: a connection that stays, and two buffers.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

use coffer_seal::limits::{CHUNK_BYTES, SEALED_CHUNK_BYTES};
use rustls::ClientConfig;
use zeroize::Zeroizing;

use crate::limits::{TRANSFER_BATCH_CHUNKS, TRANSFER_CHECK, TRANSFER_TLS_BYTES};
use crate::sealed::data_port::{DataPort, Wire};
use crate::sealed::error::SealedError;
use crate::sealed::head::read_head;

/// Moves transfers, one at a time. It keeps its connection for the next, and its buffers: 1 MiB.
pub struct Lane {
    pub(super) sealed: Vec<u8>,
    pub(super) plain: Zeroizing<Vec<u8>>,
    idle: Option<(String, Wire)>,
    tls: Option<Arc<ClientConfig>>,
    tls_bytes_max: u64,
    checks: bool,
}

impl Default for Lane {
    fn default() -> Self {
        Self::new()
    }
}

impl Lane {
    /// A lane without a connection yet.
    pub fn new() -> Self {
        Self {
            sealed: vec![0; TRANSFER_BATCH_CHUNKS * SEALED_CHUNK_BYTES],
            plain: Zeroizing::new(vec![0; TRANSFER_BATCH_CHUNKS * CHUNK_BYTES]),
            idle: None,
            tls: None,
            tls_bytes_max: TRANSFER_TLS_BYTES,
            checks: false,
        }
    }

    /// A lane that goes by TLS as well, to servers that this trusts.
    pub fn trusting(tls: Option<Arc<ClientConfig>>) -> Self {
        Self { tls, ..Self::new() }
    }

    /// The same, which asks first whether what takes connections is a data port.
    #[must_use]
    pub fn checking(self) -> Self {
        Self {
            checks: true,
            ..self
        }
    }

    /// Sends the head of a request, on the connection of before if that still stands.
    pub(super) fn begin(
        &mut self,
        data_port: &DataPort,
        head: &str,
        of: u64,
    ) -> Result<Wire, SealedError> {
        let address = data_port.address();
        let idle = self.idle.take().filter(|(to, wire)| {
            let speaks_tls = matches!(wire, Wire::Tls(_));
            *to == address && speaks_tls == data_port.speaks_tls && wire.is_quiet()
        });
        let mut stream = match idle {
            Some((_, stream)) => stream,
            None => {
                if self.checks {
                    self.check(data_port)?;
                    self.checks = false;
                }
                data_port.connect(self.tls.as_ref())?
            }
        };
        match stream.write_all(head.as_bytes()) {
            Ok(()) => Ok(stream),
            Err(source) => Err(cut(address, 0, of, source)),
        }
    }

    /// Whether a data port is there: it says at once that it does not know a ticket.
    fn check(&self, data_port: &DataPort) -> Result<(), SealedError> {
        let request = data_port.without_ticket().request("GET", None);
        let mut problem = "";
        // What a network alters or breaks once shows nothing.
        for _ in 0..2 {
            let mut stream = data_port.connect(self.tls.as_ref())?;
            problem = match status(&mut stream, &request) {
                Ok(404) => return Ok(()),
                Ok(_) => "it does not answer as a data port does",
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => "it answers nothing",
                    ErrorKind::InvalidData => "what it answers is not HTTP",
                    _ => "it ends connections",
                },
            };
        }
        Err(SealedError::NoDataPort {
            address: data_port.address(),
            problem,
        })
    }

    /// Keeps a connection on which everything was read, unless its keys have served long enough.
    pub(super) fn keep(&mut self, address: String, stream: Wire) {
        if stream.tls_bytes() < self.tls_bytes_max {
            self.idle = Some((address, stream));
        }
    }

    /// The same, whose connections by TLS last for fewer bytes.
    #[cfg(test)]
    pub(super) fn renewing_after(self, tls_bytes_max: u64) -> Self {
        Self {
            tls_bytes_max,
            ..self
        }
    }
}

/// What a request is answered with, soon.
fn status(stream: &mut Wire, request: &str) -> io::Result<u16> {
    stream.tcp().set_read_timeout(Some(TRANSFER_CHECK))?;
    stream.write_all(request.as_bytes())?;
    Ok(read_head(stream)?.0.status)
}

/// A break, told in plain words where it is one of the usual ones.
pub(super) fn cut(address: String, done: u64, of: u64, source: io::Error) -> SealedError {
    let told = |text: &str| io::Error::new(source.kind(), text);
    let source = match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => told("nothing moved any more"),
        io::ErrorKind::UnexpectedEof => told("the connection ended"),
        _ => source,
    };
    SealedError::Cut {
        address,
        done,
        of,
        source,
    }
}
