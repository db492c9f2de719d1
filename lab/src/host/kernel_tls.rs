//! Kernel TLS: the records of a connection are sealed and opened by the kernel (Linux,
//! Documentation/networking/tls.rst).

use std::net::TcpStream;

use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{SetUsize, TcpTlsRx, TcpTlsTx, TcpUlp, TlsCryptoInfo};

use crate::contender::Availability;
use crate::host::kernel_crypto::Config;
use coffer_measure::loopback::tcp_pair;

/// What the settings of contenders say.
pub const SETTINGS: &str = "TLS 1.3 records, AES-256-GCM, both ways, without a handshake; \
                            TLS_RX_EXPECT_NO_PAD where the kernel knows it";

/// `TLS_RX_EXPECT_NO_PAD` of linux/tls.h (Linux 6.0): promises that records come without padding,
/// as here. Then the kernel opens them right into the reader's memory.
#[derive(Debug, Clone, Copy)]
struct ExpectNoPadding;

const TLS_RX_EXPECT_NO_PAD: libc::c_int = 4;

nix::setsockopt_impl!(
    ExpectNoPadding,
    libc::SOL_TLS,
    TLS_RX_EXPECT_NO_PAD,
    usize,
    SetUsize
);

/// Lets the kernel seal and open all that goes over a connection. Both ends get the same random
/// keys, one for each direction: a handshake would take time once, which is not what is measured.
pub fn enable(one: &TcpStream, other: &TcpStream) -> nix::Result<()> {
    for side in [one, other] {
        setsockopt(side, TcpUlp::default(), b"tls")?;
    }
    for (from, to) in [(one, other), (other, one)] {
        let info = random_keys();
        setsockopt(from, TcpTlsTx, &TlsCryptoInfo::Aes256Gcm(info))?;
        setsockopt(to, TcpTlsRx, &TlsCryptoInfo::Aes256Gcm(info))?;
        match setsockopt(to, ExpectNoPadding, &1) {
            // An older kernel opens them elsewhere, and copies.
            Ok(()) | Err(Errno::ENOPROTOOPT | Errno::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn random_keys() -> libc::tls12_crypto_info_aes_gcm_256 {
    libc::tls12_crypto_info_aes_gcm_256 {
        info: libc::tls_crypto_info {
            version: libc::TLS_1_3_VERSION,
            cipher_type: libc::TLS_CIPHER_AES_GCM_256,
        },
        iv: coffer_seal::random_bytes(),
        key: coffer_seal::random_bytes(),
        salt: coffer_seal::random_bytes(),
        rec_seq: [0; 8],
    }
}

/// Whether this kernel does it, found out on a real connection.
pub fn availability() -> Availability {
    let Ok((client, server)) = tcp_pair() else {
        return Availability::cannot("no connection within this machine", "a loopback interface");
    };
    let remedy = "a kernel that has it, as Debian's (modprobe tls); try coffer-lab kernel";
    match enable(&server, &client) {
        Ok(()) => Availability::Runs,
        Err(Errno::ENOENT) => Availability::cannot(
            format!("kernel TLS: {}", Config::read().lacks("CONFIG_TLS")),
            remedy,
        ),
        Err(error) => Availability::cannot(format!("kernel TLS refuses: {error}"), remedy),
    }
}
