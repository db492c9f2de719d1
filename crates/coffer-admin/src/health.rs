//! Health and metrics: open to every client that reaches the administration listener,
//! which is on loopback unless told otherwise (`docs/decisions/0005-open-metrics.md`).

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::admin::Admin;
use crate::metrics::page;

pub(crate) fn routes() -> Router<Admin> {
    Router::new()
        .route("/health/live", get(live))
        .route("/health/ready", get(ready))
        .route("/metrics", get(metrics))
}

async fn live() -> &'static str {
    "live\n"
}

async fn ready(State(admin): State<Admin>) -> Response {
    let status = if admin.status.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, format!("{}\n", admin.status.word())).into_response()
}

async fn metrics(State(admin): State<Admin>) -> Response {
    let text = page::render(
        admin.status.is_ready(),
        admin.vault.audit_failure().is_none(),
        &admin.vault.counters(),
        &(admin.s3_metrics)(),
        &admin.traffic.snapshot(),
    );
    ([(CONTENT_TYPE, page::CONTENT_TYPE)], text).into_response()
}
