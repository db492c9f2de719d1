//! `/v1/replicas`: sealed copies on other stores.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use coffer_durable::rfc3339;
use coffer_vault::{CarriedStatus, CopyState, CopyStatus, Gap, NewCopy, SyncStatus, limits};
use futures::StreamExt;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::approvals::{ApprovalAnswer, ApprovalOutcome, Waiting, parsed};
use crate::api::backups::replica_checks::ReplicaReport;
use crate::http::caller::{Caller, InPath, Input};
use crate::http::json_lines::json_lines;
use crate::http::refusal::Refusal;

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_replicas, add_replica))
        .routes(routes!(remove_replica))
        .routes(routes!(verify_replica))
}

/// A copy that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplicaRequest {
    /// Its name: 1 to 63 of `a` to `z`, `0` to `9` and `-`.
    pub name: String,
    /// Where: `file:///FOLDER`, or `s3://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or
    /// `gs://BUCKET/PREFIX` with the parameters `endpoint`, `region` and `checksum` (of `s3`:
    /// `sha256` or `crc64nvme`), `account` (of `az`), `ca` and `credentials`, the last two being
    /// files of the server's machine.
    pub url: String,
    /// How long what was can be restored: ten years at most; seven days where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_seconds: Option<u64>,
    /// Whether every acknowledgement waits until it is in this copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sync: bool,
    /// How long, before it is in doubt: a second to ten minutes; ten seconds where it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_wait_seconds: Option<u64>,
    /// Whether the keystore goes along, which is an export of every level.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_keystore: bool,
    /// For whom the keystore is sealed: recipients of age, `age1…`. For none, it is sealed under
    /// the root key, which is not in the copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 20)]
    pub recipients: Vec<String>,
}

/// How a copy stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Replica {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub made_at: String,
    /// `following`; `failing`, and tried again; or `stopped`, until the server starts again.
    pub state: String,
    /// Why it fails or was stopped, or which buckets it goes on without.
    pub problem: Option<String>,
    /// All that was acknowledged before is in it: RFC 3339; none as long as it was never complete,
    /// or that is not known.
    #[schema(format = DateTime)]
    pub as_of: Option<String>,
    /// Whether it has ever been complete; null where it was not read since the server started, so
    /// that this is not known.
    #[serde(default)]
    pub was_complete: Option<bool>,
    /// For how many seconds it has not been known to be complete.
    pub lag_seconds: f64,
    /// How many bytes of catalogs it is behind, as far as that is known.
    pub lag_bytes: u64,
    /// How many bytes were put there since the server started.
    pub put_bytes: u64,
    /// The head that was written last, `NUMBER:SHA256`: what `coffer restore --head` takes.
    pub head: Option<String>,
    /// How long what was can be restored.
    pub keep_seconds: u64,
    /// The earliest moment that can be restored: RFC 3339; none where `as_of` is none.
    #[schema(format = DateTime)]
    pub from: Option<String>,
    /// Times within the window of which the copy has no state, oldest first.
    pub gaps: Vec<ReplicaGap>,
    /// For how many seconds what the newest head is as of is yet to come: the server's clock was
    /// ahead when it was noted, or is behind. Until then a restore to a moment since can't tell
    /// which head is of it. Absent where the clock is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ahead_seconds: Option<u64>,
    /// The keystore in it, if one goes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub keystore: Option<ReplicaKeystore>,
    /// Of a synchronous copy, which acknowledgements wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub sync: Option<ReplicaSync>,
}

/// What waits for a synchronous copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ReplicaSync {
    /// How long a write waits before it is in doubt.
    pub wait_seconds: f64,
    /// Since when all do: RFC 3339; none as long as the copy has not been whole.
    #[schema(format = DateTime)]
    pub since: Option<String>,
    /// How many wait.
    pub waiting_count: u64,
    /// How many waited in vain since the server started, so that they are in doubt.
    pub in_doubt_count: u64,
}

/// The keystore in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplicaKeystore {
    /// For whom it is sealed: recipients of age. For none: the root key opens it.
    pub recipients: Vec<String>,
    /// The generation that the copy took last; none as long as it took none.
    pub generation: Option<u64>,
    /// When it took that: RFC 3339.
    #[schema(format = DateTime)]
    pub taken_at: Option<String>,
    /// The generation of the server's keystore.
    pub current_generation: u64,
    /// Levels that stay out: their keys are not to be exported, or that takes more custodians than
    /// approved the copy.
    pub left_out: Vec<String>,
    /// How many erases wait for the copy to take the keystore without the keys.
    pub pending_erase_count: u64,
}

/// A time in which changes were not copied as they came: a restore to a moment in it gives what was
/// at its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplicaGap {
    /// The last moment before: RFC 3339.
    #[schema(format = DateTime)]
    pub from: String,
    /// The first moment after: RFC 3339.
    #[schema(format = DateTime)]
    pub to: String,
}

impl From<CopyStatus> for Replica {
    fn from(status: CopyStatus) -> Self {
        let state = match status.state {
            CopyState::Following => "following",
            CopyState::Failing => "failing",
            CopyState::Stopped => "stopped",
        };
        let gaps = status.gaps.into_iter();
        Self {
            name: status.name,
            url: status.url,
            made_at: rfc3339(status.made_ms),
            state: state.to_owned(),
            problem: status.problem,
            as_of: status.as_of_ms.map(rfc3339),
            was_complete: status.was_complete,
            lag_seconds: status.lag_seconds,
            lag_bytes: status.lag_bytes,
            put_bytes: status.put_bytes,
            head: status.head.map(|head| head.to_string()),
            keep_seconds: status.keep_ms.unsigned_abs() / 1_000,
            from: status.from_ms.map(rfc3339),
            gaps: gaps.map(ReplicaGap::from).collect(),
            ahead_seconds: (status.ahead_ms > 0).then(|| status.ahead_ms.unsigned_abs() / 1_000),
            keystore: status.keystore.map(ReplicaKeystore::from),
            sync: status.sync.map(ReplicaSync::from),
        }
    }
}

impl From<SyncStatus> for ReplicaSync {
    fn from(status: SyncStatus) -> Self {
        Self {
            wait_seconds: status.wait.as_secs_f64(),
            since: status.since_ms.map(rfc3339),
            waiting_count: status.waiting_count as u64,
            in_doubt_count: status.in_doubt_count,
        }
    }
}

impl From<CarriedStatus> for ReplicaKeystore {
    fn from(status: CarriedStatus) -> Self {
        Self {
            recipients: status.recipients,
            generation: status.taken.map(|(generation, _)| generation),
            taken_at: status.taken.map(|(_, at_ms)| rfc3339(at_ms)),
            current_generation: status.generation,
            left_out: status.left_out,
            pending_erase_count: status.pending_count as u64,
        }
    }
}

impl From<Gap> for ReplicaGap {
    fn from(gap: Gap) -> Self {
        Self {
            from: rfc3339(gap.from_ms),
            to: rfc3339(gap.to_ms),
        }
    }
}

/// List sealed copies
///
/// And how each stands. A system administrator's.
#[utoipa::path(
    get,
    path = "/v1/replicas",
    tag = "storage",
    responses((status = OK, description = "All that are kept up", body = Vec<Replica>))
)]
async fn list_replicas(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<Replica>>, Refusal> {
    let copies = admin.vault.copies(&actor).await?;
    Ok(Json(copies.into_iter().map(Replica::from).collect()))
}

/// Make a sealed copy, and keep it up
///
/// A system administrator's. Nothing in the copy can be opened without the keystore, which is not
/// in it; but with `with_keystore`, which takes a key custodian as well, is counted as an export of
/// each level, takes the most approvals of any, and is refused where a level forbids exports.
#[utoipa::path(
    post,
    path = "/v1/replicas",
    tag = "storage",
    request_body = ReplicaRequest,
    responses(
        (status = NO_CONTENT, description = "It is begun"),
        (status = OK, description = "It is begun, with the keystore", body = ApprovalOutcome),
        (status = ACCEPTED, description = "It waits for approvals", body = Waiting),
    )
)]
async fn add_replica(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<ReplicaRequest>,
) -> Result<Response, Refusal> {
    let keep_ms = request.keep_seconds.map(|seconds| {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        seconds.saturating_mul(1_000)
    });
    if request.sync_wait_seconds.is_some() && !request.sync {
        let told = "`sync_wait_seconds` is of a synchronous copy: `sync`";
        return Err(Refusal::invalid(told.to_owned()));
    }
    let wait = request.sync_wait_seconds.map(Duration::from_secs);
    let sync = request.sync.then(|| wait.unwrap_or(limits::COPY_SYNC_WAIT));
    let new = NewCopy {
        name: request.name,
        url: request.url,
        keep_ms,
        sync,
    };
    if request.with_keystore {
        let recipients = parsed(&request.recipients)?;
        let vault = &admin.vault;
        let asked = vault.add_copy_with_keystore(&actor, &new, &recipients);
        return Ok(ApprovalAnswer::from(asked.await?).into_response());
    }
    if !request.recipients.is_empty() {
        let told = "recipients are those of a keystore that goes along: `with_keystore`";
        return Err(Refusal::invalid(told.to_owned()));
    }
    admin.vault.add_copy(&actor, &new).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Keep a sealed copy up no more
///
/// A system administrator's. What is there stays there.
#[utoipa::path(
    delete,
    path = "/v1/replicas/{name}",
    tag = "storage",
    params(("name" = String, Path, description = "The copy's name")),
    responses((status = NO_CONTENT, description = "Nothing is copied there any more"))
)]
async fn remove_replica(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<StatusCode, Refusal> {
    admin.vault.remove_copy(&actor, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Read a sealed copy back and check all of it
///
/// A system administrator's. The answer is a line of JSON for each event, and lasts until all is
/// read.
#[utoipa::path(
    post,
    path = "/v1/replicas/{name}/verify",
    tag = "storage",
    params(("name" = String, Path, description = "The copy's name")),
    responses((
        status = OK,
        description = "Events, a line each; the last is `done` or `failed`",
        body = ReplicaReport,
        content_type = "application/x-ndjson",
    ))
)]
async fn verify_replica(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Response, Refusal> {
    let events = admin.vault.check_copy(&actor, &name).await?;
    Ok(json_lines(events.map(ReplicaReport::from)))
}
