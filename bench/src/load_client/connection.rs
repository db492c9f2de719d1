//! One keep-alive connection of the load client: HTTP/1.1 over TLS 1.3 over TCP, a request at a
//! time.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::ConnectionState;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::{BenchError, Doing, Result};
use crate::load_client::content::Content;
use crate::load_client::response::{Expected, Response};
use crate::load_client::tls_records::{
    Direction, RECORD_MAX_BYTES, RECORD_PLAINTEXT_MAX_BYTES, Received,
};

/// What one system call may receive. Small enough to stay in the core's second-level cache, where
/// records are opened.
const RECEIVE_BYTES: usize = 256 * 1024;

/// What one system call sends of a body.
const RECORDS_A_SEND: usize = 8;

/// What a connection moves before those that share its thread have their turn: clients of their own
/// would not wait for each other.
const TURN_BYTES: u64 = 1024 * 1024;

/// What is asked of a server.
#[derive(Debug, Clone)]
pub struct Request {
    /// Everything before the body, down to the empty line.
    pub head: String,
    /// What follows it.
    pub body: Option<Content>,
    /// What must come back.
    pub expected: Expected,
}

impl Request {
    /// Its first line.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }
}

/// The receiving buffer that all connections of a thread share: between two system calls only the
/// beginning of a record is left in it, and that is put aside.
pub struct Scratch(RefCell<Vec<u8>>);

impl Default for Scratch {
    fn default() -> Self {
        Self(RefCell::new(vec![0; RECEIVE_BYTES + RECORD_MAX_BYTES]))
    }
}

/// A connection that has shaken hands.
pub struct Connection {
    stream: TcpStream,
    receiving: Direction,
    sending: Direction,
    /// The beginning of a record whose rest has not arrived.
    held: Vec<u8>,
    outgoing: Box<[u8]>,
    /// Bytes that have gone either way.
    moved_bytes: Rc<Cell<u64>>,
}

impl Connection {
    /// Connects and shakes hands.
    pub async fn open(address: SocketAddr, config: Arc<ClientConfig>) -> Result<Self> {
        let connecting = || format!("connecting to {address}");
        let mut stream = TcpStream::connect(address).await.doing(connecting)?;
        stream.set_nodelay(true).doing(connecting)?;
        let name = ServerName::from(address.ip());
        let tls = UnbufferedClientConnection::new(config, name)?;
        let (tls, held) = shake_hands(tls, &mut stream).await?;
        let (secrets, _) = tls.dangerous_into_kernel_connection()?;
        Ok(Self {
            stream,
            receiving: Direction::new(secrets.rx)?,
            sending: Direction::new(secrets.tx)?,
            held,
            outgoing: vec![0; RECORDS_A_SEND * RECORD_MAX_BYTES].into(),
            moved_bytes: Rc::default(),
        })
    }

    /// Counts what it moves from now on, without what TLS adds; gives the counter.
    pub fn counted_anew(&self) -> Rc<Cell<u64>> {
        self.moved_bytes.set(0);
        Rc::clone(&self.moved_bytes)
    }

    /// Sends a request and takes in its answer.
    pub async fn exchange(&mut self, request: &Request, scratch: &Scratch) -> Result<()> {
        self.send(request).await?;
        let mut response = Response::new(request.line(), request.expected);
        let mut turn_end = self.moved_bytes.get() + TURN_BYTES;
        loop {
            self.stream.readable().await.doing(|| "receiving".into())?;
            if self.receive(&mut response, scratch)? {
                return Ok(());
            }
            self.take_turns(&mut turn_end).await;
        }
    }

    /// The head has a record of its own, as with most clients, unless there is no body.
    async fn send(&mut self, request: &Request) -> Result<()> {
        let mut filled = 0;
        for piece in request.head.as_bytes().chunks(RECORD_PLAINTEXT_MAX_BYTES) {
            filled += self.sending.seal(piece, &mut self.outgoing[filled..])?;
        }
        let body = request.body.unwrap_or(Content::new(0, 0));
        let mut offset_bytes = 0;
        let mut turn_end = self.moved_bytes.get() + TURN_BYTES;
        loop {
            let before_bytes = offset_bytes;
            while offset_bytes < body.length_bytes
                && self.outgoing.len() - filled >= RECORD_MAX_BYTES
            {
                let piece = body.piece(offset_bytes, RECORD_PLAINTEXT_MAX_BYTES);
                filled += self.sending.seal(piece, &mut self.outgoing[filled..])?;
                offset_bytes += piece.len() as u64;
            }
            self.stream
                .write_all(&self.outgoing[..filled])
                .await
                .doing(|| "sending".into())?;
            filled = 0;
            self.moved(offset_bytes - before_bytes);
            if offset_bytes == body.length_bytes {
                return Ok(());
            }
            self.take_turns(&mut turn_end).await;
        }
    }

    async fn take_turns(&self, turn_end: &mut u64) {
        if self.moved_bytes.get() >= *turn_end {
            *turn_end = self.moved_bytes.get() + TURN_BYTES;
            tokio::task::yield_now().await;
        }
    }

    fn moved(&self, bytes: u64) {
        self.moved_bytes.set(self.moved_bytes.get() + bytes);
    }

    /// Takes in what the kernel holds. True: the answer is complete.
    fn receive(&mut self, response: &mut Response<'_>, scratch: &Scratch) -> Result<bool> {
        let mut scratch = scratch.0.borrow_mut();
        let held_bytes = self.held.len();
        scratch[..held_bytes].copy_from_slice(&self.held);
        let received_bytes = match self.stream.try_read(&mut scratch[held_bytes..]) {
            Ok(0) => return Err(BenchError::Closed),
            Ok(received_bytes) => received_bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error).doing(|| "receiving".into()),
        };
        let mut left = &mut scratch[..held_bytes + received_bytes];
        let mut complete = false;
        loop {
            let record_bytes = match self.receiving.open(left)? {
                Received::Incomplete => break,
                Received::Nothing { record_bytes } => record_bytes,
                Received::Data {
                    record_bytes,
                    plaintext,
                } => {
                    self.moved(plaintext.len() as u64);
                    complete |= response.receive(&left[plaintext])?;
                    record_bytes
                }
            };
            left = &mut left[record_bytes..];
        }
        self.held.clear();
        self.held.extend_from_slice(left);
        Ok(complete)
    }
}

/// Returns the connection, and what arrived behind the handshake.
async fn shake_hands(
    mut tls: UnbufferedClientConnection,
    stream: &mut TcpStream,
) -> Result<(UnbufferedClientConnection, Vec<u8>)> {
    let mut incoming = Vec::new();
    let mut outgoing = Vec::new();
    loop {
        let status = tls.process_tls_records(&mut incoming);
        let discard = status.discard;
        let mut blocked = false;
        let mut done = false;
        match status.state? {
            ConnectionState::EncodeTlsData(mut state) => {
                let start = outgoing.len();
                outgoing.resize(start + RECORD_MAX_BYTES, 0);
                let written = state.encode(&mut outgoing[start..]);
                let written = written.map_err(|_| BenchError::Record { what: "handshake" })?;
                outgoing.truncate(start + written);
            }
            ConnectionState::TransmitTlsData(state) => {
                stream
                    .write_all(&outgoing)
                    .await
                    .doing(|| "shaking hands".into())?;
                outgoing.clear();
                state.done();
            }
            ConnectionState::BlockedHandshake => blocked = true,
            ConnectionState::WriteTraffic(_) => done = true,
            _ => return Err(BenchError::Closed),
        }
        incoming.drain(..discard);
        if done {
            return Ok((tls, incoming));
        }
        if blocked
            && stream
                .read_buf(&mut incoming)
                .await
                .doing(|| "shaking hands".into())?
                == 0
        {
            return Err(BenchError::Closed);
        }
    }
}
