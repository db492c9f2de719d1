//! Erases and exports, and `/v1/requests`: what waits for an approval.

pub(crate) mod audit_pruned;

pub(crate) mod lock_time;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use coffer_keys::{ExportRecipient, KeysError};
use coffer_vault::{ApprovalRequest, GuardedOutcome};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::audit_pruned::AuditPruned;
use self::lock_time::LockTime;
use crate::admin::Admin;
use crate::api::buckets::bucket_name;
use crate::api::root_rotation::{RootRotation, copies_are_stale};
use crate::api::rotation_progress::Rotation;
use crate::http::caller::{Caller, InPath, Input};
use crate::http::refusal::{About, Refusal};
use coffer_durable::rfc3339;

/// What became of something that was asked for, or approved. One of these is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Outcome)]
pub struct ApprovalOutcome {
    /// It was erased: the receipt, as `docs/FORMAT.md` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Object)]
    pub receipt: Option<serde_json::Value>,
    /// It was exported: an armored age file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub export: Option<String>,
    /// A rotation has begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rotation: Option<Rotation>,
    /// The root key was rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub root_rotation: Option<RootRotation>,
    /// The audit log was pruned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pruned: Option<AuditPruned>,
    /// The time by which object locks end was set forward.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lock_time: Option<LockTime>,
    /// The sealed copy of this name was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replica: Option<String>,
    /// It waits for the approval of others; or, once they have given it, for who asked to ask
    /// again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request: Option<PendingRequest>,
    /// It changed the root key: what that means for copies that are kept apart, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub keep_apart: Option<String>,
}

/// What waits for the approval of others; or, once they have given it, for who asked to ask
/// again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    /// The request.
    pub request: PendingRequest,
}

/// A request that waits for approvals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PendingRequest {
    /// Its id: 32 hexadecimal digits.
    pub id: String,
    /// The act that is asked for, such as `level.erase` or `keystore.move`.
    pub wants: String,
    /// Name of the level that it is about; absent: it concerns all levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub level: Option<String>,
    /// Name of the bucket, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket: Option<String>,
    /// For whom an export is to be: recipients of age.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Name of the sealed copy, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replica: Option<String>,
    /// Where the root key is to be moved, or a copy to be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// Up to when the audit log is to be pruned: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub before: Option<String>,
    /// The time to which lock time is to be set: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub lock_time: Option<String>,
    /// Who asked: an access key id, or `local:UID`.
    pub requested_by: String,
    /// The name of who asked, if that is a subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub requested_by_name: Option<String>,
    /// When: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub requested_at: String,
    /// Until when it can be approved: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub expires_at: String,
    /// How many custodians it takes, the one who asked among them.
    pub approvals: u8,
    /// Why these are more than the level asks for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub because: Option<String>,
    /// Who has approved so far.
    pub approved_by: Vec<String>,
    /// Their names, in the same order: again `local:UID` of who has none.
    #[serde(default)]
    pub approved_by_names: Vec<String>,
    /// Whether all have approved it: then who asked has to ask again, for it to be done.
    #[serde(default)]
    pub approved: bool,
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

impl ExportRequest {
    pub(crate) fn parsed(&self) -> Result<Vec<ExportRecipient>, Refusal> {
        parsed(&self.recipients)
    }
}

/// Recipients of age.
pub(crate) fn parsed(recipients: &[String]) -> Result<Vec<ExportRecipient>, Refusal> {
    let recipients = recipients.iter().map(|one| one.parse());
    let recipients: Result<_, KeysError> = recipients.collect();
    recipients.map_err(|error| Refusal::invalid(error.to_string()))
}

impl From<ApprovalRequest> for PendingRequest {
    fn from(request: ApprovalRequest) -> Self {
        let wanted = &request.wanted;
        let name_of = |person: &String| request.name_of(person).unwrap_or(person).to_owned();
        Self {
            wants: wanted.act().to_owned(),
            level: wanted.level().map(str::to_owned),
            bucket: wanted.bucket().map(str::to_owned),
            recipients: wanted.recipients().to_vec(),
            replica: wanted.copy().map(str::to_owned),
            to: wanted.to().map(str::to_owned),
            before: wanted.before_ms().map(rfc3339),
            lock_time: wanted.lock_time_ms().map(rfc3339),
            requested_by_name: request.name_of(&request.requested_by).map(str::to_owned),
            approved_by_names: request.approved_by.iter().map(name_of).collect(),
            approved: request.is_approved(),
            id: request.id,
            requested_by: request.requested_by,
            requested_at: rfc3339(request.requested_ms),
            expires_at: rfc3339(request.expires_ms),
            approvals: request.approvals,
            because: request.because,
            approved_by: request.approved_by,
        }
    }
}

/// The answer to a request or an approval.
#[derive(IntoResponses)]
pub(crate) enum ApprovalAnswer {
    /// It is done
    #[response(status = OK)]
    Done(ApprovalOutcome),
    /// It waits for approvals
    #[response(status = ACCEPTED)]
    Waits(ApprovalOutcome),
}

impl From<GuardedOutcome> for ApprovalAnswer {
    fn from(asked: GuardedOutcome) -> Self {
        let mut outcome = ApprovalOutcome::default();
        match asked {
            GuardedOutcome::Erased(receipt) => {
                let receipt = serde_json::to_value(receipt);
                outcome.receipt = Some(receipt.expect("a receipt is JSON"));
            }
            // Armor is ASCII.
            GuardedOutcome::Exported(export) => {
                outcome.export = Some(String::from_utf8_lossy(&export).into_owned());
            }
            GuardedOutcome::Rotating(rotation) => outcome.rotation = Some(rotation.into()),
            // What there is to tell of it is asked for.
            GuardedOutcome::Rerooted => {}
            GuardedOutcome::Pruned(pruned) => outcome.pruned = Some(pruned.into()),
            GuardedOutcome::LockTimeSet(clock) => outcome.lock_time = Some(clock.into()),
            GuardedOutcome::CopyAdded(name) => outcome.replica = Some(name),
            GuardedOutcome::Approved(request) => outcome.request = Some(request.into()),
            GuardedOutcome::Waits(request) => {
                outcome.request = Some(request.into());
                return Self::Waits(outcome);
            }
        }
        Self::Done(outcome)
    }
}

impl ApprovalAnswer {
    /// As it is told: an erase has changed the root key.
    fn of(asked: GuardedOutcome, admin: &Admin) -> Self {
        match Self::from(asked) {
            Self::Done(mut outcome) if outcome.receipt.is_some() => {
                outcome.keep_apart = copies_are_stale(admin);
                Self::Done(outcome)
            }
            other => other,
        }
    }
}

impl IntoResponse for ApprovalAnswer {
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
    responses(ApprovalAnswer)
)]
async fn erase_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<ApprovalAnswer, Refusal> {
    let asked = admin.vault.erase_level(&actor, &name).await.about(&name)?;
    Ok(ApprovalAnswer::of(asked, &admin))
}

/// Erase a bucket
///
/// A key custodian's. Its keys are destroyed, whatever it holds; its level stays.
#[utoipa::path(
    post,
    path = "/v1/buckets/{name}/erase",
    tag = "buckets",
    params(("name" = String, Path, description = "The bucket's name")),
    responses(ApprovalAnswer)
)]
async fn erase_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<ApprovalAnswer, Refusal> {
    let name = bucket_name(&name)?;
    let asked = admin.vault.erase_bucket(&actor, &name).await;
    let asked = asked.about(name.as_str())?;
    Ok(ApprovalAnswer::of(asked, &admin))
}

/// Export a level's key
///
/// A key custodian's. The export opens what the level holds, for ever; so exports are counted, and
/// receipts tell how many there were.
#[utoipa::path(
    post,
    path = "/v1/levels/{name}/export",
    tag = "levels",
    params(("name" = String, Path, description = "The level's name")),
    request_body = ExportRequest,
    responses(ApprovalAnswer)
)]
async fn export_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    Input(request): Input<ExportRequest>,
) -> Result<ApprovalAnswer, Refusal> {
    let recipients = request.parsed()?;
    let asked = admin.vault.export_level(&actor, &name, &recipients).await;
    let asked = asked.about(&name)?;
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
/// Another key custodian's than who asked. With the last approval it is done; but what takes
/// something that no request keeps, such as a passphrase, is done when who asked asks again.
#[utoipa::path(
    post,
    path = "/v1/requests/{id}/approve",
    tag = "requests",
    params(("id" = String, Path, description = "The request's id")),
    responses(ApprovalAnswer)
)]
async fn approve_request(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(id): InPath<String>,
) -> Result<ApprovalAnswer, Refusal> {
    let asked = admin.vault.approve(&actor, &id).await.about(&id)?;
    if asked != GuardedOutcome::Rerooted {
        return Ok(ApprovalAnswer::of(asked, &admin));
    }
    Ok(ApprovalAnswer::Done(ApprovalOutcome {
        root_rotation: Some(RootRotation::done(&admin, &actor).await?),
        ..ApprovalOutcome::default()
    }))
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
    admin.vault.withdraw(&actor, &id).await.about(&id)?;
    Ok(StatusCode::NO_CONTENT)
}
