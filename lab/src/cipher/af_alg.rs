//! The kernel's crypto API for user programs: AF_ALG sockets (Linux, `crypto/userspace-if`).
//!
//! Everything is sent without blocking and fetched as soon as the kernel takes no more: one thread
//! that sends more than the socket holds, and blocks, waits for ever.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use linux_keyutils::{Key, KeyRing, KeyRingIdentifier};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, AlgAddr, ControlMessage, MsgFlags, SockFlag, SockType, accept4, bind, recvmsg,
    sendmsg, setsockopt, socket, sockopt,
};

use crate::cipher::algorithm::{Algorithm, TAG_BYTES};
use crate::cipher::{Cipher, Tag};
use crate::error::{Doing, LabError, Result};

/// `ALG_SET_KEY_BY_KEY_SERIAL` of linux/if_alg.h, since Linux 6.2.
const ALG_SET_KEY_BY_KEY_SERIAL: libc::c_int = 7;

/// Room that is asked for in the sockets, so that a message goes in one piece. Only root gets it.
const SOCKET_BYTES: usize = 4 << 20;

/// The message goes on.
const MORE: MsgFlags = MsgFlags::from_bits_retain(libc::MSG_MORE);

/// How the key gets into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyFrom {
    /// From the program's memory, by `ALG_SET_KEY`.
    Program,
    /// From the kernel's keyring, by its serial number.
    Keyring,
}

/// Why a socket could not be had, as far as the one who shows it needs to know.
#[derive(Debug)]
pub(super) enum Missing {
    /// No AF_ALG at all.
    Family,
    /// The algorithm or driver is not there (or not for this user).
    Algorithm(Errno),
    /// Keys can't be named by serial.
    KeySerial(Errno),
    /// The key was refused, or there is no connection to work with.
    Key(Errno),
}

/// A key in the keyring; it goes when this goes.
struct KeyringKey(Key);

impl Drop for KeyringKey {
    fn drop(&mut self) {
        // Nothing can be done about a key that does not go: it ends with the process's keyring.
        let _ = self.0.invalidate();
    }
}

pub(super) struct Socket {
    operation: OwnedFd,
    _transform: OwnedFd,
    _key: Option<KeyringKey>,
}

pub(super) fn connect(
    algorithm: Algorithm,
    name: &str,
    from: KeyFrom,
    key: &[u8],
) -> std::result::Result<Socket, Missing> {
    let kind = if algorithm.authenticates() {
        "aead"
    } else {
        "skcipher"
    };
    let flags = SockFlag::SOCK_CLOEXEC;
    let transform = socket(AddressFamily::Alg, SockType::SeqPacket, flags, None)
        .map_err(|_| Missing::Family)?;
    let address = AlgAddr::new(kind, name);
    bind(transform.as_raw_fd(), &address).map_err(Missing::Algorithm)?;
    let held = match from {
        KeyFrom::Program => {
            setsockopt(&transform, sockopt::AlgSetKey::default(), &key).map_err(Missing::Key)?;
            None
        }
        KeyFrom::Keyring => Some(set_key_by_serial(transform.as_raw_fd(), key)?),
    };
    if algorithm.authenticates() {
        let size = setsockopt(&transform, sockopt::AlgSetAeadAuthSize, &TAG_BYTES);
        size.map_err(Missing::Key)?;
    }
    let operation = accept4(transform.as_raw_fd(), flags).map_err(Missing::Key)?;
    // SAFETY: accept4 has just given this descriptor, and nothing else knows it.
    let operation = unsafe { OwnedFd::from_raw_fd(operation) };
    // Without the right to it, messages go in pieces, or not at all: seen when they are sent.
    let _ = setsockopt(&operation, sockopt::SndBufForce, &SOCKET_BYTES);
    let _ = setsockopt(&operation, sockopt::RcvBufForce, &SOCKET_BYTES);
    Ok(Socket {
        operation,
        _transform: transform,
        _key: held,
    })
}

fn set_key_by_serial(transform: RawFd, key: &[u8]) -> std::result::Result<KeyringKey, Missing> {
    let refused = |_| Missing::KeySerial(Errno::last());
    let ring = KeyRing::from_special_id(KeyRingIdentifier::Process, true).map_err(refused)?;
    // A description of its own, so that threads don't replace each other's key.
    let description = format!("coffer-lab:{:?}:{transform}", std::thread::current().id());
    let held = ring.add_key(&description, key).map_err(refused)?;
    let serial: i32 = held.get_id().0;
    let held = KeyringKey(held);
    // SAFETY: the kernel reads four bytes at `serial`.
    let status = unsafe {
        libc::setsockopt(
            transform,
            libc::SOL_ALG,
            ALG_SET_KEY_BY_KEY_SERIAL,
            (&raw const serial).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    Errno::result(status).map_err(Missing::KeySerial)?;
    Ok(held)
}

/// Whether a key can be set for it.
pub(super) fn probe(
    algorithm: Algorithm,
    name: &str,
    from: KeyFrom,
) -> std::result::Result<(), Missing> {
    // XTS refuses two equal halves.
    let key: Vec<u8> = (0..algorithm.key_bytes()).map(|i| i as u8).collect();
    connect(algorithm, name, from, &key).map(|_| ())
}

pub(super) fn expand(
    algorithm: Algorithm,
    name: &str,
    from: KeyFrom,
    key: &[u8],
) -> Result<Box<dyn Cipher>> {
    let socket = connect(algorithm, name, from, key).map_err(|missing| LabError::Cipher {
        contender: format!("AF_ALG {name}"),
        what: format!("{missing:?}"),
    })?;
    Ok(if algorithm.authenticates() {
        Box::new(Aead(socket))
    } else {
        Box::new(Skcipher { algorithm, socket })
    })
}

pub(super) fn send(
    socket: &Socket,
    pieces: &[IoSlice<'_>],
    control: &[ControlMessage<'_>],
    flags: MsgFlags,
) -> nix::Result<usize> {
    sendmsg::<()>(socket.operation.as_raw_fd(), pieces, control, flags, None)
}

pub(super) fn receive(socket: &Socket, pieces: &mut [IoSliceMut<'_>]) -> nix::Result<usize> {
    let flags = MsgFlags::empty();
    recvmsg::<()>(socket.operation.as_raw_fd(), pieces, None, flags).map(|message| message.bytes)
}

struct Skcipher {
    algorithm: Algorithm,
    socket: Socket,
}

impl Skcipher {
    fn transform(&mut self, operation: libc::c_int, iv: &[u8], data: &mut [u8]) -> Result<()> {
        let (name, length) = (self.algorithm.kernel_name(), data.len());
        let doing = || format!("AF_ALG {name} of {length} B");
        if data.is_empty() {
            return Ok(());
        }
        let begin = [
            ControlMessage::AlgSetOp(&operation),
            ControlMessage::AlgSetIv(iv),
        ];
        let (mut sent, mut received) = (0, 0);
        while received < data.len() {
            let control: &[ControlMessage<'_>] = if sent == 0 { &begin } else { &[] };
            while sent < data.len() {
                let flags = MsgFlags::MSG_DONTWAIT;
                let control = if sent == 0 { control } else { &[] };
                match send(&self.socket, &[IoSlice::new(&data[sent..])], control, flags) {
                    Ok(count) => sent += count,
                    Err(Errno::EAGAIN) => break,
                    Err(error) => return Err(error).doing(doing),
                }
            }
            // XTS does not go on from one call to the next: it needs its message in one piece.
            if sent < data.len() && self.algorithm == Algorithm::Xts256 {
                return Err(Errno::EMSGSIZE).doing(doing);
            }
            let room = &mut data[received..sent];
            match receive(&self.socket, &mut [IoSliceMut::new(room)]).doing(doing)? {
                0 => return Err(Errno::EIO).doing(doing),
                count => received += count,
            }
        }
        Ok(())
    }
}

impl Cipher for Skcipher {
    fn encrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        self.transform(libc::ALG_OP_ENCRYPT, iv, data)
    }

    fn decrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        self.transform(libc::ALG_OP_DECRYPT, iv, data)
    }
}

struct Aead(Socket);

impl Aead {
    /// Sends additional data, message and perhaps a tag in one piece, as AEADs need it.
    fn send(&self, operation: libc::c_int, iv: &[u8], pieces: [&[u8]; 3]) -> Result<()> {
        let length = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        let doing = || format!("AF_ALG gcm(aes) of {length} B");
        let aad_bytes = u32::try_from(pieces[0].len())
            .map_err(|_| Errno::E2BIG)
            .doing(doing)?;
        let control = [
            ControlMessage::AlgSetOp(&operation),
            ControlMessage::AlgSetIv(iv),
            ControlMessage::AlgSetAeadAssoclen(&aad_bytes),
        ];
        let slices = pieces.map(IoSlice::new);
        let sent = send(&self.0, &slices, &control, MsgFlags::MSG_DONTWAIT).doing(doing)?;
        if sent == length {
            Ok(())
        } else {
            Err(Errno::EMSGSIZE).doing(doing)
        }
    }
}

impl Cipher for Aead {
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
        self.send(libc::ALG_OP_ENCRYPT, iv, [aad, data, &[]])?;
        // The additional data comes back too.
        let mut returned = aad.to_vec();
        let expected = aad.len() + data.len() + TAG_BYTES;
        let mut pieces = [&mut returned[..], data, tag].map(IoSliceMut::new);
        let count = receive(&self.0, &mut pieces).doing(|| "AF_ALG gcm(aes)".into())?;
        if count == expected {
            Ok(())
        } else {
            Err(Errno::EIO).doing(|| "AF_ALG gcm(aes)".into())
        }
    }

    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
        self.send(libc::ALG_OP_DECRYPT, iv, [aad, data, tag])?;
        let mut returned = aad.to_vec();
        // Without room for a byte the kernel does nothing, and so does not look at the tag; with
        // more room than it fills, it waits for another message.
        let spare = &mut [0][..usize::from(returned.is_empty() && data.is_empty())];
        let mut pieces = [&mut returned[..], data, spare].map(IoSliceMut::new);
        match receive(&self.0, &mut pieces) {
            Ok(_) => Ok(()),
            Err(Errno::EBADMSG) => Err(LabError::Tag),
            Err(error) => Err(error).doing(|| "AF_ALG gcm(aes)".into()),
        }
    }
}

/// A socket of the kernel's cipher that one message after another is sent to.
pub struct Operation {
    socket: Socket,
    name: String,
}

impl Operation {
    /// For AES in counter mode, by the name of algorithm or driver.
    pub fn new(name: &str, key: &[u8]) -> Result<Self> {
        let missing = |missing: Missing| LabError::Cipher {
            contender: format!("AF_ALG {name}"),
            what: format!("{missing:?}"),
        };
        let socket = connect(Algorithm::Ctr256, name, KeyFrom::Program, key).map_err(missing)?;
        Ok(Self {
            socket,
            name: name.to_owned(),
        })
    }

    /// Begins a message to encrypt; its bytes follow.
    pub fn begin_encrypting(&self, iv: &[u8]) -> Result<()> {
        self.begin(libc::ALG_OP_ENCRYPT, iv)
    }

    /// Begins a message to decrypt; its bytes follow.
    pub fn begin_decrypting(&self, iv: &[u8]) -> Result<()> {
        self.begin(libc::ALG_OP_DECRYPT, iv)
    }

    fn begin(&self, operation: libc::c_int, iv: &[u8]) -> Result<()> {
        let control = [
            ControlMessage::AlgSetOp(&operation),
            ControlMessage::AlgSetIv(iv),
        ];
        // MSG_MORE says that the message goes on, so that the counter does too.
        let sent = send(&self.socket, &[], &control, MORE);
        sent.map(drop).doing(|| self.doing())
    }

    /// The next bytes of a message, in place. Unless they are its last, they are whole blocks: the
    /// kernel would wait for the rest of one.
    pub fn go_on(&self, data: &mut [u8], is_last: bool) -> Result<()> {
        let flags = if is_last { MsgFlags::empty() } else { MORE };
        let sent = send(&self.socket, &[IoSlice::new(data)], &[], flags);
        let sent = sent.doing(|| self.doing())?;
        let mut received = 0;
        while received < sent {
            let room = &mut data[received..sent];
            let count = receive(&self.socket, &mut [IoSliceMut::new(room)]);
            match count.doing(|| self.doing())? {
                0 => return Err(Errno::EIO).doing(|| self.doing()),
                count => received += count,
            }
        }
        if sent == data.len() {
            Ok(())
        } else {
            Err(Errno::EMSGSIZE).doing(|| self.doing())
        }
    }

    fn doing(&self) -> String {
        format!("AF_ALG {}, as a stream", self.name)
    }
}

impl AsFd for Operation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.operation.as_fd()
    }
}
