//! The client's side: takes what comes, opens it where that is its part, and compares it.

use std::io::{Read, Write};
use std::net::TcpStream;

use coffer_seal::Opener;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use rustls::{ClientConnection, StreamOwned};

use crate::cipher::open_ssl_decrypting;
use crate::error::{Doing, LabError, Result};
use crate::sendfile::http;
use crate::sendfile::way::{Files, Keys, RECORD_BYTES, Way};
use coffer_measure::tls::Tls;

const TAG_BYTES: usize = 16;

enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// One connection.
pub(super) struct Client {
    way: Way,
    connection: Connection,
    buffer: Vec<u8>,
    /// What has come already, behind the head of an answer.
    ahead: Vec<u8>,
}

fn failed(what: impl ToString) -> LabError {
    LabError::Cipher {
        contender: "the client".into(),
        what: what.to_string(),
    }
}

impl Client {
    /// Greets the server, where TLS wants it.
    pub(super) fn connect(way: Way, mut stream: TcpStream, tls: &Tls) -> Result<Self> {
        let connection = match way {
            Way::Tls | Way::SealedTls | Way::Https => {
                let connection = ClientConnection::new(tls.client.clone(), tls.name.clone());
                let mut connection = connection.map_err(failed)?;
                while connection.is_handshaking() {
                    let greeted = connection.complete_io(&mut stream);
                    greeted.doing(|| "greeting the server".into())?;
                }
                Connection::Tls(Box::new(StreamOwned::new(connection, stream)))
            }
            _ => Connection::Plain(stream),
        };
        Ok(Self {
            way,
            connection,
            buffer: vec![0; 64 << 10],
            ahead: Vec::new(),
        })
    }

    /// Asks for the file, takes it and compares it.
    pub(super) fn fetch(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let question = if self.way.speaks_http() {
            http::QUESTION
        } else {
            b"?"
        };
        let asked = match &mut self.connection {
            Connection::Plain(stream) => stream.write_all(question),
            Connection::Tls(stream) => stream.write_all(question).and_then(|()| stream.flush()),
        };
        asked.doing(|| "asking".into())?;
        if self.way.speaks_http() {
            let (announced, begun) = match &mut self.connection {
                Connection::Plain(stream) => http::take_head(stream),
                Connection::Tls(stream) => http::take_head(stream),
            }?;
            self.ahead = begun;
            if announced != files.bytes {
                return Err(failed("it announces another length"));
            }
        }
        match self.way {
            way if way.arrives_counter_encrypted() => self.decrypt_counter(files, keys),
            Way::Gcm => self.decrypt(files, keys),
            Way::SealedSendFile => self.open_sealed(files, keys),
            _ => self.take(files),
        }
    }

    fn read_exact(&mut self, count: usize) -> Result<()> {
        // What came with a head is taken first.
        let ahead = self.ahead.len().min(count);
        for (room, byte) in self.buffer.iter_mut().zip(self.ahead.drain(..ahead)) {
            *room = byte;
        }
        let room = &mut self.buffer[ahead..count];
        let read = match &mut self.connection {
            Connection::Plain(stream) => stream.read_exact(room),
            Connection::Tls(stream) => stream.read_exact(room),
        };
        read.doing(|| "receiving".into())
    }

    fn take(&mut self, files: &Files) -> Result<()> {
        for expected in files.content.chunks(self.buffer.len()) {
            self.read_exact(expected.len())?;
            compare(expected, &self.buffer[..expected.len()])?;
        }
        Ok(())
    }

    fn decrypt(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        for (number, expected) in files.content.chunks(RECORD_BYTES).enumerate() {
            let count = expected.len() + TAG_BYTES;
            self.read_exact(count)?;
            compare(
                expected,
                keys.decrypt(number as u64, &mut self.buffer[..count])?,
            )?;
        }
        Ok(())
    }

    fn decrypt_counter(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let mut opened = open_ssl_decrypting(&*keys.counter, &keys.counter_iv)?;
        for expected in files.content.chunks(self.buffer.len()) {
            self.read_exact(expected.len())?;
            let piece = &mut self.buffer[..expected.len()];
            opened(piece)?;
            compare(expected, piece)?;
        }
        Ok(())
    }

    fn open_sealed(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        self.read_exact(HEADER_BYTES)?;
        let header = self
            .buffer
            .first_chunk()
            .ok_or_else(|| failed("no header"))?;
        let opener = Opener::new(&keys.seal, &keys.context, header, files.sealed_bytes);
        let opener = opener.map_err(failed)?;
        let mut plain = [0; CHUNK_BYTES];
        let mut rest = &files.content[..];
        for index in 0..opener.chunk_count() {
            let range = opener.chunk_range(index);
            let count = usize::try_from(range.end - range.start).map_err(failed)?;
            self.read_exact(count.min(SEALED_CHUNK_BYTES))?;
            let opened = opener.open_chunk(index, &self.buffer[..count], &mut plain);
            let opened = opened.map_err(failed)?;
            let (expected, later) = rest.split_at(opened);
            compare(expected, &plain[..opened])?;
            rest = later;
        }
        Ok(())
    }
}

fn compare(expected: &[u8], found: &[u8]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(LabError::Data {
        file: "a transfer".into(),
        what: "other bytes arrived than were sent".into(),
    })
}
