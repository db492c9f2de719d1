//! Moving bytes from a socket into a file within the kernel, by way of a pipe: they are copied
//! once, and that as soon as they are looked at.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

use crate::limits::PIPE_BYTES;

thread_local! {
    /// Empty between two steps.
    static PIPE: RefCell<Option<Pipe>> = const { RefCell::new(None) };
}

struct Pipe {
    front: File,
    back: OwnedFd,
}

/// Moves what a socket has, `most_bytes` at most, to a place in a file, and says how many bytes it
/// was; does not wait for the peer. 0: there are none that can be moved. If there are some, they
/// must be read, as what comes behind a byte that was sent as urgent.
///
/// # Errors
/// Those of the file: bytes that the socket had are lost then.
pub(crate) fn move_bytes(
    socket: impl AsFd,
    file: &File,
    offset_bytes: u64,
    most_bytes: usize,
) -> io::Result<usize> {
    PIPE.with_borrow_mut(|kept| {
        // Kept again only once it is empty: no bytes of one upload come to another's file.
        let Some(mut pipe) = kept.take().or_else(|| Pipe::new().ok()) else {
            return Ok(0);
        };
        let flags = SpliceFlags::NONBLOCK;
        match splice(socket, None, &pipe.back, None, most_bytes, flags) {
            Ok(count) => {
                pipe.empty(file, offset_bytes, count)?;
                *kept = Some(pipe);
                Ok(count)
            }
            Err(_) => Ok(0),
        }
    })
}

impl Pipe {
    fn new() -> io::Result<Self> {
        let (front, back) = pipe_with(PipeFlags::CLOEXEC)?;
        // A system may allow less: steps are smaller then.
        let _ = fcntl_setpipe_size(&back, PIPE_BYTES);
        Ok(Self {
            front: front.into(),
            back,
        })
    }

    /// Writes all `count` bytes that it holds.
    fn empty(&mut self, file: &File, mut offset_bytes: u64, count: usize) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            let offset = Some(&mut offset_bytes);
            match splice(&self.front, None, file, offset, left, SpliceFlags::empty()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => left -= written,
                Err(Errno::INTR) => {}
                // The file system knows no such writes.
                Err(Errno::INVAL) => return self.copy(file, offset_bytes, left),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn copy(&mut self, file: &File, offset_bytes: u64, count: usize) -> io::Result<()> {
        let mut bytes = vec![0; count];
        self.front.read_exact(&mut bytes)?;
        file.write_all_at(&bytes, offset_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|at| (at / 7) as u8).collect()
    }

    fn content(file: &mut File) -> Vec<u8> {
        let mut content = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn no_more_is_moved_than_asked_and_the_rest_stays_in_the_socket() {
        let (mut client, mut server) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        client.write_all(&bytes(5000)).unwrap();
        assert_eq!(move_bytes(&server, &file, 3, 4096).unwrap(), 4096);
        assert_eq!(content(&mut file)[3..], bytes(4096));
        let mut rest = [0; 904];
        server.read_exact(&mut rest).unwrap();
        assert_eq!(rest[..], bytes(5000)[4096..]);
        assert_eq!(move_bytes(&server, &file, 0, 1).unwrap(), 0);
        drop(client);
        assert_eq!(move_bytes(&server, &file, 0, 1).unwrap(), 0);
    }

    #[test]
    fn of_what_bytes_can_not_be_moved_from_none_are() {
        let file = tempfile::tempfile().unwrap();
        let (_, back) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        assert_eq!(move_bytes(back, &file, 0, 1).unwrap(), 0);
    }

    #[test]
    fn a_file_that_takes_no_such_writes_is_written_all_the_same() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let dir = tempfile::tempdir().unwrap();
        // The kernel refuses to move bytes into a file that is opened for appending.
        let mut options = File::options();
        let opened = options.read(true).append(true).create_new(true);
        let mut file = opened.open(dir.path().join("file")).unwrap();
        for piece in bytes(9000).chunks(4500) {
            client.write_all(piece).unwrap();
            let offset_bytes = file.metadata().unwrap().len();
            let moved = move_bytes(&server, &file, offset_bytes, 1 << 20).unwrap();
            assert_eq!(moved, 4500);
        }
        assert_eq!(content(&mut file), bytes(9000));
    }

    #[test]
    fn bytes_that_one_file_refused_never_come_to_another() {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(b"lost").unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let lost = move_bytes(&server, &full, 0, 4);
        assert!(lost.is_err(), "{lost:?}");
        let mut file = tempfile::tempfile().unwrap();
        client.write_all(b"others").unwrap();
        assert_eq!(move_bytes(&server, &file, 0, 100).unwrap(), 6);
        assert_eq!(content(&mut file), b"others");
    }
}
