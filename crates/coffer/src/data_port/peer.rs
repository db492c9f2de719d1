//! The client at the other end of a connection, held to a pace.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::task::Poll;
use std::time::Duration;

use rustix::net::{SendFlags, Shutdown};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::connection::minimum_rate::{MinimumRate, RateWatch, TooSlow};

/// A socket, and how slow its peer is.
pub struct Peer<'a> {
    tcp: &'a TcpStream,
    sends: RateWatch,
    takes: RateWatch,
}

impl<'a> Peer<'a> {
    /// The peer of this socket, who must be as fast as this.
    pub fn new(tcp: &'a TcpStream, minimum: MinimumRate) -> Self {
        Self {
            tcp,
            sends: RateWatch::new(minimum),
            takes: RateWatch::new(minimum),
        }
    }

    /// Reads into `out` what the peer has sent, once it has; 0: it sends no more, or `out` is
    /// empty.
    ///
    /// # Errors
    /// When the connection breaks, or the peer sends too little.
    pub async fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let (tcp, watch) = (self.tcp, &mut self.sends);
            poll_fn(|cx| match tcp.poll_read_ready(cx) {
                Poll::Ready(ready) => Poll::Ready(ready),
                Poll::Pending => watch.poll_waiting(cx).map(|slow| Err(too_slow(slow))),
            })
            .await?;
            match self.tcp.try_read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(count) => {
                    self.sends.moved(count as u64);
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends bytes; where `more` follow at once, in one packet with those.
    ///
    /// # Errors
    /// When the connection breaks, or the peer takes too little.
    pub async fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<()> {
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
    /// it takes any. 0: the file ends there.
    ///
    /// # Errors
    /// As [`send`](Self::send), and those of the disk.
    pub async fn send_file(&mut self, file: impl AsFd, place: Range<u64>) -> io::Result<usize> {
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
    pub fn end(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(self.tcp, Shutdown::Write)?)
    }

    /// Has what the kernel still holds thrown away when the connection is closed, and the peer told
    /// that it broke.
    pub fn reset(&self) {
        // Should it fail, the kernel sends on for a while what it holds already.
        let _ = rustix::net::sockopt::set_socket_linger(self.tcp, Some(Duration::ZERO));
    }

    async fn write(
        &mut self,
        length: usize,
        mut write: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            let (tcp, watch) = (self.tcp, &mut self.takes);
            poll_fn(|cx| match tcp.poll_write_ready(cx) {
                Poll::Ready(ready) => Poll::Ready(ready),
                Poll::Pending => watch.poll_waiting(cx).map(|slow| Err(too_slow(slow))),
            })
            .await?;
            match self.tcp.try_io(Interest::WRITABLE, || write(self.tcp)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(count) if count < length => {
                    self.takes.moved(count as u64);
                    return Ok(count);
                }
                Ok(count) => {
                    self.takes.idle();
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn too_slow(slow: TooSlow) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, slow)
}
