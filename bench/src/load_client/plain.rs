//! Plain clients: HTTP without TLS, and a stream of TCP into a file.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::error::{BenchError, Doing, Result};
use crate::load_client::content::Content;

/// What one system call may receive, or send.
const PIECE_BYTES: usize = 256 * 1024;

/// A keep-alive connection to a plain HTTP server.
pub struct PlainHttp {
    address: SocketAddr,
    reader: BufReader<TcpStream>,
    piece: Vec<u8>,
}

impl PlainHttp {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Self> {
        Ok(Self {
            address,
            reader: BufReader::with_capacity(PIECE_BYTES, connect(address)?),
            piece: vec![0; PIECE_BYTES],
        })
    }

    /// Fetches an object, and looks at the beginning of each piece that arrives.
    pub fn get(&mut self, name: &str, content: Content) -> Result<()> {
        let line = format!("GET /{name} HTTP/1.1");
        let head = format!("{line}\r\nhost: {}\r\n\r\n", self.address);
        let asked = self.reader.get_mut().write_all(head.as_bytes());
        asked.doing(|| format!("sending {line}"))?;
        let expected = content.length_bytes;
        let found = self.head(&line)?;
        if found != expected {
            let request = line;
            return Err(BenchError::WrongLength {
                request,
                expected,
                found,
            });
        }
        let mut offset = 0;
        while offset < expected {
            let most = PIECE_BYTES.min((expected - offset) as usize);
            let read = self.reader.read(&mut self.piece[..most]);
            let read = read.doing(|| format!("receiving {line}"))?;
            if read == 0 {
                return Err(BenchError::Closed);
            }
            if !content.begins(offset, &self.piece[..read]) {
                let request = line;
                return Err(BenchError::WrongContents { request, offset });
            }
            offset += read as u64;
        }
        Ok(())
    }

    /// Reads the head of an answer that must be a success, and gives the length of the body.
    fn head(&mut self, request: &str) -> Result<u64> {
        let (mut status, mut length) = (0, None);
        loop {
            let mut line = String::new();
            let read = self.reader.read_line(&mut line);
            if read.doing(|| format!("receiving {request}"))? == 0 {
                return Err(BenchError::Closed);
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if status == 0 {
                let number = line
                    .split(' ')
                    .nth(1)
                    .and_then(|number| number.parse().ok());
                status = number.unwrap_or(1);
            } else if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok();
            }
        }
        if status != 200 {
            return Err(BenchError::Status {
                status,
                request: request.to_owned(),
                body: String::new(),
            });
        }
        length.ok_or_else(|| BenchError::Http {
            what: "no content-length".into(),
        })
    }
}

/// Sends a file's name and length, then its bytes, and waits until they are durable.
pub fn send_stream(stream: &mut TcpStream, name: &str, plaintext: &[u8]) -> Result<()> {
    let sending = || format!("sending {name}");
    let head = format!("{name} {}\n", plaintext.len());
    stream.write_all(head.as_bytes()).doing(sending)?;
    for piece in plaintext.chunks(PIECE_BYTES) {
        stream.write_all(piece).doing(sending)?;
    }
    stream.read_exact(&mut [0]).doing(sending)
}

/// A connection of TCP.
pub fn connect(address: SocketAddr) -> Result<TcpStream> {
    let connecting = || format!("connecting to {address}");
    let stream = TcpStream::connect(address).doing(connecting)?;
    stream.set_nodelay(true).doing(connecting)?;
    Ok(stream)
}
