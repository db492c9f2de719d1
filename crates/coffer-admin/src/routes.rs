//! What is answered where. The API's own routes are in `api`.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, Request as AxumRequest, State};
use axum::http::Uri;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response as Answered};
use axum::routing::get;
use axum::{Extension, Router};
use coffer_vault::Vault;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use tower_service::Service;

use crate::admin::Admin;
use crate::health::ENGINE_ENDED;
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
    turn: Arc<RwLock<Turn>>,
    is_for_probes: bool,
}

/// What answers now.
struct Turn {
    admin: Admin,
    all: Router,
    probes: Router,
}

impl Routes {
    /// The routes of an administration.
    pub fn new(admin: Admin) -> Self {
        Self {
            turn: Arc::new(RwLock::new(Turn::new(admin))),
            is_for_probes: false,
        }
    }

    /// Answers from another vault from now on, whose lease is held for as long as something of it
    /// is under way.
    pub fn turn_to(&self, vault: Vault, lease: Arc<()>) {
        let mut turn = self.turn.write().unwrap_or_else(PoisonError::into_inner);
        let admin = Admin {
            vault,
            _lease: lease,
            ..turn.admin.clone()
        };
        *turn = Turn::new(admin);
    }

    /// How the server is, and nothing else: what is answered when all else is at work.
    pub fn for_probes(&self) -> Self {
        Self {
            turn: self.turn.clone(),
            is_for_probes: true,
        }
    }

    fn router(&self) -> Router {
        let turn = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        if self.is_for_probes {
            turn.probes.clone()
        } else {
            turn.all.clone()
        }
    }

    /// Answers one request of a peer.
    ///
    /// # Errors
    /// None.
    pub async fn answer<B>(
        self,
        request: Request<B>,
        peer: Peer,
    ) -> Result<Response<Body>, Infallible>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        self.router().call(request).await
    }

    /// The routes as one peer may use them.
    pub fn for_peer(&self, peer: Peer) -> Router {
        self.router().layer(Extension(peer))
    }
}

impl Turn {
    fn new(admin: Admin) -> Self {
        let description = openapi_json();
        let described = move || async { ([(CONTENT_TYPE, "application/json")], description) };
        let router = Router::from(api::routes())
            .layer(from_fn_with_state(admin.clone(), settled))
            .route("/v1/openapi.json", get(described))
            .merge(health::routes())
            .fallback(nothing_here)
            .method_not_allowed_fallback(not_so)
            .layer(DefaultBodyLimit::max(REQUEST_BYTES))
            .with_state(admin.clone());
        let probes = health::routes()
            .fallback(|| async { Refusal::busy() })
            .with_state(admin.clone());
        Self {
            admin,
            all: router,
            probes,
        }
    }
}

/// What is told of what is stored is told by who serves, and is in the log by then, where a server
/// is a gateway of an engine: another may serve by now, and go on without it. So is why a change is
/// refused, which tells the same. How the log itself stands is told in any case, and at each
/// gateway what is to be kept of its keystore.
async fn settled(State(admin): State<Admin>, request: AxumRequest, next: Next) -> Answered {
    let path = request.uri().path();
    let is_read = request.method().is_safe() || path == "/v1/audit/verify";
    let is_of_log = ["/v1/replicas", "/v1/standby"].iter();
    let is_of_log = { is_of_log }.any(|told| path.starts_with(told));
    let is_of_keystore = ["/v1/keystore", "/v1/rotations"].contains(&path);
    // Who follows keeps up no copy, and writes no log that it could check.
    let is_told = is_read && (is_of_log || is_of_keystore) || path == "/v1/standby/promote";
    if !is_told && admin.follows_engine() {
        return follows(&admin).into_response();
    }
    let answer = next.run(request).await;
    // A change that is carried out has waited by itself, as has one that failed.
    if is_of_log || !is_read && !answer.status().is_client_error() {
        return answer;
    }
    match admin.vault.settle_what_was_read().await {
        Ok(()) => answer,
        Err(error) => Refusal::from(error).into_response(),
    }
}

/// What a gateway has that follows may be old, and lack what has been acknowledged: so it does not
/// tell why it would refuse a change either.
fn follows(admin: &Admin) -> Refusal {
    let serves = match admin.status.gateway() {
        _ if admin.engine_has_ended() => ENGINE_ENDED.to_owned(),
        Some(address) => format!("the gateway at {address} serves: ask the administration there"),
        None => "which gateway serves is not known now: please try again".to_owned(),
    };
    let message = format!(
        "this gateway follows, so it changes nothing, and what it has may be old; {serves}"
    );
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "follows", message)
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
