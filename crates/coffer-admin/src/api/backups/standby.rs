//! `/v1/standby`: how this server follows a sealed copy, and its promotion.

use axum::Json;
use axum::extract::State;
use coffer_durable::rfc3339;
use coffer_vault::{PromotedStandby, StandbyState, StandbyStatus};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, InQuery};
use crate::http::refusal::Refusal;

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(show_standby))
        .routes(routes!(promote_standby))
}

/// How a standby stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Standby {
    /// The copy that it follows.
    pub url: String,
    /// `following`; `failing`, and tried again, while the state before is served; or `promoting`.
    pub state: String,
    /// Why it fails, or what it lacks.
    pub problem: Option<String>,
    /// The head whose state is served, `NUMBER:SHA256`.
    pub head: Option<String>,
    /// All that was acknowledged before is served: RFC 3339.
    #[schema(format = DateTime)]
    pub as_of: String,
    /// For how many seconds what is served has not been known to be all that the copy has. What
    /// the original has not put into the copy comes on top.
    pub lag_seconds: f64,
    /// How many bytes were fetched since the start.
    pub fetched_bytes: u64,
    /// How many blobs that the copy names could not be fetched.
    pub missing_blob_count: u64,
}

impl From<StandbyStatus> for Standby {
    fn from(status: StandbyStatus) -> Self {
        let state = match status.state {
            StandbyState::Following => "following",
            StandbyState::Failing => "failing",
            StandbyState::Promoting => "promoting",
        };
        Self {
            url: status.url,
            state: state.to_owned(),
            problem: status.problem,
            head: status.head.map(|head| head.to_string()),
            as_of: rfc3339(status.as_of_ms),
            lag_seconds: status.lag_seconds,
            fetched_bytes: status.fetched_bytes,
            missing_blob_count: status.missing_count,
        }
    }
}

/// How it is to be promoted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PromotionRequest {
    /// As it is, where the copy is gone: nothing fences the original off.
    pub without_copy: Option<bool>,
}

/// What a promotion came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promotion {
    /// All that was acknowledged by the original before is there; what it acknowledged later is
    /// lost: RFC 3339.
    #[schema(format = DateTime)]
    pub as_of: String,
    /// The head by which the original is fenced off, `NUMBER:SHA256`; without the copy, the one
    /// that is served from now on, and nothing fences the original off.
    pub head: String,
    /// How many blobs that the copy names are missing.
    pub missing_blob_count: u64,
}

impl From<PromotedStandby> for Promotion {
    fn from(promoted: PromotedStandby) -> Self {
        Self {
            as_of: rfc3339(promoted.as_of_ms),
            head: promoted.head.to_string(),
            missing_blob_count: promoted.missing_count,
        }
    }
}

/// Show how this standby stands
///
/// A system administrator's. Refused by a server that follows no copy.
#[utoipa::path(
    get,
    path = "/v1/standby",
    tag = "storage",
    responses((status = OK, description = "How it stands", body = Standby))
)]
async fn show_standby(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Standby>, Refusal> {
    Ok(Json(admin.vault.standby(&actor)?.into()))
}

/// Promote this standby
///
/// A system administrator's. It takes what the copy has once more, fences the original off by a
/// head of its own, and then serves in its place. What the original acknowledged and had not put
/// into the copy is lost. Without the copy it goes on from what it has, whatever the original does:
/// that is refused while the copy can be reached, unless another standby was promoted by it.
#[utoipa::path(
    post,
    path = "/v1/standby/promote",
    tag = "storage",
    params(PromotionRequest),
    responses((status = OK, description = "It is about to serve", body = Promotion))
)]
async fn promote_standby(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InQuery(request): InQuery<PromotionRequest>,
) -> Result<Json<Promotion>, Refusal> {
    let without_copy = request.without_copy.unwrap_or(false);
    let promoted = admin.vault.promote_standby(&actor, without_copy).await?;
    Ok(Json(promoted.into()))
}
