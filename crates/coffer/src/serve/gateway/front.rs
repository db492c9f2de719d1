//! What answers requests for S3: the service of this server, or the gateway that serves in its
//! place.

use std::error::Error as StdError;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use coffer_s3::{Claim, HttpError, ResponseBody, S3Service};
use coffer_vault::ReadLease;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::Service;

use crate::connection::proxies::Proxies;
use crate::gateways::ask::ReadAsker;
use crate::gateways::forward::{Forwarder, NotForwarded};
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
    /// The same for reads, of which some are answered here.
    pub reading: S3Service,
    /// Says which are.
    pub reads: Arc<ReadAsker>,
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
    type Future = Answering;

    fn call(&self, request: Request<WatchedBody>) -> Self::Future {
        match self {
            Self::Here(here) => Answering::Here(here.call(request)),
            Self::There(there) => {
                let there = there.clone();
                Answering::There(Box::pin(async move { there.answer(request).await }))
            }
        }
    }
}

impl There {
    async fn answer(&self, request: Request<WatchedBody>) -> Response<FrontBody> {
        let request = match self.read(request).await {
            Ok(answer) => return answer,
            Err(request) => request,
        };
        let client = self
            .proxies
            .client_of_request(request.headers(), self.client);
        let waits = coffer_s3::waits_to_send(request.headers());
        let mut answer = match self.forwarder.forward(request, client, self.tls).await {
            Ok(answer) => return answer.map(FrontBody::There),
            Err(NotForwarded::Body { is_too_slow }) => self.here.broken_off(is_too_slow),
            Err(error) => self.here.unavailable(&error.to_string()),
        };
        // Whether what waits to be sent comes after this answer, none can tell.
        if waits {
            let close = HeaderValue::from_static("close");
            answer.headers_mut().insert(CONNECTION, close);
        }
        answer.map(FrontBody::Here)
    }
}

impl There {
    /// Answers a read by the state that is here, if it has all that anyone was shown; or gives the
    /// request back. What is not answered as it was asked for is the other's to answer, and to
    /// record.
    async fn read(
        &self,
        request: Request<WatchedBody>,
    ) -> Result<Response<FrontBody>, Request<WatchedBody>> {
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if !is_read || !request.body().is_end_stream() {
            return Err(request);
        }
        // One that is not there is asked about as well: that takes time, by which it could be told
        // from one that is hidden from who asks.
        let bucket = self.reading.bucket_named(&request);
        let Some(mut lease) = self.reads.lease(bucket).await else {
            return Err(request);
        };
        // Another state may be served by now, in which the name is of a bucket that was not asked
        // about.
        if self.reading.bucket_named(&request) != bucket {
            return Err(request);
        }
        let (head, body) = request.into_parts();
        let copy = Request::from_parts(head.clone(), Empty::<Bytes>::new());
        match self.reading.call(copy).await {
            Ok(answer) if is_as_asked(answer.status()) && lease.begin() => {
                Ok(answer.map(|body| FrontBody::Leased(body, lease)))
            }
            _ => Err(Request::from_parts(head, body)),
        }
    }
}

fn is_as_asked(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::NOT_MODIFIED
}

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// An answer that is being made. What is made here is in a box of its own already.
pub enum Answering {
    /// By this server.
    Here(Boxed<Result<Response<ResponseBody>, HttpError>>),
    /// By the gateway that serves.
    There(Boxed<Response<FrontBody>>),
}

impl Future for Answering {
    type Output = Result<Response<FrontBody>, HttpError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Here(answer) => {
                let answer = ready!(answer.as_mut().poll(cx));
                Poll::Ready(answer.map(|answer| answer.map(FrontBody::Here)))
            }
            Self::There(answer) => answer.as_mut().poll(cx).map(Ok),
        }
    }
}

/// The body of an answer.
pub enum FrontBody {
    /// Of this server.
    Here(ResponseBody),
    /// Of the gateway that serves.
    There(Incoming),
    /// Of this server, for as long as it may answer reads.
    Leased(ResponseBody, ReadLease),
    /// What a gateway is told.
    Told(Full<Bytes>),
}

/// What was being answered may not be any more.
#[derive(Debug, thiserror::Error)]
#[error("this gateway may not answer any more what it was answering")]
struct NoMore;

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
            Self::Leased(body, lease) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                // Last: the process may have been paused until now.
                let frame = frame.map(|frame| {
                    if lease.holds() {
                        frame
                    } else {
                        Err(NoMore.into())
                    }
                });
                Poll::Ready(frame)
            }
            Self::Told(body) => {
                let polled = Pin::new(body).poll_frame(cx);
                polled.map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(body) => body.is_end_stream(),
            Self::There(body) => body.is_end_stream(),
            Self::Leased(body, _) => body.is_end_stream(),
            Self::Told(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(body) => body.size_hint(),
            Self::There(body) => body.size_hint(),
            Self::Leased(body, _) => body.size_hint(),
            Self::Told(body) => body.size_hint(),
        }
    }
}
