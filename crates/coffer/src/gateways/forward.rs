//! Forwarding: what a gateway is asked that does not serve goes to the one that does, byte for
//! byte, and so do answers. Signatures stay as they are: nothing of a request is changed that is
//! signed, and what is about its connection is told beside it.

use std::error::Error as StdError;
use std::net::IpAddr;

use coffer_s3::BrokenOff;
use coffer_vault::{StandbyLink, Turn};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri};
use hyper::body::{Body, Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::Error;
use crate::gateways::connector::GatewayConnector;
use crate::gateways::identity::GatewayIdentity;
use crate::gateways::sent_body::SentBody;
use crate::gateways::told;
use crate::limits::{GATEWAY_IDLE, GATEWAY_IDLE_CONNECTIONS, GATEWAY_TURN_WAIT};

/// Forwards requests to the gateway that serves.
pub struct Forwarder<B: Body<Data = Bytes> + Send + Unpin + 'static> {
    pool: Client<GatewayConnector, SentBody<B>>,
    turns: watch::Receiver<Turn>,
    /// What tells whether the engine has ended.
    link: StandbyLink,
}

impl<B: Body<Data = Bytes> + Send + Unpin + 'static> Clone for Forwarder<B> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            turns: self.turns.clone(),
            link: self.link.clone(),
        }
    }
}

/// Why a request was not answered by the gateway that serves.
#[derive(Debug, thiserror::Error)]
pub enum NotForwarded {
    /// None is known that serves: nothing was done.
    #[error(
        "no gateway of this engine serves now, or it is not known which: nothing was done; \
         please try again"
    )]
    NoneServes,
    /// None will.
    #[error(
        "this engine has ended: a standby that followed its log was promoted, and serves in its \
         place; nothing was done here"
    )]
    EngineEnded,
    /// It could not be reached: nothing was done.
    #[error("the gateway that serves could not be reached: nothing was done; please try again")]
    NotReached,
    /// It broke off.
    #[error(
        "the gateway that serves broke off before it answered: whether the request was carried \
         out is in doubt; please try again"
    )]
    InDoubt,
    /// The body broke off on its way from the client, or is none: that is the client's to hear.
    #[error("the body of the request did not arrive whole")]
    Body {
        /// Whether the client was too slow.
        is_too_slow: bool,
    },
}

impl<B> Forwarder<B>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: BrokenOff + StdError + Send + Sync + 'static,
{
    /// Forwards to whose turn it is, by a gateway of this engine.
    ///
    /// # Errors
    /// Of the TLS library.
    pub fn new(
        identity: &GatewayIdentity,
        turns: watch::Receiver<Turn>,
        link: StandbyLink,
    ) -> Result<Self, Error> {
        let pool = pool_of(identity)?;
        Ok(Self { pool, turns, link })
    }

    /// Has a request of this client answered.
    ///
    /// # Errors
    /// [`NotForwarded`].
    pub async fn forward(
        &self,
        request: Request<B>,
        client: IpAddr,
        tls: Option<&'static str>,
    ) -> Result<Response<Incoming>, NotForwarded> {
        let (mut head, body) = request.into_parts();
        // First: dropped, it is read on.
        let body = SentBody::new(body, coffer_s3::waits_to_send(&head.headers));
        if self.link.is_ended() {
            return Err(NotForwarded::EngineEnded);
        }
        let address = self.address().await.ok_or(NotForwarded::NoneServes)?;
        head.uri = at(&address, &head.uri).ok_or(NotForwarded::NoneServes)?;
        let of_connection = told::take_of_connection(&mut head.headers);
        told::tell_of_connection(&mut head.headers, &of_connection);
        told::tell(&mut head.headers, client, tls);
        let mut turns = self.turns.clone();
        let asked = tokio::select! {
            asked = self.pool.request(Request::from_parts(head, body)) => asked,
            // Its connection may stay open, and nothing come over it any more.
            _ = turns.wait_for(|turn| is_past(&address, turn)) => {
                return Err(NotForwarded::InDoubt);
            }
        };
        let mut answer = asked.map_err(|error| {
            tracing::debug!(%error, to = %address, "a request was not forwarded");
            match body_failure::<B::Error>(&error) {
                Some(failure) => NotForwarded::Body {
                    is_too_slow: failure.is_too_slow(),
                },
                None if error.is_connect() => NotForwarded::NotReached,
                None => NotForwarded::InDoubt,
            }
        })?;
        // Of the other's HTTP, which was told two headers more: no refusal of this connection's.
        if answer.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE {
            *answer.status_mut() = StatusCode::BAD_REQUEST;
        }
        told::take_of_connection(answer.headers_mut());
        Ok(answer)
    }

    /// Where the gateway is that serves: while it changes, that is waited for.
    async fn address(&self) -> Option<Authority> {
        let mut turns = self.turns.clone();
        let is_known = |turn: &Turn| *turn != Turn::Unknown;
        let turn = timeout(GATEWAY_TURN_WAIT, turns.wait_for(is_known)).await;
        match &*turn.ok()?.ok()? {
            Turn::Other { address } => address.parse().ok(),
            Turn::Mine | Turn::Unknown => None,
        }
    }
}

/// How the body failed that was sent, where that is why.
fn body_failure<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut causes = std::iter::successors(Some(error), |error| StdError::source(*error));
    causes.find_map(|cause| cause.downcast_ref())
}

/// Whether the turn of the gateway at this address is over. Where it is not known whose it is, that
/// one answers for as long as its lease lasts, which it knows best: what is under way goes on.
fn is_past(address: &Authority, turn: &Turn) -> bool {
    match turn {
        Turn::Other { address: at } => address != at,
        Turn::Mine => true,
        Turn::Unknown => false,
    }
}

/// Connections to other gateways of an engine.
///
/// # Errors
/// Of the TLS library.
pub(super) fn pool_of<B>(identity: &GatewayIdentity) -> Result<Client<GatewayConnector, B>, Error>
where
    B: Body + Send,
    B::Data: Send,
{
    let connector = GatewayConnector::new(identity.client()?);
    let pool = Client::builder(TokioExecutor::new())
        .pool_idle_timeout(GATEWAY_IDLE)
        .pool_max_idle_per_host(GATEWAY_IDLE_CONNECTIONS)
        .pool_timer(TokioTimer::new())
        .http1_max_headers(HEADERS_MAX)
        .build(connector);
    Ok(pool)
}

/// Answers of S3 have metadata in headers, of up to 2 KiB.
const HEADERS_MAX: usize = 256;

/// The same path and query, at a gateway.
pub(super) fn at(address: &Authority, asked: &Uri) -> Option<Uri> {
    let root = || PathAndQuery::from_static("/");
    let path = asked.path_and_query().cloned().unwrap_or_else(root);
    let uri = Uri::builder().scheme(Scheme::HTTPS);
    uri.authority(address.clone())
        .path_and_query(path)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_under_way_ends_where_another_serves_and_not_where_it_is_not_known() {
        let address = "10.0.0.1:9003".parse().unwrap();
        let other = |at: &str| Turn::Other {
            address: at.to_owned(),
        };
        assert!(!is_past(&address, &Turn::Unknown));
        assert!(!is_past(&address, &other("10.0.0.1:9003")));
        assert!(is_past(&address, &other("10.0.0.2:9003")));
        assert!(is_past(&address, &Turn::Mine));
    }

    #[test]
    fn path_and_query_stay_as_they_were_signed() {
        let asked: Uri = "/bucket/a%20b%2Fc?versionId=1&x=%2B".parse().unwrap();
        let found = at(&"[::1]:9003".parse().unwrap(), &asked).unwrap();
        assert_eq!(
            found.to_string(),
            "https://[::1]:9003/bucket/a%20b%2Fc?versionId=1&x=%2B"
        );
    }
}
