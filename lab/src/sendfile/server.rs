//! The server's side: what is measured.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use coffer_seal::Opener;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use rustls::{ServerConnection, StreamOwned};

use crate::error::{Doing, LabError, Result};
use crate::sendfile::spliced::Splicer;
use crate::sendfile::way::{BUFFER_BYTES, Files, Keys, Way};
use crate::tls::Tls;

/// Sealed chunks that are read at a time.
const CHUNKS_AT_ONCE: usize = 4;

enum Connection {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
    Spliced(TcpStream, Splicer),
}

/// One connection.
pub(super) struct Server {
    way: Way,
    connection: Connection,
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
            Way::Tls | Way::SealedTls => {
                let connection = ServerConnection::new(tls.server.clone()).map_err(failed)?;
                let mut stream = StreamOwned::new(connection, stream);
                while stream.conn.is_handshaking() {
                    let greeted = stream.conn.complete_io(&mut stream.sock);
                    greeted.doing(|| "greeting the client".into())?;
                }
                Connection::Tls(Box::new(stream))
            }
            Way::AfAlg => Connection::Spliced(stream, Splicer::new(&keys.counter)?),
            _ => Connection::Plain(stream),
        };
        Ok(Self { way, connection })
    }

    /// Waits for a question and answers it.
    pub(super) fn serve(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let mut question = [0];
        self.stream()
            .read_exact(&mut question)
            .doing(|| "waiting for a question".into())?;
        match self.way {
            Way::SendFile | Way::KernelTls => self.send_file(&files.plain, files.bytes),
            Way::SealedSendFile => self.send_file(&files.sealed, files.sealed_bytes),
            Way::ReadWrite | Way::Tls => self.copy(&files.plain),
            Way::Gcm => self.encrypt(&files.plain, keys),
            Way::SealedTls => self.open_sealed(files, keys),
            Way::AfAlg => self.splice(files, keys),
        }
    }

    fn stream(&mut self) -> &mut dyn ReadWrite {
        match &mut self.connection {
            Connection::Plain(stream) | Connection::Spliced(stream, _) => stream,
            Connection::Tls(stream) => stream.as_mut(),
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
        let file = open(&files.counter_encrypted)?;
        splicer.send(&file, files.bytes, &keys.counter_iv, stream)
    }

    fn copy(&mut self, path: &Path) -> Result<()> {
        let mut file = open(path)?;
        let mut buffer = [0; BUFFER_BYTES];
        loop {
            let count = file.read(&mut buffer).doing(|| "reading the file".into())?;
            if count == 0 {
                return self.stream().flush().doing(|| "sending".into());
            }
            self.stream()
                .write_all(&buffer[..count])
                .doing(|| "sending".into())?;
        }
    }

    fn encrypt(&mut self, path: &Path, keys: &Keys) -> Result<()> {
        let mut file = open(path)?;
        let mut piece = Vec::with_capacity(BUFFER_BYTES + 16);
        for number in 0.. {
            piece.resize(BUFFER_BYTES, 0);
            let count = read_full(&mut file, &mut piece)?;
            if count == 0 {
                break;
            }
            piece.truncate(count);
            keys.encrypt(number, &mut piece)?;
            self.stream().write_all(&piece).doing(|| "sending".into())?;
        }
        Ok(())
    }

    fn open_sealed(&mut self, files: &Files, keys: &Keys) -> Result<()> {
        let mut file = open(&files.sealed)?;
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header)
            .doing(|| "reading the file".into())?;
        let opener = Opener::new(&keys.seal, &keys.context, &header, files.sealed_bytes);
        let opener = opener.map_err(failed)?;
        let mut sealed = vec![0; CHUNKS_AT_ONCE * SEALED_CHUNK_BYTES];
        let mut plain = [0; CHUNK_BYTES];
        let mut index = 0;
        while index < opener.chunk_count() {
            let count = read_full(&mut file, &mut sealed)?;
            if count == 0 {
                return Err(failed("the file is shorter than it was"));
            }
            for chunk in sealed[..count].chunks(SEALED_CHUNK_BYTES) {
                let opened = opener
                    .open_chunk(index, chunk, &mut plain)
                    .map_err(failed)?;
                self.stream()
                    .write_all(&plain[..opened])
                    .doing(|| "sending".into())?;
                index += 1;
            }
        }
        self.stream().flush().doing(|| "sending".into())
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).doing(|| format!("opening {}", path.display()))
}

trait ReadWrite: Read + Write {}

impl<S: Read + Write> ReadWrite for S {}

fn read_full(file: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file
            .read(&mut buffer[filled..])
            .doing(|| "reading the file".into())?
        {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}
