//! From a file through AF_ALG into a socket, by splice(2): the bytes never enter the program.

use std::fs::File;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{SpliceFlags, pipe, splice};

use crate::cipher::AfAlgOperation;
use crate::error::{Doing, LabError, Result};

/// What goes through at a time. With more, one thread waits for ever: the socket of AF_ALG is full,
/// and nothing empties it. A multiple of the cipher's blocks, so that its counter goes on.
const PIECE_BYTES: usize = 64 << 10;

/// Two pipes, and the kernel's cipher between them.
pub(super) struct Splicer {
    operation: AfAlgOperation,
    from_file: (OwnedFd, OwnedFd),
    to_socket: (OwnedFd, OwnedFd),
}

impl Splicer {
    /// What is spliced through it is encrypted or decrypted with AES-256-CTR.
    pub(super) fn new(key: &[u8; 32]) -> Result<Self> {
        let pipe = || pipe().doing(|| "making a pipe".into());
        Ok(Self {
            operation: AfAlgOperation::new("ctr(aes)", key)?,
            from_file: pipe()?,
            to_socket: pipe()?,
        })
    }

    /// Sends all of `file`, which has so many bytes and was encrypted under this counter.
    pub(super) fn send_decrypted(
        &self,
        file: &File,
        bytes: u64,
        iv: &[u8; 16],
        socket: &TcpStream,
    ) -> Result<()> {
        self.operation.begin_decrypting(iv)?;
        self.send(file, bytes, socket)
    }

    /// Sends all of a plain `file`, encrypted.
    pub(super) fn send_encrypted(
        &self,
        file: &File,
        bytes: u64,
        iv: &[u8; 16],
        socket: &TcpStream,
    ) -> Result<()> {
        self.operation.begin_encrypting(iv)?;
        self.send(file, bytes, socket)
    }

    fn send(&self, file: &File, bytes: u64, socket: &TcpStream) -> Result<()> {
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        while left > 0 {
            let wanted = left.min(PIECE_BYTES);
            let piece = one(file, &self.from_file.1, wanted, true, "from the file")?;
            left -= piece;
            // Until the last piece the message goes on.
            let more = left > 0;
            all(
                &self.from_file.0,
                &self.operation,
                piece,
                more,
                "into AF_ALG",
            )?;
            let mut opened = 0;
            while opened < piece {
                let (out, rest) = (&self.to_socket.1, piece - opened);
                let count = one(&self.operation, out, rest, true, "out of AF_ALG")?;
                opened += count;
                let more = more || opened < piece;
                all(&self.to_socket.0, socket, count, more, "into the socket")?;
            }
        }
        Ok(())
    }
}

/// All of what a pipe holds.
fn all(from: &OwnedFd, to: impl AsFd, bytes: usize, more: bool, where_to: &str) -> Result<()> {
    let mut left = bytes;
    while left > 0 {
        left -= one(from, to.as_fd(), left, more, where_to)?;
    }
    Ok(())
}

fn one(from: impl AsFd, to: impl AsFd, bytes: usize, more: bool, where_to: &str) -> Result<usize> {
    let flags = if more {
        SpliceFlags::MORE
    } else {
        SpliceFlags::empty()
    };
    let spliced = splice(from, None, to, None, bytes, flags);
    match spliced.doing(|| format!("splicing {where_to}"))? {
        0 => Err(LabError::Data {
            file: "what was spliced".into(),
            what: format!("it ended too early, {where_to}"),
        }),
        count => Ok(count),
    }
}
