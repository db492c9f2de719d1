//! A client: it asks, takes the answer, opens and compares it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::cipher::algorithm::TAG_BYTES;
use crate::error::{Doing, LabError, Result};
use crate::server::model::Model;
use crate::server::protocol::{PIECE_BYTES, content, opened_piece};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to a server.
pub(super) trait Client: Send {
    /// Asks for the first `bytes` bytes of [`content`], and takes nothing else for them.
    fn ask(&mut self, bytes: u32) -> Result<()>;
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
    Err(LabError::Data {
        file: "an answer".into(),
        what: "other bytes came than were asked for".into(),
    })
}

/// Speaks the file mover's protocol.
pub(super) struct MoverClient {
    model: Model,
    stream: TcpStream,
    piece: Vec<u8>,
}

impl MoverClient {
    pub(super) fn connect(model: Model, address: SocketAddr) -> Result<Self> {
        Ok(Self {
            model,
            stream: connect(address)?,
            piece: vec![0; PIECE_BYTES + TAG_BYTES],
        })
    }
}

impl Client for MoverClient {
    fn ask(&mut self, bytes: u32) -> Result<()> {
        self.stream
            .write_all(&bytes.to_le_bytes())
            .doing(|| "asking".into())?;
        let tag_bytes = if self.model.encrypts() { TAG_BYTES } else { 0 };
        for (number, expected) in content(bytes as usize).chunks(PIECE_BYTES).enumerate() {
            let piece = &mut self.piece[..expected.len() + tag_bytes];
            self.stream.read_exact(piece).doing(|| "receiving".into())?;
            let plain = if self.model.encrypts() {
                opened_piece(number, piece).ok_or(LabError::Tag)?
            } else {
                piece
            };
            compare(expected, plain)?;
        }
        Ok(())
    }
}
