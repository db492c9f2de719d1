//! `/v1/verify`: a walk over all that is stored, reported as it goes.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use coffer_vault::{VerifyDepth, VerifyEvent};
use futures::Stream;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::sync::OwnedSemaphorePermit;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::verify_report::{Report, VerifyRequest};
use crate::http::caller::{Caller, Input};
use crate::http::refusal::Refusal;
use crate::limits::RATE_MAX;

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default().routes(routes!(verify))
}

/// Open all that is stored and report damage
///
/// A system administrator's. The answer is a line of JSON for each event, and lasts as long as the
/// walk; who hangs up ends it. Names of objects are told at the local socket only.
#[utoipa::path(
    post,
    path = "/v1/verify",
    tag = "storage",
    request_body = VerifyRequest,
    responses((
        status = OK,
        description = "Events, a line each; the last is `done`",
        body = Report,
        content_type = "application/x-ndjson",
    ))
)]
async fn verify(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<VerifyRequest>,
) -> Result<Response, Refusal> {
    if request
        .rate
        .is_some_and(|rate| !(1..=RATE_MAX).contains(&rate))
    {
        let message = format!("a rate is from 1 to {RATE_MAX} bytes a second");
        return Err(Refusal::invalid(message));
    }
    let turn = admin.verifications.clone().try_acquire_owned();
    let turn = turn.map_err(|_| {
        let message = "another verification is under way; wait for it to end";
        Refusal::new(StatusCode::CONFLICT, "verification_under_way", message)
    })?;
    let depth = if request.commitments_only {
        VerifyDepth::Commitments
    } else {
        VerifyDepth::Everything
    };
    let lines = Lines {
        events: Box::pin(admin.vault.verify(&actor, depth, request.rate).await?),
        _turn: turn,
    };
    let headers = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Body::from_stream(lines)).into_response())
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
