//! Addresses to listen on.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use crate::error::Error;
use crate::limits::ACCEPT_BACKLOG;

/// Takes an address that this option names, before anything else is done. Connections wait until
/// [`crate::connection::tls_listener::TlsListener::serve`].
pub fn listen(address: SocketAddr, option: &'static str) -> Result<TcpListener, Error> {
    let listen = || -> io::Result<TcpListener> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        // Connections of a server that has just ended must not keep its address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listen().map_err(|source| {
        let advice = match source.kind() {
            io::ErrorKind::AddrInUse => {
                format!("another program has it: stop it, or choose another address with {option}")
            }
            io::ErrorKind::AddrNotAvailable => {
                format!("choose an address of this machine with {option}")
            }
            io::ErrorKind::PermissionDenied => {
                format!("choose a port above 1023 with {option}, or give the permission")
            }
            _ => format!("choose another with {option}"),
        };
        Error::Listen {
            address,
            source,
            advice,
        }
    })
}

/// Where a listener listens.
pub fn local_address(listener: &TcpListener) -> Result<SocketAddr, Error> {
    let failed = |source| Error::System {
        doing: "looking up a listener's address",
        source,
    };
    listener.local_addr().map_err(failed)
}
