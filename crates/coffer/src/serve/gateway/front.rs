//! What answers requests for S3: the service of this server, or the gateway that serves in its
//! place.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use coffer_s3::{Claim, HttpError, ResponseBody, S3Service};
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::Service;

use crate::connection::proxies::Proxies;
use crate::gateways::forward::Forwarder;
use crate::serve::request_body::WatchedBody;

/// The service of a connection.
#[derive(Clone)]
pub enum Front {
    /// This server's.
    Here(S3Service),
    /// That of the gateway that serves.
    There(Arc<There>),
}

/// What is forwarded of a connection.
pub struct There {
    /// For what is answered here all the same.
    pub here: S3Service,
    /// What forwards.
    pub forwarder: Forwarder<WatchedBody>,
    /// Whose the connection is.
    pub client: IpAddr,
    /// Who tells whose a request is.
    pub proxies: Proxies,
    /// The version of TLS.
    pub tls: Option<&'static str>,
}

impl Front {
    /// Whom a request claims to be of, as far as this server knows.
    pub fn claimed(&self, request: &Request<Incoming>) -> Option<Claim> {
        match self {
            Self::Here(here) => here.claimed(request),
            Self::There(there) => there.here.claimed(request),
        }
    }
}

impl Service<Request<WatchedBody>> for Front {
    type Response = Response<FrontBody>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn call(&self, request: Request<WatchedBody>) -> Self::Future {
        match self.clone() {
            Self::Here(here) => {
                let answer = here.call(request);
                Box::pin(async move { Ok(answer.await?.map(FrontBody::Here)) })
            }
            Self::There(there) => Box::pin(async move {
                let proxies = &there.proxies;
                let client = proxies.client_of_request(request.headers(), there.client);
                let forwarded = there.forwarder.forward(request, client, there.tls);
                Ok(match forwarded.await {
                    Ok(answer) => answer.map(FrontBody::There),
                    Err(error) => {
                        let refused = there.here.unavailable(&error.to_string());
                        refused.map(FrontBody::Here)
                    }
                })
            }),
        }
    }
}

/// The body of an answer.
pub enum FrontBody {
    /// Of this server.
    Here(ResponseBody),
    /// Of the gateway that serves.
    There(Incoming),
}

impl Body for FrontBody {
    type Data = Bytes;
    type Error = Box<dyn StdError + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Here(body) => Pin::new(body).poll_frame(cx),
            Self::There(body) => {
                let polled = Pin::new(body).poll_frame(cx);
                polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(body) => body.is_end_stream(),
            Self::There(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(body) => body.size_hint(),
            Self::There(body) => body.size_hint(),
        }
    }
}
