//! A data port of the tests, and what its server would say over HTTPS.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{BlobId, BucketId, Context, SecretKey, seal};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};

use crate::sealed::head::parse;

pub(super) const TICKET: &str = "0123456789012345678901234567890123456789-_A";
pub(super) const CHUNK: u64 = CHUNK_BYTES as u64;

/// A blob, sealed.
pub(super) struct Blob {
    pub(super) key: SecretKey,
    pub(super) context: Context,
    pub(super) plain: Vec<u8>,
    pub(super) message: Vec<u8>,
}

impl Blob {
    pub(super) fn of(bytes: u64, seed: u8) -> Self {
        let plain: Vec<u8> = (0..bytes).map(|n| (n * 31 / 7) as u8 ^ seed).collect();
        let key = SecretKey::generate();
        let context = Context::blob(BucketId::random(), BlobId::random());
        Self {
            message: seal(&key, &context, &plain),
            key,
            context,
            plain,
        }
    }

    /// A segment for these bytes of the blob, and the sealed bytes of it.
    pub(super) fn segment(&self, from: u64, to: u64) -> (Value, Vec<u8>) {
        let (first, all) = (from / CHUNK, self.plain.len() as u64);
        let is_last = to == all || to > all / CHUNK * CHUNK;
        let start = HEADER_BYTES + first as usize * SEALED_CHUNK_BYTES;
        let end = if is_last {
            self.message.len()
        } else {
            HEADER_BYTES + to.div_ceil(CHUNK) as usize * SEALED_CHUNK_BYTES
        };
        let said = json!({
            "key": STANDARD.encode(self.key.expose()),
            "context": STANDARD.encode(self.context.as_bytes()),
            "header": STANDARD.encode(&self.message[..HEADER_BYTES]),
            "first_chunk": first,
            "sealed_bytes": end - start,
            "is_last": is_last,
            "skip": from % CHUNK,
            "bytes": to - from,
        });
        (said, self.message[start..end].to_vec())
    }
}

/// The JSON of an offer.
pub(super) fn offer(port: u16, range: [u64; 2], segments: &[(Value, Vec<u8>)]) -> Value {
    let sealed: usize = segments.iter().map(|(_, sealed)| sealed.len()).sum();
    let said: Vec<&Value> = segments.iter().map(|(said, _)| said).collect();
    json!({
        "version": 1, "ticket": TICKET, "port": port, "expires_ms": 60000,
        "range": range, "bytes": sealed, "segments": said,
    })
}

/// Gives the requests that came, and over how many connections.
pub(super) type Answering = JoinHandle<(Vec<Asked>, usize)>;

/// Answers each request, on one connection after the other, with the next of these, and returns
/// what each request's head and body were, and how many connections there were.
pub(super) fn port_that_says(answers: Vec<Vec<u8>>) -> (u16, Answering) {
    port_behind(answers, Ok)
}

/// The same by TLS, and the settings of a client that trusts it.
pub(super) fn port_that_says_by_tls(answers: Vec<Vec<u8>>) -> (u16, Answering, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .unwrap();
    let server = Arc::new(server);
    let (port, answering) = port_behind(answers, move |tcp| {
        Ok(StreamOwned::new(
            ServerConnection::new(server.clone())?,
            tcp,
        ))
    });
    (port, answering, Arc::new(client))
}

fn port_behind<S: Read + Write>(
    answers: Vec<Vec<u8>>,
    accept: impl Fn(TcpStream) -> Result<S, rustls::Error> + Send + 'static,
) -> (u16, Answering) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = thread::spawn(move || {
        let (mut asked, mut connections) = (Vec::new(), 0);
        let mut answers = answers.into_iter().peekable();
        while answers.peek().is_some() {
            let mut stream = accept(listener.accept().unwrap().0).unwrap();
            connections += 1;
            while answers.peek().is_some()
                && let Some(request) = Asked::read(&mut stream)
            {
                asked.push(request);
                stream.write_all(&answers.next().unwrap()).unwrap();
            }
        }
        (asked, connections)
    });
    (port, answering)
}

/// A request that came.
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) body: Vec<u8>,
}

impl Asked {
    fn read(stream: &mut impl Read) -> Option<Self> {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let text = String::from_utf8(head).unwrap();
        let length = text.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).ok()?;
        let line = text.lines().next()?.to_owned();
        Some(Self { line, body })
    }
}

/// An answer of HTTP with this body.
pub(super) fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    assert!(parse(head.as_bytes()).unwrap().is_some());
    [head.as_bytes(), body].concat()
}
