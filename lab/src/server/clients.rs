//! The clients: each asks, takes the answer, opens and compares it, and asks again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::algorithm::TAG_BYTES;
use crate::error::{Doing, LabError, Result};
use crate::record::Sample;
use crate::server::model::Model;
use crate::server::process::Server;
use crate::server::protocol::{PIECE_BYTES, content, opened_piece};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// All clients at once, for `duration`.
pub(super) fn measure(
    server: &Server,
    clients: usize,
    bytes: u32,
    duration: Duration,
) -> Result<Sample> {
    let connect = |_| Client::connect(server.model, server.address);
    let connected: Result<Vec<Client>> = (0..clients).map(connect).collect();
    let connected = connected?;
    let (cpu, start) = (server.cpu_seconds(), Instant::now());
    let answers: Result<u64> = thread::scope(|scope| {
        let asking: Vec<_> = connected
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || -> Result<u64> {
                    let mut answers = 0;
                    while start.elapsed() < duration {
                        client.ask(bytes)?;
                        answers += 1;
                    }
                    Ok(answers)
                })
            })
            .collect();
        let joined = asking.into_iter().map(|thread| match thread.join() {
            Ok(answers) => answers,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.sum()
    });
    Ok(Sample {
        bytes: answers? * u64::from(bytes),
        wall_seconds: start.elapsed().as_secs_f64(),
        cpu_seconds: server.cpu_seconds() - cpu,
        counts: None,
    })
}

/// Asks once.
#[cfg(test)]
pub(super) fn ask(model: Model, address: SocketAddr, bytes: u32) -> Result<()> {
    Client::connect(model, address)?.ask(bytes)
}

struct Client {
    model: Model,
    stream: TcpStream,
    piece: Vec<u8>,
}

impl Client {
    fn connect(model: Model, address: SocketAddr) -> Result<Self> {
        let doing = || format!("connecting to {address}");
        let stream = TcpStream::connect(address).doing(doing)?;
        stream.set_nodelay(true).doing(doing)?;
        stream.set_read_timeout(Some(PATIENCE)).doing(doing)?;
        Ok(Self {
            model,
            stream,
            piece: vec![0; PIECE_BYTES + TAG_BYTES],
        })
    }

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
            if plain != expected {
                return Err(LabError::Data {
                    file: "an answer".into(),
                    what: "other bytes came than were asked for".into(),
                });
            }
        }
        Ok(())
    }
}
