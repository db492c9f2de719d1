//! The kernel's null cipher, through AF_ALG: the whole way into the kernel and back, without any
//! encryption.

use std::io::{IoSlice, IoSliceMut};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags};

use crate::cipher::af_alg::{KeyFrom, Missing, Socket, connect, receive, send};
use crate::cipher::algorithm::Algorithm;
use crate::cipher::roster::{IN_A_VIRTUAL_MACHINE, cannot};
use crate::contender::{Availability, Contender, Placement};
use crate::error::{Doing, LabError, Result};
use crate::host::kernel_crypto::Config;

const NAME: &str = "ecb(cipher_null)";

/// A socket of the null cipher.
pub struct NullCipher(Socket);

/// It takes no key, and is no AEAD, like AES in counter mode.
fn open() -> std::result::Result<Socket, Missing> {
    connect(Algorithm::Ctr128, NAME, KeyFrom::Program, &[])
}

impl NullCipher {
    /// Opens it.
    pub fn new() -> Result<Self> {
        let missing = |missing: Missing| LabError::Cipher {
            contender: format!("AF_ALG {NAME}"),
            what: format!("{missing:?}"),
        };
        open().map(Self).map_err(missing)
    }

    /// One operation: `from` goes into the kernel, and comes out of it into `to`, which is as long.
    pub fn pass(&self, from: &[u8], to: &mut [u8]) -> Result<()> {
        let doing = || format!("AF_ALG {NAME} of {} B", from.len());
        let begin = [ControlMessage::AlgSetOp(&libc::ALG_OP_ENCRYPT)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let sent = send(&self.0, &[IoSlice::new(from)], &begin, flags).doing(doing)?;
        if sent != from.len() {
            return Err(Errno::EMSGSIZE).doing(doing);
        }
        let received = receive(&self.0, &mut [IoSliceMut::new(to)]).doing(doing)?;
        if received == from.len() {
            Ok(())
        } else {
            Err(Errno::EIO).doing(doing)
        }
    }
}

/// The null cipher, where this kernel gives it to programs.
pub fn contender() -> Contender {
    let runs_on = "kernel driver ecb-cipher_null";
    Contender::new(format!("AF_ALG {NAME}"), Placement::Kernel, runs_on)
        .set("sendmsg without blocking, then recvmsg, into another buffer; sockets of 4 MiB")
        .set("no key, no IV")
        .available(availability())
}

fn availability() -> Availability {
    match open() {
        Ok(_) => Availability::Runs,
        Err(Missing::Algorithm(Errno::ENOENT)) => Availability::cannot(
            format!("AF_ALG: {}", Config::read().lacks("CONFIG_CRYPTO_NULL")),
            format!("modprobe crypto_null; or {IN_A_VIRTUAL_MACHINE}"),
        ),
        Err(missing) => cannot(&missing, "CONFIG_CRYPTO_USER_API_SKCIPHER", NAME, 0),
    }
}
