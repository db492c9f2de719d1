//! How many requests may be under way at once.
//!
//! What a request needs in memory is bounded, so their number bounds the server. A request waits
//! a while for its turn, then it is answered `503 SlowDown`, on which S3's clients try again. A
//! turn lasts until the last byte of the answer. How they are shared is in
//! [`crate::serve::permits`].

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use coffer_admin::Traffic;
use coffer_s3::Claim;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::service::Service;

use crate::connection::minimum_rate::MinimumRate;
use crate::connection::proxies::Proxies;
use crate::limits::Limits;
use crate::serve::permits::{Permit, Permits};
use crate::serve::request_body::WatchedBody;

/// Whom a request claims to be of, as permits are shared: all access keys of a subject are one.
pub type Claimed<S> = fn(&S, &Request<Incoming>) -> Option<Claim>;

/// A service that lets only so many requests through to another.
#[derive(Debug, Clone)]
pub struct RequestLimit<S, R> {
    inner: S,
    /// Whose the connection is, and the proxies that tell whose its requests are.
    client: IpAddr,
    proxies: Proxies,
    shared: Arc<Shared<S, R>>,
}

/// What is the same on all connections.
#[derive(Debug)]
struct Shared<S, R> {
    /// Makes the answer for those that found no turn.
    refuse: R,
    claimed: Claimed<S>,
    permits: Arc<Permits>,
    wait: Duration,
    minimum: MinimumRate,
    traffic: Arc<Traffic>,
}

impl<S, R> RequestLimit<S, R> {
    /// Stands before `inner`; `refuse` answers who finds no turn.
    pub fn new(
        inner: S,
        refuse: R,
        claimed: Claimed<S>,
        limits: &Limits,
        traffic: Arc<Traffic>,
    ) -> Self {
        Self {
            inner,
            client: Ipv4Addr::UNSPECIFIED.into(),
            proxies: Proxies::none(),
            shared: Arc::new(Shared {
                refuse,
                claimed,
                permits: Permits::new(limits.requests),
                wait: Duration::from_secs(limits.request_wait_seconds),
                minimum: MinimumRate::of(limits),
                traffic,
            }),
        }
    }

    /// The same turns before another service, for a connection of this client.
    pub fn before(&self, inner: S, client: IpAddr, proxies: Proxies) -> Self {
        Self {
            inner,
            client,
            proxies,
            shared: self.shared.clone(),
        }
    }

    fn paced(&self, body: Incoming) -> WatchedBody {
        WatchedBody::new(body, self.shared.minimum, self.shared.traffic.clone())
    }

    /// The answer to a request that found no turn. Its client may be sending, and would see a
    /// broken connection instead of the answer if nothing were read.
    fn refusal<B>(&self, request: Request<Incoming>) -> Response<PermitBody<B>>
    where
        R: Fn() -> Response<B>,
    {
        let (head, body) = request.into_parts();
        let mut answer = (self.shared.refuse)();
        if coffer_s3::discard(&head.headers, self.paced(body)) {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        answer.map(PermitBody::without)
    }

    /// A permit; none if there was none in time. The claim is taken at its word: signatures are
    /// checked before a body is read, so that a request that claims another's key holds it for no
    /// time.
    async fn permit(&self, request: &Request<Incoming>) -> Option<Permit> {
        let address = self
            .proxies
            .client_of_request(request.headers(), self.client);
        let claimed = (self.shared.claimed)(&self.inner, request);
        let permits = &self.shared.permits;
        let party = permits.party(address, claimed);
        permits.take(party, self.shared.wait).await
    }
}

impl<S, R, B> Service<Request<Incoming>> for RequestLimit<S, R>
where
    R: Fn() -> Response<B> + Clone + Send + Sync + 'static,
    S: Service<Request<WatchedBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<PermitBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let Some(permit) = this.permit(&request).await else {
                this.shared.traffic.turned_away();
                return Ok(this.refusal(request));
            };
            let request = request.map(|body| this.paced(body));
            let answer = this.inner.call(request).await?;
            let permit = Some(permit);
            Ok(answer.map(|body| PermitBody {
                body,
                _permit: permit,
            }))
        })
    }
}

/// The body of an answer.
#[derive(Debug)]
pub struct PermitBody<B> {
    body: B,
    /// Given back when the body is dropped.
    _permit: Option<Permit>,
}

impl<B> PermitBody<B> {
    /// The body of what takes no turn.
    pub fn without(body: B) -> Self {
        Self {
            body,
            _permit: None,
        }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for PermitBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
