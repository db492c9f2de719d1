//! A client: it asks and stores, and believes nothing that it has not compared.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::cipher::algorithm::TAG_BYTES;
use crate::error::{Doing, LabError, Result};
use crate::server::model::Model;
use crate::server::protocol::{
    DONE, HEAD_BYTES, PIECE_BYTES, Request, Wish, content, opened_piece, sealed_bytes,
};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a server.
pub(super) trait Client: Send {
    /// Asks for the first `bytes` bytes of [`content`], and takes nothing else for them.
    fn ask(&mut self, bytes: usize) -> Result<()>;

    /// Has the first `bytes` bytes of [`content`] stored at a place.
    fn store(&mut self, bytes: usize, place: usize) -> Result<()>;

    /// Sees that they are there, and lie there as they must.
    fn compare_stored(&mut self, bytes: usize, place: usize) -> Result<()>;
}

/// A connection that sends at once, and does not wait for ever.
pub(super) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let doing = || format!("connecting to {address}");
    let stream = TcpStream::connect(address).doing(doing)?;
    stream.set_nodelay(true).doing(doing)?;
    stream.set_read_timeout(Some(PATIENCE)).doing(doing)?;
    Ok(stream)
}

/// What came is what was asked for.
pub(super) fn compare(expected: &[u8], found: &[u8]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(wrong("other bytes came than were asked for"))
}

pub(super) fn wrong(what: &str) -> LabError {
    LabError::Data {
        file: "an answer".into(),
        what: what.into(),
    }
}

/// Speaks the file mover's protocol.
pub(super) struct MoverClient {
    model: Model,
    stream: TcpStream,
    piece: Vec<u8>,
    /// The last that was stored, with room before it for what is said of it: one message, which
    /// comes whole.
    message: Vec<u8>,
}

impl MoverClient {
    pub(super) fn connect(model: Model, address: SocketAddr) -> Result<Self> {
        Ok(Self {
            model,
            stream: connect(address)?,
            piece: vec![0; PIECE_BYTES + TAG_BYTES],
            message: Vec::new(),
        })
    }

    /// Keeps nothing of what was stored.
    pub(super) fn forget(&mut self) -> Result<()> {
        self.say(Request::new(Wish::Forget, 0, 0))?;
        self.done()
    }

    fn say(&mut self, request: Request) -> Result<()> {
        let said = self.stream.write_all(&request.head());
        said.doing(|| "asking".into())
    }

    fn done(&mut self) -> Result<()> {
        let mut said = [0];
        let read = self.stream.read_exact(&mut said);
        read.doing(|| "waiting for the answer".into())?;
        compare(&[DONE], &said)
    }

    /// Takes what comes of a request: where the server encrypts, nothing but what opens.
    fn take(&mut self, request: Request) -> Result<()> {
        let encrypts = self.model.encrypts();
        for (number, expected) in content(request.bytes).chunks(PIECE_BYTES).enumerate() {
            let piece = &mut self.piece[..sealed_bytes(expected.len(), encrypts)];
            self.stream.read_exact(piece).doing(|| "receiving".into())?;
            let plain = if encrypts {
                opened_piece(request.place, number, piece).ok_or(LabError::Tag)?
            } else {
                piece
            };
            compare(expected, plain)?;
        }
        Ok(())
    }
}

impl Client for MoverClient {
    fn ask(&mut self, bytes: usize) -> Result<()> {
        let request = Request::new(Wish::Send, bytes, 0);
        self.say(request)?;
        self.take(request)
    }

    fn store(&mut self, bytes: usize, place: usize) -> Result<()> {
        let request = Request::new(Wish::Store, bytes, place);
        if self.message.len() != HEAD_BYTES + bytes {
            self.message = [&[0; HEAD_BYTES], content(bytes)].concat();
        }
        self.message[..HEAD_BYTES].copy_from_slice(&request.head());
        let sent = self.stream.write_all(&self.message);
        sent.doing(|| "storing".into())?;
        self.done()
    }

    fn compare_stored(&mut self, bytes: usize, place: usize) -> Result<()> {
        let request = Request::new(Wish::GiveBack, bytes, place);
        self.say(request)?;
        // What was stored as it came does not open.
        self.take(request)
    }
}
