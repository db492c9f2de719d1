//! The client at the other end of a connection, held to a pace.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustix::net::{SendFlags, Shutdown};
use tokio::io::{Interest, ReadBuf};
use tokio::net::TcpStream;

use crate::connection::minimum_rate::{MinimumRate, RateWatch, TooSlow};
use crate::data_port::records::{FileRoom, Records, TlsSession, receive};
use crate::limits::{TLS_RECORD_BYTES, TLS_RECORDS_MAX};

/// A socket, what its bytes travel in, and how slow its peer is.
pub struct Peer<'a> {
    tcp: &'a TcpStream,
    records: Records,
    /// How many the kernel has sealed, at most.
    sealed_records: u64,
    sends: RateWatch,
    takes: RateWatch,
}

impl<'a> Peer<'a> {
    /// The peer of this socket, who must be as fast as this.
    pub fn new(tcp: &'a TcpStream, records: Records, minimum: MinimumRate) -> Self {
        Self {
            tcp,
            records,
            sealed_records: 0,
            sends: RateWatch::new(minimum),
            takes: RateWatch::new(minimum),
        }
    }

    /// Whether bytes may have come that the socket tells nothing of any more.
    ///
    /// # Errors
    /// When what came is no TLS.
    pub fn holds_more(&mut self) -> io::Result<bool> {
        self.records.hold_more()
    }

    /// Whether the connection's keys are good for another answer of any length.
    pub fn lasts(&self) -> bool {
        self.sealed_records < TLS_RECORDS_MAX / 2
    }

    /// Reads into `out` what the peer has sent, once it has; 0: it sends no more, or `out` is
    /// empty.
    ///
    /// # Errors
    /// When the connection breaks, or the peer sends too little.
    pub async fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Records::Program(session) = &mut self.records
                && let Some(count) = session.take(out)?
            {
                return Ok(count);
            }
            let (tcp, watch) = (self.tcp, &mut self.sends);
            poll_fn(|cx| match tcp.poll_read_ready(cx) {
                Poll::Ready(ready) => Poll::Ready(ready),
                Poll::Pending => watch.poll_waiting(cx).map(|slow| Err(too_slow(slow))),
            })
            .await?;
            let records = &mut self.records;
            let read = tcp.try_io(Interest::READABLE, || match records {
                Records::Program(session) => session.fill(tcp),
                records => receive(records, tcp, out),
            });
            match read {
                Err(error) if is_passing(&error) => {}
                Ok(count) => {
                    self.sends.moved(count as u64);
                    if !matches!(self.records, Records::Program(_)) {
                        return Ok(count);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The socket, where the peer's bytes are in it as they are: so that they may be moved while
    /// this is dropped. None where they have to be read.
    pub fn bare_socket(&self) -> Option<Arc<OwnedFd>> {
        if !matches!(self.records, Records::None) {
            return None;
        }
        let socket = self.tcp.as_fd().try_clone_to_owned();
        socket.ok().map(Arc::new)
    }

    /// Waits until the peer has sent something that is still in its socket; false: it sends no
    /// more.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn has_sent(&mut self) -> io::Result<bool> {
        let (tcp, watch) = (self.tcp, &mut self.sends);
        // The kernel is asked, so that the socket counts as ready no longer than it is.
        let mut first = [0];
        let looked = poll_fn(
            |cx| match tcp.poll_peek(cx, &mut ReadBuf::new(&mut first)) {
                Poll::Ready(looked) => Poll::Ready(looked),
                Poll::Pending => watch.poll_waiting(cx).map(|slow| Err(too_slow(slow))),
            },
        );
        Ok(looked.await? > 0)
    }

    /// Takes note of bytes that were moved out of the socket.
    pub fn moved(&mut self, count: usize) {
        self.sends.moved(count as u64);
    }

    /// Sends bytes; where `more` follow at once, in one packet with those.
    ///
    /// # Errors
    /// When the connection breaks, or the peer takes too little.
    pub async fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<()> {
        if let Records::Program(session) = &mut self.records {
            session.put(bytes)?;
            return if more { Ok(()) } else { self.flush().await };
        }
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, more);
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = &bytes[sent..];
            sent += self
                .write(rest.len(), |tcp| Ok(rustix::net::send(tcp, rest, flags)?))
                .await?;
        }
        Ok(())
    }

    /// Sends from a file, from the start of `place` on, as much as the peer takes now; waits until
    /// it takes any. 0: the file ends there. `room` is for records that this program makes.
    ///
    /// # Errors
    /// As [`send`](Self::send), and those of the disk.
    pub async fn send_file(
        &mut self,
        file: impl AsFd,
        place: Range<u64>,
        room: &mut FileRoom,
    ) -> io::Result<usize> {
        if let Records::Program(session) = &mut self.records {
            let piece = room.read(&file, &place)?;
            session.put(piece)?;
            let count = piece.len();
            self.flush().await?;
            return Ok(count);
        }
        let length = usize::try_from(place.end - place.start).unwrap_or(usize::MAX);
        let mut offset_bytes = place.start;
        let mut send = |tcp: &TcpStream| {
            let offset = Some(&mut offset_bytes);
            Ok(rustix::fs::sendfile(tcp, &file, offset, length)?)
        };
        self.write(length, &mut send).await
    }

    /// Waits until the peer has ended its side, or broken the connection: who waits for an answer
    /// does neither. For ever, if it has sent more already.
    pub fn hung_up(&self) -> impl Future<Output = ()> + use<'a> {
        let tcp = self.tcp;
        async move {
            if let Ok(1..) = tcp.peek(&mut [0]).await {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Says that nothing more will be sent.
    ///
    /// # Errors
    /// When the connection is broken already.
    pub async fn end(&mut self) -> io::Result<()> {
        if let Records::Program(session) = &mut self.records {
            session.end();
            self.flush().await?;
        }
        Ok(rustix::net::shutdown(self.tcp, Shutdown::Write)?)
    }

    /// Has what the kernel still holds thrown away when the connection is closed, and the peer told
    /// that it broke.
    pub fn reset(&self) {
        // Should it fail, the kernel sends on for a while what it holds already.
        let _ = rustix::net::sockopt::set_socket_linger(self.tcp, Some(Duration::ZERO));
    }

    /// Sends what this program has sealed.
    async fn flush(&mut self) -> io::Result<()> {
        let Self {
            tcp,
            records: Records::Program(session),
            takes,
            ..
        } = self
        else {
            return Ok(());
        };
        while session.has_more() {
            let send = |tcp: &TcpStream| TlsSession::flush(session, tcp);
            let count = when_writable(tcp, takes, send).await?;
            takes.moved(count as u64);
        }
        takes.idle();
        Ok(())
    }

    async fn write(
        &mut self,
        length: usize,
        write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let count = when_writable(self.tcp, &mut self.takes, write).await?;
        if count < length {
            self.takes.moved(count as u64);
        } else {
            self.takes.idle();
        }
        if matches!(self.records, Records::Kernel) {
            // Each write may begin one.
            self.sealed_records += 1 + count.div_ceil(TLS_RECORD_BYTES) as u64;
            if self.sealed_records > TLS_RECORDS_MAX {
                return Err(io::Error::other("as many records as one key is good for"));
            }
        }
        Ok(count)
    }
}

/// Waits until the peer takes any, and writes. The kernel tells of room again only once a third of
/// all that it holds has gone, which may be megabytes: a write now and then says sooner what went.
async fn when_writable(
    tcp: &TcpStream,
    takes: &mut RateWatch,
    mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        let is_told = poll_fn(|cx| {
            if let Poll::Ready(ready) = tcp.poll_write_ready(cx) {
                return Poll::Ready(ready.map(|()| true));
            }
            if let Poll::Ready(slow) = takes.poll_waiting(cx) {
                return Poll::Ready(Err(too_slow(slow)));
            }
            takes.poll_step(cx).map(|()| Ok(false))
        });
        let written = if is_told.await? {
            tcp.try_io(Interest::WRITABLE, || write(tcp))
        } else {
            write(tcp)
        };
        match written {
            Err(error) if is_passing(&error) => {}
            written => return written,
        }
    }
}

pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn too_slow(slow: TooSlow) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, slow)
}
