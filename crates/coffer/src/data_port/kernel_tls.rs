//! Kernel TLS: after the handshake the kernel seals and opens the records of a connection (Linux,
//! Documentation/networking/tls.rst), and `sendfile` stays what it is.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{TcpTlsRx, TcpTlsTx, TcpUlp, TlsCryptoInfo};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, TlsGetRecordType, recvmsg, setsockopt};
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::{ConnectionTrafficSecrets, ExtractedSecrets, SupportedCipherSuite};
use zeroize::Zeroize;

/// `close_notify` of TLS 1.3 (RFC 8446, section 6): the peer ends its side.
const CLOSE_NOTIFY: u8 = 0;

/// Why the kernel can't take a connection over.
#[derive(Debug, thiserror::Error)]
pub enum NotOffered {
    /// It has no TLS, or has not loaded it.
    #[error("it has none, or its module `tls` is not loaded")]
    Missing,
    /// It refuses the keys.
    #[error("it refuses: {0}")]
    Refused(Errno),
    /// It was not possible to try.
    #[error("it can't be tried: {0}")]
    Untried(io::Error),
}

/// The cipher suites that the kernel seals and opens here, found out on real connections.
///
/// # Errors
/// [`NotOffered`], where there are none.
pub fn offered() -> Result<Vec<SupportedCipherSuite>, NotOffered> {
    let key = || coffer_seal::random_bytes::<32>().into();
    let iv = || coffer_seal::random_bytes::<12>().into();
    let (key_256, iv_256, key_128, iv_128) = (key(), iv(), key(), iv());
    let tries = [
        (
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            ConnectionTrafficSecrets::Aes256Gcm {
                key: key_256,
                iv: iv_256,
            },
        ),
        (
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            ConnectionTrafficSecrets::Aes128Gcm {
                key: key_128,
                iv: iv_128,
            },
        ),
    ];
    let (mut suites, mut refused) = (Vec::new(), None);
    for (suite, secrets) in tries {
        let (one, _other) = connection().map_err(NotOffered::Untried)?;
        match take_over(&one, &[(0, &secrets), (0, &secrets)]) {
            Ok(()) => suites.push(suite),
            Err(Errno::ENOENT) => return Err(NotOffered::Missing),
            Err(error) => refused = Some(error),
        }
    }
    match refused {
        Some(error) if suites.is_empty() => Err(NotOffered::Refused(error)),
        _ => Ok(suites),
    }
}

/// Both ends of a connection within this machine: only such a one takes the kernel's TLS.
fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    Ok((one, listener.accept()?.0))
}

/// Has the kernel seal what is sent and open what comes from now on.
///
/// # Errors
/// When the kernel refuses.
pub fn hand_over(socket: &impl AsFd, secrets: &ExtractedSecrets) -> io::Result<()> {
    let ExtractedSecrets { tx, rx } = secrets;
    Ok(take_over(socket, &[(tx.0, &tx.1), (rx.0, &rx.1)])?)
}

/// Each way with the number of its next record.
fn take_over(
    socket: &impl AsFd,
    [tx, rx]: &[(u64, &ConnectionTrafficSecrets); 2],
) -> nix::Result<()> {
    setsockopt(socket, TcpUlp::default(), b"tls")?;
    setsockopt(socket, TcpTlsTx, &Keys::of(tx.0, tx.1)?.0)?;
    setsockopt(socket, TcpTlsRx, &Keys::of(rx.0, rx.1)?.0)
}

/// The keys of one way, as the kernel takes them. They are gone when this is.
struct Keys(TlsCryptoInfo);

impl Keys {
    /// Filled where it stays: a move would leave a copy behind.
    fn of(number: u64, secrets: &ConnectionTrafficSecrets) -> nix::Result<Box<Self>> {
        let info = |cipher_type| libc::tls_crypto_info {
            version: libc::TLS_1_3_VERSION,
            cipher_type,
        };
        let rec_seq = number.to_be_bytes();
        // Records of TLS 1.3 have their nonce from 12 bytes, which the kernel wants in two pieces.
        match secrets {
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => {
                let mut keys = Box::new(Self(TlsCryptoInfo::Aes256Gcm(
                    libc::tls12_crypto_info_aes_gcm_256 {
                        info: info(libc::TLS_CIPHER_AES_GCM_256),
                        iv: [0; 8],
                        key: [0; 32],
                        salt: [0; 4],
                        rec_seq,
                    },
                )));
                if let TlsCryptoInfo::Aes256Gcm(info) = &mut keys.0 {
                    fill(&mut info.key, key.as_ref())?;
                    fill(&mut info.salt, &iv.as_ref()[..4])?;
                    fill(&mut info.iv, &iv.as_ref()[4..])?;
                }
                Ok(keys)
            }
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => {
                let mut keys = Box::new(Self(TlsCryptoInfo::Aes128Gcm(
                    libc::tls12_crypto_info_aes_gcm_128 {
                        info: info(libc::TLS_CIPHER_AES_GCM_128),
                        iv: [0; 8],
                        key: [0; 16],
                        salt: [0; 4],
                        rec_seq,
                    },
                )));
                if let TlsCryptoInfo::Aes128Gcm(info) = &mut keys.0 {
                    // The key may stand in room for a longer one.
                    fill(&mut info.key, &key.as_ref()[..16])?;
                    fill(&mut info.salt, &iv.as_ref()[..4])?;
                    fill(&mut info.iv, &iv.as_ref()[4..])?;
                }
                Ok(keys)
            }
            // Not among the suites that are offered to clients.
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}

fn fill(room: &mut [u8], bytes: &[u8]) -> nix::Result<()> {
    if room.len() != bytes.len() {
        return Err(Errno::EINVAL);
    }
    room.copy_from_slice(bytes);
    Ok(())
}

impl Drop for Keys {
    fn drop(&mut self) {
        match &mut self.0 {
            TlsCryptoInfo::Aes256Gcm(info) => {
                info.key.zeroize();
                info.salt.zeroize();
                info.iv.zeroize();
            }
            TlsCryptoInfo::Aes128Gcm(info) => {
                info.key.zeroize();
                info.salt.zeroize();
                info.iv.zeroize();
            }
            _ => {}
        }
    }
}

/// Reads what the peer has sent; 0: it has ended its side.
///
/// # Errors
/// Those of the socket, of a record that does not open, and of a record that is of another kind
/// than data. Among those are new keys, which the kernel does not take everywhere.
pub fn receive(socket: &impl AsRawFd, out: &mut [u8]) -> io::Result<usize> {
    let mut control = nix::cmsg_space!(u8);
    let (kind, count) = {
        let mut room = [IoSliceMut::new(out)];
        let flags = MsgFlags::empty();
        let got = recvmsg::<()>(socket.as_raw_fd(), &mut room, Some(&mut control), flags)?;
        let kind = got.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::TlsGetRecordType(kind) => Some(kind),
            _ => None,
        });
        (kind, got.bytes)
    };
    match kind {
        None | Some(TlsGetRecordType::ApplicationData) => Ok(count),
        // Its level, and what it is about.
        Some(TlsGetRecordType::Alert) if out[..count].get(1) == Some(&CLOSE_NOTIFY) => Ok(0),
        Some(TlsGetRecordType::Alert) => Err(io::ErrorKind::ConnectionAborted.into()),
        Some(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a record of TLS that the kernel does not take, such as new keys",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_laid_out_as_the_kernel_wants_them() {
        let (key, iv): ([u8; 32], [u8; 12]) = (
            std::array::from_fn(|at| at as u8),
            std::array::from_fn(|at| 100 + at as u8),
        );
        let secrets = ConnectionTrafficSecrets::Aes256Gcm {
            key: key.into(),
            iv: iv.into(),
        };
        let keys = Keys::of(0x0102, &secrets).unwrap();
        let TlsCryptoInfo::Aes256Gcm(info) = &keys.0 else {
            panic!("another cipher");
        };
        assert_eq!((info.key, info.rec_seq), (key, [0, 0, 0, 0, 0, 0, 1, 2]));
        assert_eq!([&info.salt[..], &info.iv[..]].concat(), iv);
        assert_eq!(info.info.version, 0x0304);
        let secrets = ConnectionTrafficSecrets::Chacha20Poly1305 {
            key: key.into(),
            iv: iv.into(),
        };
        assert!(Keys::of(0, &secrets).is_err());
    }

    /// What the kernel says of itself is what a connection finds.
    #[test]
    fn a_kernel_offers_it_where_it_has_it() {
        let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp");
        let has_it = listed.is_ok_and(|list| list.split_whitespace().any(|one| one == "tls"));
        match offered() {
            Ok(suites) => assert_eq!(suites.len(), 2),
            Err(error) => assert!(!has_it, "{error}"),
        }
    }
}
