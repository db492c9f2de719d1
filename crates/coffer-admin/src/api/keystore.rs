//! `/v1/keystore`: its state, its root key, and where that is.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use coffer_durable::rfc3339;
use coffer_keys::{KeysError, SourceSecrets, SourceSpec};
use coffer_vault::{Actor, GuardedOutcome, KeystoreStatus, LevelInfo};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use crate::admin::Admin;
use crate::api::access_keys::Secret;
use crate::api::approvals::{ApprovalAnswer, ExportRequest, Waiting};
use crate::api::root_rotation::RootRotation;
use crate::http::caller::{Caller, Input};
use crate::http::refusal::Refusal;

/// What there is to know of the keystore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Keystore {
    /// Its id: 32 hexadecimal digits.
    pub id: String,
    /// How often it was changed.
    pub generation: u64,
    /// Where the root key is: such as `file`, `passphrase`, `keyring:NAME` or a PKCS#11 URI. Of a
    /// standby, and a gateway that follows, in a sentence: there it is no place that is given.
    pub source: String,
    /// What holds the root key.
    pub holder: String,
    /// How a root key is destroyed there.
    pub destruction: String,
    /// What NIST SP 800-88 calls that: `Clear` or `Purge`.
    pub category: String,
    /// What old copies may still allow after an erase.
    pub remaining: String,
    /// Whether the source that the root key was moved away from may hold keys still.
    pub is_moving: bool,
    /// What has to be kept apart from the data, in a sentence.
    #[serde(default)]
    pub keep_apart: String,
    /// The last backup of the root key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub backup: Option<KeystoreBackup>,
    /// How much memory of keys is locked, so that it can't be swapped out, in bytes.
    pub locked_key_bytes: u64,
    /// How much of it the system refused to lock, in bytes.
    pub unlocked_key_bytes: u64,
    /// How many levels there are.
    pub level_count: u64,
    /// The generation of each level's key, by rank and then by name.
    pub level_keys: Vec<LevelKey>,
    /// How many buckets.
    pub bucket_count: u64,
    /// How many buckets have an older generation of their key, for they are being rotated.
    pub rotating_bucket_count: u64,
}

/// A backup of the root key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeystoreBackup {
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub made_at: String,
    /// For whom: recipients of age.
    pub recipients: Vec<String>,
    /// Whether it opens the keystore as it is now: no act since has changed the root key.
    pub opens: bool,
}

/// A level's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LevelKey {
    /// Name of the level.
    pub level: String,
    /// The generation of its key, from 1. Those before are destroyed.
    pub generation: u32,
}

/// Where to move the root key.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    /// `file`, `file:/PATH`, `passphrase`, `keyring`, `keyring:NAME`, or a PKCS#11 URI.
    pub to: String,
    /// For the source `passphrase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub passphrase: Option<Secret>,
    /// For a token, if no file holds its PIN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pin: Option<Secret>,
}

impl Keystore {
    fn new(status: KeystoreStatus, levels: Vec<LevelInfo>) -> Self {
        let level_key = |LevelInfo { level, .. }| LevelKey {
            level: level.name,
            generation: level.generation,
        };
        let category = serde_json::to_value(status.category);
        let category = category
            .ok()
            .and_then(|text| Some(text.as_str()?.to_owned()));
        Self {
            id: status.id,
            generation: status.generation,
            source: status.source,
            holder: status.holder,
            destruction: status.destruction,
            category: category.unwrap_or_default(),
            remaining: status.remaining,
            is_moving: status.is_moving,
            keep_apart: status.to_keep.unwrap_or_default(),
            backup: status.backup.map(|(note, opens)| KeystoreBackup {
                made_at: rfc3339(note.made_ms),
                recipients: note.recipients,
                opens,
            }),
            locked_key_bytes: status.key_memory.locked_bytes as u64,
            unlocked_key_bytes: status.key_memory.unlocked_bytes as u64,
            level_count: status.level_count as u64,
            level_keys: levels.into_iter().map(level_key).collect(),
            bucket_count: status.bucket_count as u64,
            rotating_bucket_count: status.rotating_bucket_count as u64,
        }
    }
}

async fn state(admin: &Admin, actor: &Actor) -> Result<Json<Keystore>, Refusal> {
    let status = admin.vault.keystore_status(actor).await?;
    let levels = admin.vault.levels(actor).await?;
    Ok(Json(Keystore::new(status, levels)))
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(show_keystore))
        .routes(routes!(back_up_keystore))
        .routes(routes!(rotate_root))
        .routes(routes!(move_keystore))
}

/// Show the state of the keystore
#[utoipa::path(
    get,
    path = "/v1/keystore",
    tag = "keystore",
    responses((status = OK, description = "No secret is among it", body = Keystore))
)]
async fn show_keystore(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Keystore>, Refusal> {
    state(&admin, &actor).await
}

/// Back up the root key
///
/// A key custodian's. The backup opens to the file `root.key`, and so every level: it is counted
/// as an export of each, takes the most approvals of any, and is refused where a level forbids
/// exports.
#[utoipa::path(
    post,
    path = "/v1/keystore/backup",
    tag = "keystore",
    request_body = ExportRequest,
    responses(ApprovalAnswer)
)]
async fn back_up_keystore(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<ExportRequest>,
) -> Result<ApprovalAnswer, Refusal> {
    let recipients = request.parsed()?;
    let asked = admin.vault.back_up_keystore(&actor, &recipients).await?;
    Ok(asked.into())
}

/// Rotate the root key
///
/// A key custodian's. The old one is destroyed when this answers.
#[utoipa::path(
    post,
    path = "/v1/keystore/rotate",
    tag = "keystore",
    responses(
        (status = OK, description = "It is rotated", body = RootRotation),
        (status = ACCEPTED, description = "It waits for approvals", body = Waiting),
    )
)]
async fn rotate_root(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Response, Refusal> {
    match waiting(admin.vault.rotate_root(&actor).await?) {
        Some(waits) => Ok(waits),
        None => Ok(Json(RootRotation::done(&admin, &actor).await?).into_response()),
    }
}

/// The answer, where something is not done.
fn waiting(asked: GuardedOutcome) -> Option<Response> {
    let (GuardedOutcome::Waits(request) | GuardedOutcome::Approved(request)) = asked else {
        return None;
    };
    let waiting = Waiting {
        request: request.into(),
    };
    Some((StatusCode::ACCEPTED, Json(waiting)).into_response())
}

/// Move the root key into another source
///
/// A key custodian's. A new root key is made there, and the old one destroyed. Where any level
/// takes approvals, that is asked for first, and the passphrase or PIN is not kept: who asked asks
/// again, with it, once it is approved.
#[utoipa::path(
    post,
    path = "/v1/keystore/move",
    tag = "keystore",
    request_body = MoveRequest,
    responses(
        (status = OK, description = "The keystore as it is now", body = Keystore),
        (status = ACCEPTED, description = "It waits for approvals", body = Waiting),
    )
)]
async fn move_keystore(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<MoveRequest>,
) -> Result<Response, Refusal> {
    let to = request.to.parse::<SourceSpec>();
    let to = to.map_err(|error: KeysError| Refusal::invalid(error.to_string()))?;
    let secrets = SourceSecrets {
        passphrase: request
            .passphrase
            .map(|text| Zeroizing::new(text.0.as_bytes().to_vec())),
        pin: request.pin.map(|text| Zeroizing::new(text.0.clone())),
    };
    match waiting(admin.vault.move_keystore(&actor, to, secrets).await?) {
        Some(waits) => Ok(waits),
        None => Ok(state(&admin, &actor).await?.into_response()),
    }
}
