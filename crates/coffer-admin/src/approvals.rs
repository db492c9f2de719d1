//! Erases and exports, and `/v1/requests`: those that wait for an approval.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use coffer_vault::{ApprovalRequest, Asked, Wanted};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::buckets::bucket_name;
use crate::caller::{Caller, InPath, Input};
use crate::instant::rfc3339;
use crate::refusal::Refusal;

/// What became of an erase or an export that was asked for, or approved. One of the three is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    /// It was erased: the receipt, as `docs/FORMAT.md` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub receipt: Option<serde_json::Value>,
    /// It was exported: an armored age file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub export: Option<String>,
    /// It waits for the approval of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request: Option<PendingRequest>,
}

/// A request that waits for approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingRequest {
    /// Its id: 32 hexadecimal digits.
    pub id: String,
    /// What is asked for: `level.erase`, `bucket.erase` or `key.export`.
    pub wants: String,
    /// Name of the level that it is about.
    pub level: String,
    /// Name of the bucket, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket: Option<String>,
    /// For whom an export is to be: recipients of age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Who asked.
    pub requested_by: String,
    /// When: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub requested_at: String,
    /// Until when it can be approved: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// How many custodians it takes, the one who asked among them.
    pub approvals: u8,
    /// Who has approved so far.
    pub approved_by: Vec<String>,
}

/// For whom to export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewExport)]
pub struct ExportRequest {
    /// Recipients of age, `age1…`: each of them can open the export.
    #[schema(min_items = 1, max_items = 20)]
    pub recipients: Vec<String>,
}

impl From<ApprovalRequest> for PendingRequest {
    fn from(request: ApprovalRequest) -> Self {
        let wants = request.wanted.act().to_owned();
        let (level, bucket, recipients) = match request.wanted {
            Wanted::LevelErase { level, .. } => (level, None, Vec::new()),
            Wanted::BucketErase { level, bucket, .. } => (level, Some(bucket), Vec::new()),
            Wanted::KeyExport {
                level, recipients, ..
            } => (level, None, recipients),
        };
        Self {
            id: request.id,
            wants,
            level,
            bucket,
            recipients,
            requested_by: request.requested_by,
            requested_at: rfc3339(request.requested_ms),
            expires_at: rfc3339(request.expires_ms),
            approvals: request.approvals,
            approved_by: request.approved_by,
        }
    }
}

/// What is answered to whoever asks or approves.
#[derive(IntoResponses)]
enum Answer {
    /// It is done
    #[response(status = OK)]
    Done(Outcome),
    /// It waits for approvals
    #[response(status = ACCEPTED)]
    Waits(Outcome),
}

impl From<Asked> for Answer {
    fn from(asked: Asked) -> Self {
        let mut outcome = Outcome::default();
        match asked {
            Asked::Erased(receipt) => {
                let receipt = serde_json::to_value(receipt);
                outcome.receipt = Some(receipt.expect("a receipt is JSON"));
            }
            // Armor is ASCII.
            Asked::Exported(export) => {
                outcome.export = Some(String::from_utf8_lossy(&export).into_owned());
            }
            Asked::Waits(request) => {
                outcome.request = Some(request.into());
                return Self::Waits(outcome);
            }
        }
        Self::Done(outcome)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Self::Done(outcome) => Json(outcome).into_response(),
            Self::Waits(outcome) => (StatusCode::ACCEPTED, Json(outcome)).into_response(),
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(erase_level))
        .routes(routes!(erase_bucket))
        .routes(routes!(export_level))
        .routes(routes!(list_requests))
        .routes(routes!(withdraw_request))
        .routes(routes!(approve_request))
}

/// Erase a level
///
/// A key custodian's. Its key and those of its buckets are destroyed; when this answers with a
/// receipt, nothing of it can be opened any more.
#[utoipa::path(
    post,
    path = "/v1/levels/{name}/erase",
    tag = "levels",
    params(("name" = String, Path, description = "The level's name")),
    responses(Answer)
)]
async fn erase_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Answer, Refusal> {
    Ok(admin.vault.erase_level(&actor, &name).await?.into())
}

/// Erase a bucket
///
/// A key custodian's. Its keys are destroyed, whatever it holds; its level stays.
#[utoipa::path(
    post,
    path = "/v1/buckets/{name}/erase",
    tag = "buckets",
    params(("name" = String, Path, description = "The bucket's name")),
    responses(Answer)
)]
async fn erase_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Answer, Refusal> {
    let name = bucket_name(&name)?;
    Ok(admin.vault.erase_bucket(&actor, &name).await?.into())
}

/// Export a level's key
///
/// A key custodian's. Whoever can open the export can open what the level holds, for ever; so it
/// is counted, and receipts tell how many there were.
#[utoipa::path(
    post,
    path = "/v1/levels/{name}/export",
    tag = "levels",
    params(("name" = String, Path, description = "The level's name")),
    request_body = ExportRequest,
    responses(Answer)
)]
async fn export_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    Input(request): Input<ExportRequest>,
) -> Result<Answer, Refusal> {
    let recipients: Result<Vec<_>, _> = request.recipients.iter().map(|one| one.parse()).collect();
    let recipients =
        recipients.map_err(|error: coffer_keys::KeysError| Refusal::invalid(error.to_string()))?;
    let asked = admin.vault.export_level(&actor, &name, &recipients).await?;
    Ok(asked.into())
}

/// List what waits for approvals
#[utoipa::path(
    get,
    path = "/v1/requests",
    tag = "requests",
    responses((status = OK, description = "The oldest first", body = Vec<PendingRequest>))
)]
async fn list_requests(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<PendingRequest>>, Refusal> {
    let requests = admin.vault.requests(&actor).await?;
    Ok(Json(requests.into_iter().map(Into::into).collect()))
}

/// Approve a request
///
/// Another key custodian's than who asked. With the last approval it is done.
#[utoipa::path(
    post,
    path = "/v1/requests/{id}/approve",
    tag = "requests",
    params(("id" = String, Path, description = "The request's id")),
    responses(Answer)
)]
async fn approve_request(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(id): InPath<String>,
) -> Result<Answer, Refusal> {
    Ok(admin.vault.approve(&actor, &id).await?.into())
}

/// Withdraw a request
///
/// Any key custodian's.
#[utoipa::path(
    delete,
    path = "/v1/requests/{id}",
    tag = "requests",
    params(("id" = String, Path, description = "The request's id")),
    responses((status = NO_CONTENT, description = "It is withdrawn"))
)]
async fn withdraw_request(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(id): InPath<String>,
) -> Result<StatusCode, Refusal> {
    admin.vault.withdraw(&actor, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
