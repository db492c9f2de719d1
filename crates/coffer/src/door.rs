//! A TLS listener and its connections.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use coffer_admin::Traffic;
use coffer_vault::Lifeline;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::error::Error;
use crate::gather::Gathered;
use crate::limits::{
    ACCEPT_BACKLOG, ACCEPT_RETRY, HEADER_BYTES, HTTP_BUFFER_BYTES, Limits, TLS_WRITE_BYTES,
};
use crate::paced::Paced;
use crate::quantum::{ReadCount, by_quanta};
use crate::read_ahead::{Pool, ReadAhead};
use crate::severed::{OnLifeline, Severable};
use crate::shutdown::{Phase, Stop};

/// Takes an address, before anything else is done. Connections wait until [`Door::serve`].
pub fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    let listen = || -> io::Result<TcpListener> {
        let socket = match address.is_ipv4() {
            true => TcpSocket::new_v4()?,
            false => TcpSocket::new_v6()?,
        };
        // Connections of a server that has just ended must not keep its address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(ACCEPT_BACKLOG)
    };
    listen().map_err(|source| {
        let advice = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "another program has it: stop it, or choose another address with --listen or \
                 --admin-listen"
            }
            io::ErrorKind::AddrNotAvailable => "choose an address of this machine",
            io::ErrorKind::PermissionDenied => "choose a port above 1023, or give the permission",
            _ => "choose another with --listen or --admin-listen",
        };
        Error::Listen {
            address,
            source,
            advice,
        }
    })
}

/// What the connections of one listener share.
pub struct Door {
    /// Its name in the log.
    pub name: &'static str,
    /// How to shake hands.
    pub tls: Arc<ServerConfig>,
    /// Limits of each connection.
    pub limits: Limits,
    /// Connections at once.
    pub connections: usize,
    /// What is counted.
    pub traffic: Arc<Traffic>,
    /// When to end.
    pub stop: Stop,
    /// Buffers for reading.
    pub pool: Arc<Pool>,
}

impl Door {
    /// Serves connections until the end, each with what `service_for` its peer gives; returns when
    /// the last one has ended.
    pub async fn serve<S, B>(self, listener: TcpListener, service_for: impl Fn(SocketAddr) -> S)
    where
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let slots = Arc::new(Semaphore::new(self.connections));
        let connections = self.connections;
        let mut stop = self.stop.clone();
        let door = Arc::new(self);
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.reached(Phase::Drain) => break,
                accepted = door.accept(&listener, &slots) => accepted,
            };
            let (slot, tcp, peer) = accepted;
            let (door, service) = (door.clone(), service_for(peer));
            let open = Open::new(door.traffic.clone(), slot);
            tokio::spawn(async move {
                let _open = open;
                door.connection(tcp, service).await;
            });
        }
        drop(listener);
        let all = u32::try_from(connections).unwrap_or(u32::MAX);
        let _ = slots.acquire_many(all).await;
    }

    /// Waits for a free slot first: more connections than we serve wait in the kernel, where they
    /// cost little.
    async fn accept(
        &self,
        listener: &TcpListener,
        slots: &Arc<Semaphore>,
    ) -> (OwnedSemaphorePermit, TcpStream, SocketAddr) {
        if slots.available_permits() == 0 {
            tracing::warn!(
                listener = self.name,
                connections = self.connections,
                "as many connections as allowed: others wait"
            );
        }
        let slot = slots
            .clone()
            .acquire_owned()
            .await
            .expect("nobody closes the semaphore");
        loop {
            match listener.accept().await {
                Ok((tcp, peer)) => return (slot, tcp, peer),
                Err(error) => {
                    tracing::warn!(listener = self.name, %error, "could not accept a connection");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn connection<S, B>(&self, tcp: TcpStream, service: S)
    where
        S: Service<Request<Incoming>, Response = Response<B>>,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: Body + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let mut stop = self.stop.clone();
        let lifeline = Lifeline::default();
        let handshake = timeout(
            self.limits.handshake_timeout(),
            self.handshake(tcp, &lifeline),
        );
        let tls = tokio::select! {
            tls = handshake => tls,
            () = stop.reached(Phase::Drain) => return,
        };
        let Ok(Ok(tls)) = tls else {
            self.traffic.handshake_failed();
            return;
        };
        let read = ReadCount::default();
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_timeout())
            .max_header_size(HEADER_BYTES)
            .max_buf_size(HTTP_BUFFER_BYTES)
            .writev(true)
            .serve_connection(
                TokioIo::new(Gathered::new(tls, read.clone())),
                OnLifeline::new(service, lifeline.clone()),
            );
        let mut connection = std::pin::pin!(connection);
        let mut interruptions = interruptions(lifeline, stop);
        loop {
            tokio::select! {
                biased;
                Some(interruption) = interruptions.next() => match interruption {
                    Interruption::Phase(Phase::Drain) => connection.as_mut().graceful_shutdown(),
                    Interruption::Phase(_) | Interruption::Cut => return,
                },
                ended = by_quanta(connection.as_mut(), &read) => {
                    if let Err(error) = ended {
                        tracing::debug!(listener = self.name, %error, "a connection broke off");
                    }
                    return;
                }
            }
        }
    }

    async fn handshake(
        &self,
        tcp: TcpStream,
        lifeline: &Lifeline,
    ) -> io::Result<tokio_rustls::server::TlsStream<ReadAhead<Paced<Severable>>>> {
        tcp.set_nodelay(true)?;
        let socket = Severable::new(tcp, lifeline.clone());
        let paced = Paced::new(socket, self.limits.minimum(), self.traffic.clone());
        let stream = ReadAhead::new(paced, self.pool.clone());
        let mut tls = TlsAcceptor::from(self.tls.clone()).accept(stream).await?;
        tls.get_mut().1.set_buffer_limit(Some(TLS_WRITE_BYTES));
        Ok(tls)
    }
}

/// Counts a connection as open until it is dropped: at its end, also when serving it panics.
struct Open {
    traffic: Arc<Traffic>,
    _slot: OwnedSemaphorePermit,
}

impl Open {
    fn new(traffic: Arc<Traffic>, slot: OwnedSemaphorePermit) -> Self {
        traffic.accepted();
        Self {
            traffic,
            _slot: slot,
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.traffic.ended();
    }
}

/// What comes between a connection and its end.
enum Interruption {
    /// What it carried has been erased.
    Cut,
    /// The server ends.
    Phase(Phase),
}

/// The interruptions to come. Whoever waits for them is woken many times for each request, and they
/// come once in a connection's life: so they are looked at only when one of them has come.
fn interruptions(
    lifeline: Lifeline,
    stop: Stop,
) -> FuturesUnordered<BoxFuture<'static, Interruption>> {
    let cut = async move {
        lifeline.cut_off().await;
        Interruption::Cut
    };
    let reached = |phase: Phase, mut stop: Stop| async move {
        stop.reached(phase).await;
        Interruption::Phase(phase)
    };
    let drain = reached(Phase::Drain, stop.clone());
    let abort = reached(Phase::Abort, stop);
    FuturesUnordered::from_iter([cut.boxed(), drain.boxed(), abort.boxed()])
}
