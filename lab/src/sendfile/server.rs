//! The server's side: what is measured.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use coffer_seal::Opener;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use rustls::{ServerConnection, StreamOwned};

use crate::cipher::AfAlgOperation;
use crate::error::{Doing, LabError, Result};
use crate::sendfile::http;
use crate::sendfile::spliced::Splicer;
use crate::sendfile::way::{Files, Keys, READ_BYTES, RECORD_BYTES, Way};
use coffer_measure::tls::Tls;

/// Sealed chunks that are read at a time.
const CHUNKS_AT_ONCE: usize = READ_BYTES / CHUNK_BYTES;

/// What AF_ALG takes at a time without waiting until some of it is fetched.
const DEVICE_BYTES: usize = 64 << 10;

/// Room for them, and for the header before the first.
const SEALED_BYTES: usize = HEADER_BYTES + CHUNKS_AT_ONCE * SEALED_CHUNK_BYTES;

enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
    Spliced(TcpStream, Splicer),
    Device(TcpStream, AfAlgOperation),
}

/// One connection.
pub(super) struct Server {
    way: Way,
    connection: Connection,
    /// What was read; made once, so that no transfer pays for it.
    buffer: Vec<u8>,
    /// What was opened, when files are sealed.
    plain: Vec<u8>,
}

fn failed(what: impl ToString) -> LabError {
    LabError::Cipher {
        contender: "the server".into(),
        what: what.to_string(),
    }
}

impl Server {
    /// Greets the client, where TLS wants it.
    pub(super) fn connect(way: Way, stream: TcpStream, tls: &Tls, keys: &Keys) -> Result<Self> {
        let connection = match way {
            Way::Tls | Way::SealedTls | Way::Https => {
                let connection = ServerConnection::new(tls.server.clone()).map_err(failed)?;
                let mut stream = StreamOwned::new(connection, stream);
                while stream.conn.is_handshaking() {
                    let greeted = stream.conn.complete_io(&mut stream.sock);
                    greeted.doing(|| "greeting the client".into())?;
                }
                // All that was read becomes records before they are written: one system call.
                stream.conn.set_buffer_limit(Some(2 * READ_BYTES));
                Connection::Tls(Box::new(stream))
            }
            Way::AfAlg | Way::EncryptingSplice => {
                Connection::Spliced(stream, Splicer::new(&keys.counter)?)
            }
            Way::Device => {
                Connection::Device(stream, AfAlgOperation::new("ctr(aes)", &*keys.counter)?)
            }
            _ => Connection::Plain(stream),
        };
        Ok(Self {
            way,
            connection,
            buffer: vec![0; SEALED_BYTES],
            plain: vec![0; READ_BYTES],
        })
    }

    /// Waits for a question and answers it.
    pub(super) fn serve(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        if self.way.speaks_http() {
            http::take_question(self.connection.stream())?;
            let head = http::head_of_answer(files.bytes);
            self.connection.send(head.as_bytes())?;
        } else {
            let question = self.connection.stream().read_exact(&mut [0]);
            question.doing(|| "waiting for a question".into())?;
        }
        match self.way {
            Way::SendFile | Way::KernelTls => self.send_file(&files.plain, files.bytes),
            Way::SealedSendFile => self.send_file(&files.sealed, files.sealed_bytes),
            Way::ReadWrite | Way::Tls | Way::Http | Way::Https => self.copy(files),
            Way::Gcm => self.encrypt(files, keys),
            Way::SealedTls => self.open_sealed(files, keys),
            Way::AfAlg | Way::EncryptingSplice => self.splice(files, keys),
            Way::Device => self.through_device(files, keys),
        }
    }

    fn send_file(&mut self, path: &Path, bytes: u64) -> Result<()> {
        let file = open(path)?;
        let Connection::Plain(stream) = &self.connection else {
            return Err(failed("sendfile needs a plain socket"));
        };
        let mut left = usize::try_from(bytes).map_err(failed)?;
        while left > 0 {
            let sent = rustix::fs::sendfile(stream, &file, None, left);
            match sent.doing(|| "sendfile".into())? {
                0 => return Err(failed("the file is shorter than it was")),
                count => left -= count,
            }
        }
        Ok(())
    }

    fn splice(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let Connection::Spliced(stream, splicer) = &self.connection else {
            return Err(failed("no pipes to splice through"));
        };
        let (bytes, iv) = (files.bytes, &keys.counter_iv);
        if self.way == Way::AfAlg {
            splicer.send_decrypted(&open(&files.counter_encrypted)?, bytes, iv, stream)
        } else {
            splicer.send_encrypted(&open(&files.plain)?, bytes, iv, stream)
        }
    }

    fn through_device(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let Connection::Device(stream, device) = &mut self.connection else {
            return Err(failed("no device to encrypt with"));
        };
        let mut file = open(&files.plain)?;
        device.begin_encrypting(&keys.counter_iv)?;
        let mut left = files.bytes;
        for piece in pieces(files.bytes, READ_BYTES) {
            let piece = &mut self.buffer[..piece];
            file.read_exact(piece).doing(|| "reading the file".into())?;
            for part in piece.chunks_mut(DEVICE_BYTES) {
                left -= part.len() as u64;
                device.go_on(part, left == 0)?;
            }
            stream.write_all(piece).doing(|| "sending".into())?;
        }
        Ok(())
    }

    fn copy(&mut self, files: &Files) -> Result<()> {
        let mut file = open(&files.plain)?;
        for piece in pieces(files.bytes, READ_BYTES) {
            let piece = &mut self.buffer[..piece];
            file.read_exact(piece).doing(|| "reading the file".into())?;
            self.connection.send(piece)?;
        }
        self.connection.flush()
    }

    fn encrypt(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let mut file = open(&files.plain)?;
        let mut number = 0;
        for piece in pieces(files.bytes, READ_BYTES) {
            let piece = &mut self.buffer[..piece];
            file.read_exact(piece).doing(|| "reading the file".into())?;
            let mut tags = Vec::with_capacity(READ_BYTES / RECORD_BYTES);
            for record in piece.chunks_mut(RECORD_BYTES) {
                tags.push(keys.encrypt(number, record)?);
                number += 1;
            }
            let records = piece.chunks(RECORD_BYTES).zip(&tags);
            let parts = records.flat_map(|(record, tag)| [record, tag.as_ref()]);
            self.connection.send_parts(parts)?;
        }
        Ok(())
    }

    fn open_sealed(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let mut file = open(&files.sealed)?;
        let mut left = usize::try_from(files.sealed_bytes).map_err(failed)?;
        let (mut opener, mut index) = (None, 0);
        while left > 0 {
            // Only the first has the header before it.
            let from = if opener.is_some() { HEADER_BYTES } else { 0 };
            let filled = (from + left).min(self.buffer.len());
            file.read_exact(&mut self.buffer[from..filled])
                .doing(|| "reading the file".into())?;
            left -= filled - from;
            let (header, chunks) = self.buffer[..filled]
                .split_first_chunk()
                .ok_or_else(|| failed("no header"))?;
            if opener.is_none() {
                let made = Opener::new(&keys.seal, &keys.context, header, files.sealed_bytes);
                opener = Some(made.map_err(failed)?);
            }
            let Some(opener) = &opener else { break };
            let mut opened = 0;
            for chunk in chunks.chunks(SEALED_CHUNK_BYTES) {
                let room = &mut self.plain[opened..];
                opened += opener.open_chunk(index, chunk, room).map_err(failed)?;
                index += 1;
            }
            self.connection.send(&self.plain[..opened])?;
        }
        self.connection.flush()
    }
}

impl Connection {
    fn stream(&mut self) -> &mut dyn ReadWrite {
        match self {
            Self::Plain(stream) | Self::Spliced(stream, _) | Self::Device(stream, _) => stream,
            Self::Tls(stream) => stream.as_mut(),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream().write_all(bytes).doing(|| "sending".into())
    }

    fn flush(&mut self) -> Result<()> {
        self.stream().flush().doing(|| "sending".into())
    }

    /// All of them in one system call, if the socket takes so much.
    fn send_parts<'a>(&mut self, parts: impl Iterator<Item = &'a [u8]>) -> Result<()> {
        let mut slices: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let sent = self.stream().write_vectored(left);
            match sent.doing(|| "sending".into())? {
                0 => {
                    return Err(io::Error::from(io::ErrorKind::WriteZero))
                        .doing(|| "sending".into());
                }
                count => IoSlice::advance_slices(&mut left, count),
            }
        }
        Ok(())
    }
}

/// The lengths of the pieces in which so many bytes are read.
fn pieces(bytes: u64, most: usize) -> impl Iterator<Item = usize> {
    let most = most as u64;
    (0..bytes.div_ceil(most)).map(move |index| (bytes - index * most).min(most) as usize)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).doing(|| format!("opening {}", path.display()))
}

trait ReadWrite: Read + Write {}

impl<S: Read + Write> ReadWrite for S {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_but_for_the_last() {
        let of = |bytes| pieces(bytes, 100).collect::<Vec<_>>();
        assert_eq!(of(250), [100, 100, 50]);
        assert_eq!((of(200), of(15), of(0)), (vec![100, 100], vec![15], vec![]));
    }
}
