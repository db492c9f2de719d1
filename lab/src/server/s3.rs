//! A coffer server, asked for ranges of one object: HTTP/1.1 over TLS, connections kept alive.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coffer_measure::tls::client_trusting;
use httparse::Status;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rusty_s3::actions::{CreateBucket, GetObject, PutObject};
use rusty_s3::{Bucket, S3Action, UrlStyle};

use crate::error::{Doing, LabError, Result};
use crate::host::coffer_server::{CofferServer, REGION};
use crate::server::client::{Client, compare, connect};
use crate::server::protocol::{ANSWER_BYTES_MAX, content};

/// How long a signed request may be repeated.
const SIGNED_FOR: Duration = Duration::from_secs(6 * 3600);

/// The most of a head, and of what is received at a time.
const BUFFER_BYTES: usize = 64 << 10;
const HEADERS_MAX: usize = 64;

/// The most of an unwelcome answer that is shown.
const COMPLAINT_BYTES: usize = 300;

/// A server that holds the content as an object.
pub(super) struct S3 {
    pub(super) server: CofferServer,
    tls: Arc<ClientConfig>,
    /// Path and signature of the request for the object: the same for all, since the range is not
    /// signed. The server checks it each time.
    target: String,
}

fn failed(what: impl ToString) -> LabError {
    LabError::Program {
        command: "coffer serve".into(),
        what: what.to_string(),
    }
}

impl S3 {
    /// Starts a server on an empty data folder, and puts the content there.
    pub(super) fn start(program: &Path, data: &Path) -> Result<Self> {
        let server = CofferServer::start(program, data)?;
        let tls = Arc::new(client_trusting(&server.authority())?);
        let endpoint = format!("https://{}", server.address);
        let bucket = endpoint.parse().map_err(failed)?;
        let bucket = Bucket::new(bucket, UrlStyle::Path, "lab", REGION).map_err(failed)?;
        let key = server.credentials()?;
        let made = CreateBucket::new(&bucket, &key).sign(SIGNED_FOR);
        let put = PutObject::new(&bucket, Some(&key), "content").sign(SIGNED_FOR);
        let get = GetObject::new(&bucket, Some(&key), "content").sign(SIGNED_FOR);
        // The first line of a request names what follows the host.
        let target = |url: &str| url.trim_start_matches(&endpoint).to_owned();
        let mut connection = open(server.address, &tls)?;
        connection.send("PUT", &target(made.as_str()), "content-length: 0\r\n", &[])?;
        connection.answer(200, &[])?;
        let length = format!("content-length: {ANSWER_BYTES_MAX}\r\n");
        connection.send(
            "PUT",
            &target(put.as_str()),
            &length,
            content(ANSWER_BYTES_MAX),
        )?;
        connection.answer(200, &[])?;
        Ok(Self {
            server,
            tls,
            target: target(get.as_str()),
        })
    }

    pub(super) fn connect(&self) -> Result<S3Client> {
        Ok(S3Client {
            connection: open(self.server.address, &self.tls)?,
            target: self.target.clone(),
        })
    }
}

pub(super) struct S3Client {
    connection: HttpConnection<TlsStream>,
    target: String,
}

impl Client for S3Client {
    fn ask(&mut self, bytes: u32) -> Result<()> {
        let range = format!("range: bytes=0-{}\r\n", bytes - 1);
        self.connection.send("GET", &self.target, &range, &[])?;
        self.connection.answer(206, content(bytes as usize))
    }
}

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects, and shakes hands.
fn open(address: SocketAddr, tls: &Arc<ClientConfig>) -> Result<HttpConnection<TlsStream>> {
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
struct HttpConnection<S> {
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
    fn send(&mut self, method: &str, target: &str, headers: &str, body: &[u8]) -> Result<()> {
        let host = &self.host;
        let head = format!("{method} {target} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
        let sent = self.stream.write_all(head.as_bytes());
        let sent = sent.and_then(|()| self.stream.write_all(body));
        let sent = sent.and_then(|()| self.stream.flush());
        sent.doing(|| "asking".into())
    }

    /// Takes an answer, which must have this status and this body.
    fn answer(&mut self, status: u16, body: &[u8]) -> Result<()> {
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
