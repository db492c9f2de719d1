//! What is answered where. The API's own routes are in `api`.

use std::convert::Infallible;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::routing::get;
use axum::{Extension, Router};
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use tower_service::Service;

use crate::admin::Admin;
use crate::http::caller::Peer;
use crate::http::refusal::Refusal;
use crate::limits::REQUEST_BYTES;
use crate::{api, health, openapi};

/// The API's description: OpenAPI 3.1, JSON, as `docs/openapi.json` has it.
pub fn openapi_json() -> String {
    openapi::describe(api::routes().into_openapi())
}

/// Everything that administration answers.
#[derive(Clone)]
pub struct Routes {
    all: Router,
    probes: Router,
}

impl Routes {
    /// The routes of an administration.
    pub fn new(admin: Admin) -> Self {
        let description = openapi_json();
        let described = move || async { ([(CONTENT_TYPE, "application/json")], description) };
        let router = Router::from(api::routes())
            .route("/v1/openapi.json", get(described))
            .merge(health::routes())
            .fallback(nothing_here)
            .method_not_allowed_fallback(not_so)
            .layer(DefaultBodyLimit::max(REQUEST_BYTES))
            .with_state(admin.clone());
        let probes = health::routes()
            .fallback(|| async { Refusal::busy() })
            .with_state(admin);
        Self {
            all: router,
            probes,
        }
    }

    /// How the server is, and nothing else: what is answered when all else is at work.
    pub fn for_probes(&self) -> Self {
        Self {
            all: self.probes.clone(),
            probes: self.probes.clone(),
        }
    }

    /// Answers one request of a peer.
    ///
    /// # Errors
    /// None.
    pub async fn answer<B>(
        mut self,
        request: Request<B>,
        peer: Peer,
    ) -> Result<Response<Body>, Infallible>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        self.all.call(request).await
    }

    /// The routes as one peer may use them.
    pub fn for_peer(&self, peer: Peer) -> Router {
        self.all.clone().layer(Extension(peer))
    }
}

async fn nothing_here(_: Uri) -> Refusal {
    let message = "there is /health/live, /health/ready, /metrics, and what /v1/openapi.json tells";
    Refusal::new(StatusCode::NOT_FOUND, "nothing_here", message)
}

async fn not_so(method: Method) -> Refusal {
    let message = format!("{method} is not for this path; /v1/openapi.json tells what is");
    Refusal::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        message,
    )
}
