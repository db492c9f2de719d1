//! What a server is among the gateways of an engine, as far as its listeners go.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use coffer_s3::{ConnectionHeaders, HttpError, ResponseBody, S3Service};
use coffer_vault::{ReadQuestion, Vault};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::Service;
use rustls::ServerConfig;
use tokio::net::TcpListener;

use crate::connection::activity::Activity;
use crate::connection::proxies::Proxies;
use crate::gateways::ask::ReadAsker;
use crate::gateways::forward::Forwarder;
use crate::gateways::told;
use crate::limits::READS_ANSWER_MAX_BYTES;
use crate::serve::request_body::WatchedBody;
use crate::serve::request_limit::{PermitBody, RequestLimit};

pub mod full_disk;

pub mod disk;

pub mod folder;

pub mod retries;

pub mod tending;

pub mod front;

use self::front::{Front, FrontBody, There};

/// What a server is among gateways.
pub enum Gateway {
    /// None: it is no part of an engine.
    None,
    /// One that follows, and forwards what it does not answer.
    Follower(Box<Forwarder<WatchedBody>>, Arc<ReadAsker>),
    /// The one that serves: what is forwarded to it as well, unless that was taken from here.
    Owner(Option<(TcpListener, Arc<ServerConfig>)>),
}

impl Gateway {
    /// Where others forward to.
    pub fn taken(&mut self) -> Option<(TcpListener, Arc<ServerConfig>)> {
        match self {
            Self::Owner(listener) => listener.take(),
            Self::None | Self::Follower(..) => None,
        }
    }

    /// What answers on a connection of this client.
    pub fn front(
        &self,
        service: &S3Service,
        client: IpAddr,
        proxies: &Proxies,
        activity: &Activity,
    ) -> Front {
        let tls = activity.tls_version();
        let service = service.clone().over_tls(tls);
        let here = if proxies.forwards(client) {
            let told_by = proxies.clone();
            service.for_proxy(move |headers| told_by.client_of_request(headers, client))
        } else {
            service.for_peer(client)
        };
        let Self::Follower(forwarder, reads) = self else {
            return Front::Here(here);
        };
        Front::There(Arc::new(There {
            reading: here.tentative(),
            here,
            reads: reads.clone(),
            forwarder: Forwarder::clone(forwarder),
            client,
            proxies: proxies.clone(),
            tls,
        }))
    }
}

/// What answers a request for which there is no room.
pub trait Refuse: Fn() -> Response<FrontBody> + Clone + Send + Sync + 'static {}

impl<T: Fn() -> Response<FrontBody> + Clone + Send + Sync + 'static> Refuse for T {}

/// How requests are limited.
pub type Limit<R> = RequestLimit<Front, R>;

/// Answers what other gateways forward, each request as its client's.
#[derive(Clone)]
pub struct ForwardedService<R> {
    /// The service, of no connection.
    pub service: S3Service,
    /// The turns that all requests share.
    pub limit: Arc<Limit<R>>,
    /// What gateways that follow ask about.
    pub vault: Vault,
}

impl<R: Refuse> Service<Request<Incoming>> for ForwardedService<R> {
    type Response = Response<PermitBody<FrontBody>>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request;
        if told::is_question(request.headers()) {
            let vault = self.vault.clone();
            return Box::pin(async move { Ok(told_reads(&vault, request).await) });
        }
        let (client, tls) = told::heard(request.headers_mut());
        let of_connection = told::heard_of_connection(request.headers_mut());
        if !of_connection.is_empty() {
            let of_connection = ConnectionHeaders(of_connection);
            request.extensions_mut().insert(of_connection);
        }
        let service = self.service.for_peer(client).over_tls(tls);
        let front = Front::Here(service);
        self.limit
            .before(front, client, Proxies::none())
            .call(request)
    }
}

/// Answers what a gateway that follows asks, to answer reads.
async fn told_reads(vault: &Vault, request: Request<Incoming>) -> Response<PermitBody<FrontBody>> {
    let told = async {
        let body = Limited::new(request.into_body(), READS_ANSWER_MAX_BYTES);
        let body = body.collect().await.ok()?.to_bytes();
        let question: ReadQuestion = serde_json::from_slice(&body).ok()?;
        let answer = vault.answer_follower(&question).await;
        let answer = answer.inspect_err(|error| {
            tracing::debug!(%error, "a gateway that follows was told nothing");
        });
        serde_json::to_vec(&answer.ok()?).ok()
    };
    let told = told.await;
    let mut answer = Response::default();
    if told.is_none() {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    let body = FrontBody::Told(Full::from(told.unwrap_or_default()));
    answer.map(|()| PermitBody::without(body))
}

/// An answer that is made here.
pub fn here(answer: Response<ResponseBody>) -> Response<FrontBody> {
    answer.map(FrontBody::Here)
}
