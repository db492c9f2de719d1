//! The listener of the data port, and its connections.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use coffer_vault::{ConnectionCutoff, NotTaken, Vault, VaultError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::connection::activity::Activity;
use crate::connection::cutoff_socket::CutoffSocket;
use crate::connection::minimum_rate::MinimumRate;
use crate::connection::plain_http;
use crate::connection::shutdown::Shutdown;
use crate::connection::slots::{Slot, Slots};
use crate::data_port::handshake::DataTls;
use crate::data_port::head::{Asked, Head, Refusal, parse};
use crate::data_port::peer::{Peer, is_passing};
use crate::data_port::receive::{NotReceived, receive};
use crate::data_port::records::Records;
use crate::data_port::send::send;
use crate::limits::{
    ACCEPT_RETRY, DATA_DRAIN_BYTES, DATA_DRAIN_MAX_BYTES, DATA_DRAIN_TIME, DATA_HEAD_BYTES,
    DATA_HEAD_TIME, Limits,
};

/// What the connections of the data port share.
pub struct DataListener {
    /// Whose tickets are good here.
    pub vault: Vault,
    /// Limits of each connection.
    pub limits: Limits,
    /// How many connections at once, and whose.
    pub slots: Arc<Slots>,
    /// By how many of them one subject asks.
    pub per_subject: usize,
    /// How it speaks TLS, if it does.
    pub tls: Option<DataTls>,
    /// When to end.
    pub stop: Shutdown,
}

impl DataListener {
    /// Serves connections until the end; returns when the last one has ended.
    pub async fn serve(self, listener: TcpListener) {
        let (stop, slots) = (self.stop.clone(), self.slots.clone());
        let this = Arc::new(self);
        loop {
            let (tcp, slot) = tokio::select! {
                biased;
                () = stop.drain.cancelled() => break,
                arrival = this.accept(&listener) => arrival,
            };
            let this = this.clone();
            tokio::spawn(async move { this.connection(tcp, slot).await });
        }
        drop(listener);
        slots.all_free().await;
    }

    /// The next connection that gets a slot.
    async fn accept(&self, listener: &TcpListener) -> (TcpStream, Slot) {
        loop {
            match listener.accept().await {
                Ok((tcp, peer)) => {
                    let peer: IpAddr = peer.ip().to_canonical();
                    if let Ok(slot) = self.slots.take(peer).await {
                        return (tcp, slot);
                    }
                    tracing::debug!(listener = "data", %peer, "an address has its share");
                }
                Err(error) => {
                    tracing::warn!(listener = "data", %error, "could not accept a connection");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn connection(&self, tcp: TcpStream, slot: Slot) {
        let activity = slot.activity().clone();
        let cutoff = ConnectionCutoff::counted(self.per_subject, activity.clone());
        // Dropped before the cutoff, for an erase waits until what it has cut is gone.
        let socket = CutoffSocket::new(tcp, cutoff.clone());
        let abort = self.stop.abort.clone();
        let served = tokio::select! {
            biased;
            () = cutoff.cut_off() => return,
            () = abort.cancelled() => return,
            served = cutoff.scope(self.requests(&socket, &slot)) => served,
        };
        if let Err(error) = served {
            tracing::debug!(listener = "data", %error, "a connection broke off");
        }
    }

    /// Answers one request after the other.
    async fn requests(&self, socket: &CutoffSocket, slot: &Slot) -> io::Result<()> {
        let (tcp, activity) = (socket.tcp(), slot.activity());
        tcp.set_nodelay(true)?;
        // A box, so that the connection holds no room for its handshake afterwards.
        let Some(records) = Box::pin(self.records(tcp, activity)).await? else {
            return Ok(());
        };
        let mut peer = Peer::new(tcp, records, MinimumRate::of(&self.limits));
        let mut buffer = Vec::new();
        loop {
            let has_more = !buffer.is_empty() || peer.holds_more()?;
            if !has_more && !self.wakes(tcp, activity).await? {
                return Ok(());
            }
            activity.begin();
            let answered = self.request(&mut peer, &mut buffer, slot).await;
            activity.end();
            if !answered? {
                return Ok(());
            }
        }
    }

    /// Shakes hands, where that is to be. None: the connection is to end.
    async fn records(&self, tcp: &TcpStream, activity: &Activity) -> io::Result<Option<Records>> {
        let Some(tls) = &self.tls else {
            return Ok(Some(Records::None));
        };
        let opening = async {
            if !plain_http::is_spoken(tcp).await? {
                return tls.accept(tcp).await.map(Some);
            }
            let mut peer = Peer::new(tcp, Records::None, MinimumRate::of(&self.limits));
            let kind = "Content-Type: text/plain\r\n";
            answer(
                &mut peer,
                "400 Bad Request",
                kind,
                plain_http::SENTENCE,
                false,
            )
            .await?;
            Ok(None)
        };
        tokio::select! {
            opened = timeout(self.limits.handshake_timeout(), opening) => opened?,
            () = activity.asked_to_leave() => Ok(None),
            () = self.stop.drain.cancelled() => Ok(None),
        }
    }

    /// Waits for the next request; says whether one comes.
    async fn wakes(&self, tcp: &TcpStream, activity: &Activity) -> io::Result<bool> {
        let patience = if activity.is_signed_in() {
            self.limits.header_timeout()
        } else {
            self.limits.sign_in_timeout()
        };
        tokio::select! {
            ready = has_come(tcp) => ready.map(|()| true),
            () = sleep(patience) => Ok(false),
            () = activity.asked_to_leave() => Ok(false),
            () = self.stop.drain.cancelled() => Ok(false),
        }
    }

    /// Answers a request; says whether another may follow.
    async fn request(
        &self,
        peer: &mut Peer<'_>,
        buffer: &mut Vec<u8>,
        slot: &Slot,
    ) -> io::Result<bool> {
        let head = timeout(DATA_HEAD_TIME, read_head(peer, buffer)).await?;
        let Head {
            asked,
            keeps_open,
            bytes,
        } = match head? {
            Some(Ok(head)) => head,
            Some(Err(refusal)) => return refuse(peer, refusal, false).await,
            None => return Ok(false),
        };
        buffer.drain(..bytes);
        let keeps_open = keeps_open && peer.lasts();
        match asked {
            Err(refusal) => refuse(peer, refusal, keeps_open).await,
            Ok(Asked::Get(ticket)) => {
                let Ok(sending) = self.vault.take_transfer(&ticket).await else {
                    return refuse(peer, Refusal::NotFound, keeps_open).await;
                };
                slot.sign_in();
                send(peer, sending, keeps_open).await?;
                Ok(keeps_open)
            }
            Ok(Asked::Put {
                ticket,
                length,
                waits,
            }) => {
                let Ok(arrival) = self.vault.take_arrival(ticket).await else {
                    return refuse(peer, Refusal::NotFound, false).await;
                };
                slot.sign_in();
                if arrival.missing_bytes() != length {
                    return refuse(peer, Refusal::Malformed, false).await;
                }
                if waits {
                    peer.send(b"HTTP/1.1 100 Continue\r\n\r\n", false).await?;
                }
                let come = buffer
                    .len()
                    .min(usize::try_from(length).unwrap_or(usize::MAX));
                let come: Vec<u8> = buffer.drain(..come).collect();
                match receive(peer, arrival, &come).await {
                    Ok(()) => {
                        let close = if keeps_open {
                            ""
                        } else {
                            "Connection: close\r\n"
                        };
                        let head = format!("HTTP/1.1 204 No Content\r\n{close}\r\n");
                        peer.send(head.as_bytes(), false).await?;
                        Ok(keeps_open)
                    }
                    Err(NotReceived::Connection(error)) => Err(error),
                    Err(NotReceived::NotTaken(refused)) => not_taken(peer, &refused).await,
                }
            }
        }
    }
}

/// Waits until the peer has sent something, or ended its side. After a request the socket may count
/// as ready though all of it was read: the kernel is asked.
async fn has_come(tcp: &TcpStream) -> io::Result<()> {
    loop {
        tcp.readable().await?;
        let looked = tcp.try_io(Interest::READABLE, || {
            let mut sockets = [PollFd::new(tcp, PollFlags::IN)];
            match poll(&mut sockets, Some(&Timespec::default()))? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                _ => Ok(()),
            }
        });
        match looked {
            Err(error) if is_passing(&error) => {}
            looked => return looked,
        }
    }
}

/// Reads on until the head of a request is whole. None: there is no request.
async fn read_head(
    peer: &mut Peer<'_>,
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Result<Head, Refusal>>> {
    loop {
        match parse(buffer) {
            Ok(Some(head)) => return Ok(Some(Ok(head))),
            Ok(None) if buffer.len() < DATA_HEAD_BYTES => {}
            Ok(None) | Err(_) => return Ok(Some(Err(Refusal::Malformed))),
        }
        let filled = buffer.len();
        buffer.resize(DATA_HEAD_BYTES, 0);
        let count = peer.read(&mut buffer[filled..]).await;
        buffer.truncate(filled + *count.as_ref().unwrap_or(&0));
        if count? == 0 {
            return Ok(None);
        }
    }
}

async fn refuse(peer: &mut Peer<'_>, refusal: Refusal, keeps_open: bool) -> io::Result<bool> {
    let (status, more) = match refusal {
        Refusal::Malformed => ("400 Bad Request", ""),
        Refusal::NotFound => ("404 Not Found", ""),
        Refusal::Method => ("405 Method Not Allowed", "Allow: GET, PUT\r\n"),
        Refusal::Length => ("411 Length Required", ""),
    };
    answer(peer, status, more, "", keeps_open).await
}

async fn not_taken(peer: &mut Peer<'_>, refused: &NotTaken) -> io::Result<bool> {
    match refused {
        NotTaken::NotSealed => {
            let text = format!("{refused}\n");
            let more = "Content-Type: text/plain\r\n";
            answer(peer, "422 Unprocessable Content", more, &text, false).await
        }
        NotTaken::Over => refuse(peer, Refusal::NotFound, false).await,
        NotTaken::Failed(error) => {
            tracing::warn!(listener = "data", %error, "what was sent could not be stored");
            let status = match error {
                VaultError::StorageFull => "507 Insufficient Storage",
                _ => "500 Internal Server Error",
            };
            answer(peer, status, "", "", false).await
        }
    }
}

/// Sends an answer; where it ends the connection, hears the client out for a while, which would
/// not see the answer otherwise.
async fn answer(
    peer: &mut Peer<'_>,
    status: &str,
    more: &str,
    body: &str,
    keeps_open: bool,
) -> io::Result<bool> {
    let close = if keeps_open {
        ""
    } else {
        "Connection: close\r\n"
    };
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{more}Content-Length: {length}\r\n{close}\r\n{body}");
    peer.send(text.as_bytes(), false).await?;
    if !keeps_open {
        peer.end().await?;
        let _ = timeout(DATA_DRAIN_TIME, drain(peer)).await;
    }
    Ok(keeps_open)
}

async fn drain(peer: &mut Peer<'_>) -> io::Result<()> {
    let mut thrown_away = vec![0; DATA_DRAIN_BYTES];
    let mut drained = 0;
    while drained < DATA_DRAIN_MAX_BYTES {
        match peer.read(&mut thrown_away).await? {
            0 => break,
            count => drained += count as u64,
        }
    }
    Ok(())
}
