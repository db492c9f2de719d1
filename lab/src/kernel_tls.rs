//! Kernel TLS: the records of a connection are sealed and opened by the kernel (Linux,
//! Documentation/networking/tls.rst).

use std::net::TcpStream;

use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{TcpTlsRx, TcpTlsTx, TcpUlp, TlsCryptoInfo};

use crate::contender::Availability;
use crate::kernel_crypto::Config;
use crate::loopback::tcp_pair;

/// Lets the kernel seal what `server` sends and open what `client` receives. Both sides get the
/// same random key: a handshake would take time once, which is not what is measured.
pub fn enable(server: &TcpStream, client: &TcpStream) -> nix::Result<()> {
    let info = libc::tls12_crypto_info_aes_gcm_256 {
        info: libc::tls_crypto_info {
            version: libc::TLS_1_3_VERSION,
            cipher_type: libc::TLS_CIPHER_AES_GCM_256,
        },
        iv: coffer_seal::random_bytes(),
        key: coffer_seal::random_bytes(),
        salt: coffer_seal::random_bytes(),
        rec_seq: [0; 8],
    };
    for side in [server, client] {
        setsockopt(side, TcpUlp::default(), b"tls")?;
    }
    setsockopt(server, TcpTlsTx, &TlsCryptoInfo::Aes256Gcm(info))?;
    setsockopt(client, TcpTlsRx, &TlsCryptoInfo::Aes256Gcm(info))
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
