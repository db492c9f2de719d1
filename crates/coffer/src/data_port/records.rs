//! What a connection's bytes travel in: nothing, or records of TLS, which the kernel or this
//! program makes.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use rustls::ServerConnection;

use crate::data_port::kernel_tls;
use crate::limits::TLS_FILE_BYTES;

/// What a connection's bytes travel in.
pub enum Records {
    /// As they are.
    None,
    /// The kernel's.
    Kernel,
    /// This program's.
    Program(Box<TlsSession>),
}

impl Records {
    /// Whether there may be bytes that have come and that the socket tells nothing of any more.
    ///
    /// # Errors
    /// When what came is no TLS.
    pub fn hold_more(&mut self) -> io::Result<bool> {
        match self {
            Self::None | Self::Kernel => Ok(false),
            Self::Program(session) => session.holds_more(),
        }
    }
}

/// TLS in this program.
pub struct TlsSession(ServerConnection);

impl TlsSession {
    /// After the handshake.
    pub fn new(mut connection: ServerConnection) -> Self {
        // No more is put in than is sent at once: see `Peer`.
        connection.set_buffer_limit(None);
        Self(connection)
    }

    fn holds_more(&mut self) -> io::Result<bool> {
        let state = self.0.process_new_packets().map_err(io::Error::other)?;
        Ok(state.plaintext_bytes_to_read() > 0)
    }

    /// Takes of what has come and was opened; none, if nothing is left.
    pub(super) fn take(&mut self, out: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.reader().read(out) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            taken => taken.map(Some),
        }
    }

    /// Reads what the socket has, and opens it. Says how much it was.
    pub(super) fn fill(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        let count = self.0.read_tls(&mut Bare(socket))?;
        if let Err(error) = self.0.process_new_packets() {
            // So that the peer learns why.
            let _ = self.0.write_tls(&mut Bare(socket));
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        Ok(count)
    }

    /// Seals, for [`flush`](Self::flush) to send.
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.writer().write_all(bytes)
    }

    /// Whether there is something to send.
    pub(super) fn has_more(&self) -> bool {
        self.0.wants_write()
    }

    /// Sends as much as the socket takes.
    pub(super) fn flush(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.0.write_tls(&mut Bare(socket))
    }

    /// Says that nothing more will be sent.
    pub(super) fn end(&mut self) {
        self.0.send_close_notify();
    }
}

/// Room for pieces of files on their way into records: made at the first of an answer, and used for
/// all of it.
#[derive(Default)]
pub struct FileRoom(Vec<u8>);

impl FileRoom {
    /// Reads as much of this place as is sealed at a time; nothing: the file ends there.
    pub(super) fn read(&mut self, file: impl AsFd, place: &Range<u64>) -> io::Result<&[u8]> {
        if self.0.is_empty() {
            self.0.resize(TLS_FILE_BYTES, 0);
        }
        let wanted = (place.end - place.start).min(self.0.len() as u64) as usize;
        let count = rustix::io::pread(file, &mut self.0[..wanted], place.start)?;
        Ok(&self.0[..count])
    }
}

/// A socket without anything between: it takes and gives what it can at once.
pub(super) struct Bare<'a, S>(pub(super) &'a S);

impl<S: AsFd> Read for Bare<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, out)?)
    }
}

impl<S: AsFd> Write for Bare<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(
            self.0,
            bytes,
            rustix::net::SendFlags::NOSIGNAL,
        )?)
    }

    fn write_vectored(&mut self, pieces: &[io::IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self.0, pieces)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what a peer has sent without TLS of this program.
pub(super) fn receive(
    records: &Records,
    socket: &(impl AsFd + AsRawFd),
    out: &mut [u8],
) -> io::Result<usize> {
    match records {
        Records::Kernel => kernel_tls::receive(socket, out),
        _ => Bare(socket).read(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_file_share_one_room() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..2 * TLS_FILE_BYTES + 5)
            .map(|at| (at / 7) as u8)
            .collect();
        file.write_all(&bytes).unwrap();
        let (mut room, mut read) = (FileRoom::default(), Vec::new());
        let mut places = Vec::new();
        loop {
            let place = read.len() as u64..u64::MAX;
            let piece = room.read(&file, &place).unwrap();
            if piece.is_empty() {
                break;
            }
            places.push(piece.as_ptr());
            read.extend_from_slice(piece);
        }
        assert!(read == bytes, "other bytes");
        assert_eq!(places.len(), 3);
        assert!(
            places.iter().all(|place| *place == places[0]),
            "not one room"
        );
        assert_eq!(room.read(&file, &(3..10)).unwrap(), &bytes[3..10]);
    }
}
