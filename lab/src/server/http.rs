//! As much of HTTP/1.1 over TLS as a client of S3 needs: one request at a time on a connection that
//! is kept.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use httparse::Status;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::error::{Doing, LabError, Result};
use crate::server::client::{compare, connect};

/// The most of a head, and of what is received at a time.
const BUFFER_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// The most of an unwelcome answer that is shown.
const COMPLAINT_BYTES: usize = 300;

pub(super) fn failed(what: impl ToString) -> LabError {
    LabError::Program {
        command: "coffer serve".into(),
        what: what.to_string(),
    }
}

pub(super) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects, and shakes hands.
pub(super) fn open(
    address: SocketAddr,
    tls: &Arc<ClientConfig>,
) -> Result<HttpConnection<TlsStream>> {
    let mut stream = connect(address)?;
    let name = ServerName::from(address.ip());
    let mut connection = ClientConnection::new(tls.clone(), name).map_err(failed)?;
    while connection.is_handshaking() {
        let greeted = connection.complete_io(&mut stream);
        greeted.doing(|| "greeting the server".into())?;
    }
    let stream = StreamOwned::new(connection, stream);
    Ok(HttpConnection::new(address.to_string(), stream))
}

/// HTTP/1.1, one request at a time.
pub(super) struct HttpConnection<S> {
    host: String,
    stream: S,
    buffer: Vec<u8>,
}

impl<S: Read + Write> HttpConnection<S> {
    fn new(host: String, stream: S) -> Self {
        Self {
            host,
            stream,
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// `headers`: lines with their ends.
    pub(super) fn ask(&mut self, method: &str, target: &str, headers: &str) -> Result<()> {
        let host = &self.host;
        let head = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
        let sent = self.stream.write_all(head.as_bytes());
        let sent = sent.and_then(|()| self.stream.flush());
        sent.doing(|| "asking".into())
    }

    /// The same with a body: the same bytes, so many times.
    pub(super) fn send(
        &mut self,
        method: &str,
        target: &str,
        body: &[u8],
        times: usize,
    ) -> Result<()> {
        let length = format!("content-length: {}\r\n", body.len() * times);
        self.ask(method, target, &length)?;
        for _ in 0..times {
            let sent = self.stream.write_all(body);
            sent.doing(|| "sending a body".into())?;
        }
        self.stream.flush().doing(|| "sending a body".into())
    }

    /// Takes an answer, which must have this status and this body.
    pub(super) fn answer(&mut self, status: u16, body: &[u8]) -> Result<()> {
        let mut filled = 0;
        let head = loop {
            if let Some(head) = Head::parse(&self.buffer[..filled])? {
                break head;
            }
            if filled == self.buffer.len() {
                return Err(failed("the head of an answer has no end"));
            }
            filled += self.receive(filled)?;
        };
        let begun = &self.buffer[head.bytes..filled];
        if head.status != status || head.body_bytes != body.len() {
            let said = &begun[..begun.len().min(COMPLAINT_BYTES)];
            return Err(failed(format!(
                "status {} with {} B instead of {status} with {} B: {}",
                head.status,
                head.body_bytes,
                body.len(),
                String::from_utf8_lossy(said)
            )));
        }
        let mut expected = body;
        let (mut from, mut to) = (head.bytes, filled);
        loop {
            let came = to - from;
            if came > expected.len() {
                return Err(failed("more came than an answer has"));
            }
            compare(&expected[..came], &self.buffer[from..to])?;
            expected = &expected[came..];
            if expected.is_empty() {
                return Ok(());
            }
            (from, to) = (0, self.receive(0)?);
        }
    }

    /// At least one byte, into the buffer's rest.
    fn receive(&mut self, filled: usize) -> Result<usize> {
        let room = &mut self.buffer[filled..];
        match self.stream.read(room).doing(|| "receiving".into())? {
            0 => Err(failed("it hung up in the middle of an answer")),
            count => Ok(count),
        }
    }
}

/// The head of an answer.
struct Head {
    bytes: usize,
    status: u16,
    body_bytes: usize,
}

impl Head {
    /// None while its end has not come.
    fn parse(received: &[u8]) -> Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut answer = httparse::Response::new(&mut headers);
        let Status::Complete(bytes) = answer.parse(received).map_err(failed)? else {
            return Ok(None);
        };
        let length = answer
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse().ok());
        Ok(Some(Self {
            bytes,
            status: answer.code.unwrap_or(0),
            body_bytes: length.ok_or_else(|| failed("an answer without a length"))?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::protocol::content;
    use std::io::Cursor;

    fn answered(head: &str, body: &[u8]) -> Result<()> {
        let stream = Cursor::new([head.as_bytes(), body].concat());
        HttpConnection::new(String::new(), stream).answer(206, content(100_000))
    }

    #[test]
    fn an_answer_is_compared_to_the_last_byte() {
        let head = "HTTP/1.1 206 Partial Content\r\ncontent-length: 100000\r\n\r\n";
        answered(head, content(100_000)).unwrap();
        let mut changed = content(100_000).to_vec();
        changed[99_999] ^= 1;
        let short = "HTTP/1.1 206 Partial Content\r\ncontent-length: 99999\r\n\r\n";
        let refused = "HTTP/1.1 403 Forbidden\r\ncontent-length: 6\r\n\r\n";
        for (head, body, said) in [
            (head, &changed[..], "other bytes"),
            (head, content(99_999), "hung up"),
            (
                short,
                content(99_999),
                "99999 B instead of 206 with 100000 B",
            ),
            (refused, b"denied", "403 with 6 B"),
            (refused, b"denied", "denied"),
        ] {
            let error = answered(head, body).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
