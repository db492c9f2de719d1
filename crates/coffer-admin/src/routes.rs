//! What is answered where.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Json, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use coffer_vault::{Vault, VerifyEvent};
use futures::Stream;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{REQUEST_BYTES, VERIFICATIONS};
use crate::metrics;
use crate::report::{Report, VerifyRequest};
use crate::requests::Requests;
use crate::status::Status;
use crate::traffic::Traffic;

/// What the routes answer from.
#[derive(Clone)]
pub struct Admin {
    vault: Vault,
    status: Status,
    traffic: Arc<Traffic>,
    requests: Arc<dyn Fn() -> Requests + Send + Sync>,
    verifications: Arc<Semaphore>,
}

impl Admin {
    /// Answers from this vault, and from what the S3 listener and the S3 front door count.
    pub fn new(
        vault: Vault,
        status: Status,
        traffic: Arc<Traffic>,
        requests: impl Fn() -> Requests + Send + Sync + 'static,
    ) -> Self {
        let verifications = Arc::new(Semaphore::new(VERIFICATIONS));
        Self {
            vault,
            status,
            traffic,
            requests: Arc::new(requests),
            verifications,
        }
    }

    /// Health and metrics: what anybody who reaches the administration listener may know. It
    /// listens on loopback unless told otherwise (`docs/decisions/0005-open-metrics.md`).
    pub fn public_routes(&self) -> Router {
        Router::new()
            .route("/health/live", get(live))
            .route("/health/ready", get(ready))
            .route("/metrics", get(metrics))
            .fallback(nothing_here)
            .layer(DefaultBodyLimit::max(REQUEST_BYTES))
            .with_state(self.clone())
    }

    /// What the owner of the data folder may do besides, over the local socket.
    pub fn local_routes(&self) -> Router {
        let owners = Router::new()
            .route("/v1/verify", post(verify))
            .with_state(self.clone());
        self.public_routes().merge(owners)
    }
}

async fn live() -> &'static str {
    "live\n"
}

async fn ready(State(admin): State<Admin>) -> Response {
    let status = match admin.status.is_ready() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, format!("{}\n", admin.status.word())).into_response()
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let text = metrics::render(
        admin.status.is_ready(),
        &admin.vault.counters(),
        &(admin.requests)(),
        &admin.traffic.snapshot(),
    );
    ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

async fn nothing_here() -> (StatusCode, &'static str) {
    (
        StatusCode::NOT_FOUND,
        "there is /health/live, /health/ready and /metrics\n",
    )
}

async fn verify(State(admin): State<Admin>, Json(request): Json<VerifyRequest>) -> Response {
    if !admin.status.is_ready() {
        let refusal = format!("the server is {}\n", admin.status.word());
        return (StatusCode::SERVICE_UNAVAILABLE, refusal).into_response();
    }
    let Ok(turn) = admin.verifications.clone().try_acquire_owned() else {
        let refusal = "another verification is under way; wait for it to end\n";
        return (StatusCode::CONFLICT, refusal).into_response();
    };
    let events = Box::pin(admin.vault.verify(request.rate));
    let lines = Lines {
        events,
        _turn: turn,
    };
    (
        [(CONTENT_TYPE, "application/x-ndjson")],
        Body::from_stream(lines),
    )
        .into_response()
}

/// Events as lines of JSON. The verification ends when this is dropped.
struct Lines<S> {
    events: Pin<Box<S>>,
    _turn: OwnedSemaphorePermit,
}

impl<S: Stream<Item = VerifyEvent>> Stream for Lines<S> {
    type Item = Result<Bytes, serde_json::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.as_mut().poll_next(cx).map(|event| {
            event.map(|event| {
                let mut line = serde_json::to_vec(&Report::from(event))?;
                line.push(b'\n');
                Ok(line.into())
            })
        })
    }
}
