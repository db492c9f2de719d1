//! `/v1/lock-time`: the time by which object locks end.

use axum::Json;
use axum::extract::State;
use coffer_durable::rfc3339;
use coffer_vault::LockClock;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::access_keys::moment;
use crate::api::approvals::ApprovalAnswer;
use crate::http::caller::{Caller, Input};
use crate::http::refusal::Refusal;

/// The time by which object locks end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LockTime {
    /// How far it has come: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub lock_time: String,
    /// The clock of the server's machine: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub clock: String,
    /// By how much it is behind the clock, in seconds; less than zero: ahead of it.
    pub behind_seconds: i64,
}

/// What time a custodian says that it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LockTimeRequest {
    /// RFC 3339; not after the server's clock.
    #[schema(format = DateTime)]
    pub time: String,
}

impl From<LockClock> for LockTime {
    fn from(clock: LockClock) -> Self {
        Self {
            lock_time: rfc3339(clock.lock_ms),
            clock: rfc3339(clock.wall_ms),
            behind_seconds: clock.wall_ms.saturating_sub(clock.lock_ms) / 1_000,
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(show_lock_time))
        .routes(routes!(confirm_lock_time))
}

/// Show the time by which object locks end
///
/// A key custodian's, or an auditor's. After the server was stopped for more than a week it is
/// behind the clock.
#[utoipa::path(
    get,
    path = "/v1/lock-time",
    tag = "locks",
    responses((status = OK, description = "How far it has come", body = LockTime))
)]
async fn show_lock_time(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<LockTime>, Refusal> {
    Ok(Json(admin.vault.lock_clock(&actor)?.into()))
}

/// Set the time by which object locks end forward
///
/// A key custodian's, who says what time it is: locks that have ended by then end now. It never
/// goes back, nor past the server's clock. Takes approvals where any level does.
#[utoipa::path(
    post,
    path = "/v1/lock-time/confirm",
    tag = "locks",
    request_body = LockTimeRequest,
    responses(ApprovalAnswer)
)]
async fn confirm_lock_time(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<LockTimeRequest>,
) -> Result<ApprovalAnswer, Refusal> {
    let to_ms = moment(&request.time)?;
    let asked = admin.vault.confirm_lock_time(&actor, to_ms).await?;
    Ok(asked.into())
}
