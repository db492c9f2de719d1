//! A look at the wire: whether plaintext passes.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, setsockopt, socket,
    sockopt,
};

use crate::error::{Doing, Result};
use crate::measuring::content::marker;
use crate::net::link::Link;

/// Room for all packets of a trial.
const ROOM_BYTES: usize = 64 << 20;

/// `ARPHRD_ETHER` of linux/if_arp.h.
const ETHERNET: u16 = 1;

/// Listens to everything in the receiver's namespace.
pub(super) struct Tap(OwnedFd);

impl Tap {
    /// Begins to listen.
    pub(super) fn open(link: &Link) -> Result<Self> {
        link.inside_wire(|| {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let kind = (AddressFamily::Packet, SockType::Raw, SockProtocol::EthAll);
            let socket = socket(kind.0, kind.1, flags, kind.2);
            let socket = socket.doing(|| "listening on the wire".into())?;
            setsockopt(&socket, sockopt::RcvBufForce, &ROOM_BYTES)
                .doing(|| "listening on the wire".into())?;
            Ok(Self(socket))
        })
    }

    /// Whether a part of what was sent was seen as it is.
    pub(super) fn saw_plaintext(&self) -> Result<bool> {
        let mut packet = vec![0; 128 << 10];
        loop {
            match recvfrom::<LinkAddr>(self.0.as_raw_fd(), &mut packet) {
                // What a tunnel has opened again is seen on its own device, and on loopback.
                Ok((_, from)) if from.is_none_or(|from| from.hatype() != ETHERNET) => {}
                Ok((count, _)) => {
                    let mut places = packet[..count].windows(marker().len());
                    if places.any(|place| place == marker()) {
                        return Ok(true);
                    }
                }
                Err(Errno::EAGAIN) => return Ok(false),
                Err(error) => return Err(error).doing(|| "listening on the wire".into()),
            }
        }
    }
}
