//! `/v1/verify`: a walk over all that is stored, reported as it goes.

use axum::extract::State;
use axum::response::Response;
use coffer_vault::VerifyDepth;
use futures::StreamExt;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::verify_report::{Report, VerifyRequest};
use crate::http::caller::{Caller, Input};
use crate::http::json_lines::json_lines;
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
    let events = admin.vault.verify(&actor, depth, request.rate).await?;
    Ok(json_lines(events.map(move |event| {
        // The next one may begin when this answer has ended.
        let _ = &turn;
        Report::from(event)
    })))
}
