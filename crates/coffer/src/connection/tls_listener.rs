//! A TLS listener and its connections.

use std::error::Error as StdError;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use coffer_admin::Traffic;
use coffer_vault::ConnectionCutoff;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use rustls::{NamedGroup, ProtocolVersion};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::connection::activity::Activity;
use crate::connection::coalesce_reads::CoalesceReads;
use crate::connection::cutoff_socket::{CutoffService, CutoffSocket};
use crate::connection::head::refused::{Refusal, RefusedHeads};
use crate::connection::head::timer::HeadTimer;
use crate::connection::minimum_rate::MinimumRate;
use crate::connection::plain_http;
use crate::connection::proxies::Proxies;
use crate::connection::quanta::{ReadCount, WriteByQuanta, by_quanta};
use crate::connection::read_ahead::{Pool, ReadAhead};
use crate::connection::shutdown::Shutdown;
use crate::connection::slots::{Slot, Slots};
use crate::connection::slow_peer::SlowPeerLimit;
use crate::connection::tracked_service::TrackedService;
use crate::limits::{
    ACCEPT_RETRY, HEADER_BYTES, HEADERS_MAX, HTTP_BUFFER_BYTES, LEAVING_TIME, Limits,
    TLS_WRITE_BYTES,
};

/// What the connections of one listener share.
pub struct TlsListener {
    /// Its name in the log.
    pub name: &'static str,
    /// How to shake hands.
    pub tls: Arc<ServerConfig>,
    /// Limits of each connection.
    pub limits: Limits,
    /// How many connections at once, and whose.
    pub slots: Arc<Slots>,
    /// By how many of them one subject asks.
    pub per_subject: usize,
    /// Who tells the addresses of others.
    pub proxies: Proxies,
    /// What is said of a head that is too long for HTTP, where that is not left to HTTP.
    pub refusal: Option<Refusal>,
    /// What is counted.
    pub traffic: Arc<Traffic>,
    /// When to end.
    pub stop: Shutdown,
    /// Buffers for reading.
    pub pool: Arc<Pool>,
}

/// The connection of a client, before anything was read from it.
struct Arrival {
    tcp: TcpStream,
    peer: IpAddr,
    slot: Slot,
}

impl TlsListener {
    /// Serves connections until the end, each with what `service_for` its client's address and slot
    /// gives; returns when the last one has ended.
    pub async fn serve<S, B>(
        self,
        listener: TcpListener,
        service_for: impl Fn(IpAddr, &Activity) -> S + Send + Sync + 'static,
    ) where
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let stop = self.stop.clone();
        let slots = self.slots.clone();
        let (this, service_for) = (Arc::new(self), Arc::new(service_for));
        loop {
            let arrival = tokio::select! {
                biased;
                () = stop.drain.cancelled() => break,
                arrival = this.accept(&listener) => arrival,
            };
            let (this, service_for) = (this.clone(), service_for.clone());
            tokio::spawn(async move {
                let _open = OpenConnection::new(this.traffic.clone());
                this.connection(arrival, &*service_for).await;
            });
        }
        drop(listener);
        slots.all_free().await;
    }

    /// The next connection that gets a slot.
    async fn accept(&self, listener: &TcpListener) -> Arrival {
        loop {
            match listener.accept().await {
                Ok((tcp, peer)) => {
                    let peer = peer.ip().to_canonical();
                    if let Ok(slot) = self.slots.take(peer).await {
                        return Arrival { tcp, peer, slot };
                    }
                    self.traffic.kept_out();
                    tracing::debug!(listener = self.name, %peer, "an address has its share");
                }
                Err(error) => {
                    tracing::warn!(listener = self.name, %error, "could not accept a connection");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    async fn connection<S, B>(
        &self,
        arrival: Arrival,
        service_for: &impl Fn(IpAddr, &Activity) -> S,
    ) where
        S: Service<Request<Incoming>, Response = Response<B>>,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: Body + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let stop = self.stop.clone();
        let activity = arrival.slot.activity().clone();
        let cutoff = ConnectionCutoff::counted(self.per_subject, activity.clone());
        // Boxes, so that an idle connection holds no room for its handshake, nor for moving.
        let opened = Box::pin(timeout(
            self.limits.handshake_timeout(),
            self.shake_hands(arrival, &cutoff),
        ));
        let opened = tokio::select! {
            opened = opened => opened,
            () = stop.drain.cancelled() => return,
            () = activity.asked_to_leave() => {
                self.traffic.made_room();
                return;
            }
        };
        let Ok(Ok(opened)) = opened else {
            self.traffic.handshake_failed();
            return;
        };
        let service = service_for(opened.client, &activity);
        let Some(opened) = self.first_request(opened, &activity, &cutoff).await else {
            return;
        };
        // Ours is dropped last: an erase waits until what it has cut is gone, and then nothing is
        // left of the connection's buffers.
        self.serve_requests(opened, service, activity, cutoff.clone())
            .await;
    }

    /// Waits for the first bytes of a request: until they come, a connection holds no buffers of
    /// HTTP, which are most of what it needs. `None`: they don't come in time, or it must end.
    async fn first_request(
        &self,
        opened: Handshaken,
        activity: &Activity,
        cutoff: &ConnectionCutoff,
    ) -> Option<Handshaken> {
        let mut opened = opened;
        let patience = self.limits.sign_in_timeout();
        let patience = patience.min(self.limits.header_timeout());
        let stop = self.stop.clone();
        let makes_room = tokio::select! {
            asked = opened.tls.fill_buf() => match asked {
                Ok(bytes) if !bytes.is_empty() => return Some(opened),
                _ => return None,
            },
            () = sleep(patience) => true,
            () = activity.asked_to_leave() => true,
            () = stop.drain.cancelled() => false,
            () = cutoff.cut_off() => return None,
        };
        if makes_room {
            self.traffic.made_room();
        }
        let _ = timeout(LEAVING_TIME, opened.tls.shutdown()).await;
        None
    }

    /// Serves requests until the connection ends, by itself or because it must.
    async fn serve_requests<S, B>(
        &self,
        Handshaken { tls, slot, .. }: Handshaken,
        service: S,
        activity: Arc<Activity>,
        cutoff: ConnectionCutoff,
    ) where
        S: Service<Request<Incoming>, Response = Response<B>>,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        B: Body + 'static,
        B::Error: Into<Box<dyn StdError + Send + Sync>>,
    {
        let read = ReadCount::default();
        let service = CutoffService::new(service, cutoff.clone());
        let stream = CoalesceReads::new(WriteByQuanta::new(tls), read.clone());
        let stream = RefusedHeads::new(stream, activity.clone(), self.refusal);
        let builder = http1::Builder::new();
        let mut connection = Box::pin(
            { builder }
                .timer(HeadTimer::default())
                .header_read_timeout(self.limits.header_timeout())
                .max_header_size(HEADER_BYTES)
                .max_headers(HEADERS_MAX)
                .max_buf_size(HTTP_BUFFER_BYTES)
                .writev(true)
                .serve_connection(
                    TokioIo::new(stream),
                    TrackedService::new(service, slot, cutoff.clone()),
                ),
        );
        let mut interruptions = interruptions(cutoff, self.stop.clone(), activity.clone());
        let look = self.limits.sign_in_timeout();
        let was_idle = |requests| activity.is_idle() && activity.requests() == requests;
        interruptions.push(later(look, Interruption::Look { requests: 0 }));
        loop {
            tokio::select! {
                biased;
                Some(interruption) = interruptions.next() => match interruption {
                    Interruption::Drain => connection.as_mut().graceful_shutdown(),
                    Interruption::Abort | Interruption::Cut => return,
                    Interruption::Look { .. } if activity.is_signed_in() => {}
                    Interruption::Look { requests } if was_idle(requests) => {
                        self.traffic.made_room();
                        connection.as_mut().graceful_shutdown();
                        interruptions.push(later(LEAVING_TIME, Interruption::Gone { requests }));
                    }
                    Interruption::Look { .. } => {
                        let requests = activity.requests();
                        interruptions.push(later(look, Interruption::Look { requests }));
                    }
                    Interruption::Leave => {
                        self.traffic.made_room();
                        connection.as_mut().graceful_shutdown();
                        let requests = activity.requests();
                        interruptions.push(later(LEAVING_TIME, Interruption::Gone { requests }));
                    }
                    // A request that came just then is answered.
                    Interruption::Gone { requests } if activity.requests() != requests => {}
                    Interruption::Gone { .. } => return,
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

    /// Hears the proxy out, if it is one, and shakes hands.
    async fn shake_hands(
        &self,
        arrival: Arrival,
        cutoff: &ConnectionCutoff,
    ) -> io::Result<Handshaken> {
        let Arrival {
            mut tcp,
            peer,
            mut slot,
        } = arrival;
        tcp.set_nodelay(true)?;
        let client = self.proxies.client_of(&mut tcp, peer).await?;
        if client != peer && slot.belongs_to(client).is_err() {
            self.traffic.kept_out();
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        if plain_http::is_spoken(&tcp).await? {
            plain_http::refuse(tcp).await;
            return Err(io::ErrorKind::InvalidData.into());
        }
        let socket = CutoffSocket::new(tcp, cutoff.clone());
        let paced = SlowPeerLimit::new(socket, MinimumRate::of(&self.limits), self.traffic.clone());
        let paced = paced.reporting_to(slot.activity().clone());
        let stream = ReadAhead::new(paced, self.pool.clone());
        let mut tls = TlsAcceptor::from(self.tls.clone()).accept(stream).await?;
        let session = tls.get_mut().1;
        session.set_buffer_limit(Some(TLS_WRITE_BYTES));
        let version = match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "1.2",
            _ => "1.3",
        };
        slot.activity().set_tls_version(version);
        let exchange = session.negotiated_key_exchange_group();
        if exchange.is_some_and(|group| group.name() == NamedGroup::X25519MLKEM768) {
            self.traffic.post_quantum();
        }
        Ok(Handshaken {
            tls,
            client,
            slot: Arc::new(slot),
        })
    }
}

/// A connection that has shaken hands.
struct Handshaken {
    tls: tokio_rustls::server::TlsStream<ReadAhead<SlowPeerLimit<CutoffSocket>>>,
    client: IpAddr,
    slot: Arc<Slot>,
}

/// Counts a connection as open until it is dropped: at its end, also when serving it panics.
struct OpenConnection(Arc<Traffic>);

impl OpenConnection {
    fn new(traffic: Arc<Traffic>) -> Self {
        traffic.accepted();
        Self(traffic)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.ended();
    }
}

/// What comes between a connection and its end.
enum Interruption {
    /// What it carried has been erased.
    Cut,
    /// The server ends: requests under way may end.
    Drain,
    /// The server ends at once.
    Abort,
    /// Its slot is needed.
    Leave,
    /// Time to see whether it has signed in, or asked anything since it had made so many requests.
    Look { requests: u64 },
    /// It should have left by now, if there were no more requests than these.
    Gone { requests: u64 },
}

/// The interruptions to come. The task that waits for them is woken many times for each request,
/// and they come a few times in a connection's life: so they are looked at only when one has come.
fn interruptions(
    cutoff: ConnectionCutoff,
    stop: Shutdown,
    activity: Arc<Activity>,
) -> FuturesUnordered<BoxFuture<'static, Interruption>> {
    let cut = async move {
        cutoff.cut_off().await;
        Interruption::Cut
    };
    let Shutdown { drain, abort } = stop;
    let drain = drain.cancelled_owned().map(|()| Interruption::Drain);
    let abort = abort.cancelled_owned().map(|()| Interruption::Abort);
    let leave = async move {
        activity.asked_to_leave().await;
        Interruption::Leave
    };
    FuturesUnordered::from_iter([cut.boxed(), drain.boxed(), abort.boxed(), leave.boxed()])
}

fn later(time: Duration, interruption: Interruption) -> BoxFuture<'static, Interruption> {
    async move {
        sleep(time).await;
        interruption
    }
    .boxed()
}
