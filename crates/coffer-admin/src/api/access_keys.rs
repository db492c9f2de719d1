//! `/v1/subjects/{name}/keys`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use coffer_durable::{from_rfc3339, now_ms, rfc3339};
use coffer_vault::AdministrationError::NoSuchAccessKey;
use coffer_vault::{AccessKeyChange, NewAccessKey, SubjectInfo, VaultError};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, InPath, InQuery, Input};
use crate::http::refusal::{About, Refusal};

/// Whether it is meant that none is left to administer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Meant {
    /// Also where no system administrator is left whose access key counts for a day to come, which
    /// is refused otherwise, with `last_administrator`.
    pub without_administrator: Option<bool>,
}

impl Meant {
    pub(crate) fn without_administrator(&self) -> bool {
        self.without_administrator.unwrap_or(false)
    }
}

/// An access key of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessKey {
    /// Its id.
    pub id: String,
    /// `active`, `disabled` or `expired`; whether its subject counts is told of that.
    pub state: String,
    /// When it expires: RFC 3339, UTC; absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub expires_at: Option<String>,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// An access key that has just been made, with its secret, which is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeAccessKey {
    /// Its id.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: Secret,
    /// The subject's name.
    pub subject: String,
    /// The subject's id.
    pub subject_id: String,
    /// All access keys of the subject, the oldest first.
    pub access_keys: Vec<AccessKey>,
}

/// A text that shows in JSON and nowhere else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// An access key to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = NewAccessKey)]
pub struct AccessKeyRequest {
    /// When it expires: RFC 3339; absent or null: never.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
}

/// How access keys are rotated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AccessKeyRotation)]
pub struct RotationRequest {
    /// For how many seconds the access keys that count now go on to do so; those that expire
    /// before do.
    pub overlap_seconds: u64,
    /// When the new one expires: RFC 3339; absent or null: never.
    #[serde(default)]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
}

/// What to change of an access key. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = AccessKeyChange)]
pub struct AccessKeyChanges {
    /// Whether it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// When it expires: RFC 3339, or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "never")]
    pub expires_at: Option<String>,
}

impl From<&coffer_vault::AccessKey> for AccessKey {
    fn from(key: &coffer_vault::AccessKey) -> Self {
        let has_expired = key.expires_ms.is_some_and(|ms| ms <= now_ms());
        let state = match (key.is_disabled, has_expired) {
            (true, _) => "disabled",
            (false, true) => "expired",
            (false, false) => "active",
        };
        Self {
            id: key.id.clone(),
            state: state.to_owned(),
            expires_at: key.expires_ms.map(rfc3339),
            created_at: rfc3339(key.created_ms),
        }
    }
}

pub(crate) fn moment(text: &str) -> Result<i64, Refusal> {
    from_rfc3339(text).ok_or_else(|| {
        Refusal::invalid("a moment is written as in RFC 3339, such as 2026-12-31T00:00:00Z")
    })
}

/// A moment, or `never`.
pub(crate) fn expiry(text: &str) -> Result<Option<i64>, Refusal> {
    match text {
        "never" => Ok(None),
        text => moment(text).map(Some),
    }
}

fn made((info, new): (SubjectInfo, NewAccessKey)) -> (StatusCode, Json<MadeAccessKey>) {
    let made = MadeAccessKey {
        access_key_id: new.key.id,
        secret_access_key: Secret(new.secret.to_string()),
        subject: info.subject.name().to_owned(),
        subject_id: info.subject.id().to_string(),
        access_keys: info.keys.iter().map(AccessKey::from).collect(),
    };
    (StatusCode::CREATED, Json(made))
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_access_keys, create_access_key))
        .routes(routes!(rotate_access_keys))
        .routes(routes!(change_access_key, delete_access_key))
}

/// List a subject's access keys
///
/// A system administrator, a key custodian and an auditor see those of all subjects, others their
/// own.
#[utoipa::path(
    get,
    path = "/v1/subjects/{name}/keys",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id")),
    responses((status = OK, description = "The oldest first", body = Vec<AccessKey>))
)]
async fn list_access_keys(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Json<Vec<AccessKey>>, Refusal> {
    let found = admin.vault.subject_named(&actor, &name).about(&name)?;
    Ok(Json(found.keys.iter().map(AccessKey::from).collect()))
}

/// Make one more access key for a subject
///
/// A system administrator's. The answer is the only one that ever holds the secret. A subject has 8
/// access keys at most; a new one then takes the place of the one that expired first.
#[utoipa::path(
    post,
    path = "/v1/subjects/{name}/keys",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id")),
    request_body = AccessKeyRequest,
    responses((status = CREATED, description = "The access key, made", body = MadeAccessKey))
)]
async fn create_access_key(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    Input(request): Input<AccessKeyRequest>,
) -> Result<(StatusCode, Json<MadeAccessKey>), Refusal> {
    let expires_ms = request.expires_at.as_deref().map(moment).transpose()?;
    let new = admin
        .vault
        .create_access_key(&actor, &name, expires_ms)
        .await;
    Ok(made(new.about(&name)?))
}

/// Make a new access key, and end the others after an overlap
///
/// A system administrator's. The answer is the only one that ever holds the secret. Without an
/// overlap, requests under way with the others are cut off.
#[utoipa::path(
    post,
    path = "/v1/subjects/{name}/keys/rotate",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id"), Meant),
    request_body = RotationRequest,
    responses((status = CREATED, description = "The new access key", body = MadeAccessKey))
)]
async fn rotate_access_keys(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    InQuery(meant): InQuery<Meant>,
    Input(request): Input<RotationRequest>,
) -> Result<(StatusCode, Json<MadeAccessKey>), Refusal> {
    let expires_ms = request.expires_at.as_deref().map(moment).transpose()?;
    let overlap = Duration::from_secs(request.overlap_seconds);
    let (vault, meant) = (&admin.vault, meant.without_administrator());
    let new = vault.rotate_access_keys(&actor, &name, (overlap, expires_ms), meant);
    Ok(made(new.await.about(&name)?))
}

/// Change an access key
///
/// A system administrator's. Disabling it cuts off the requests under way with it.
#[utoipa::path(
    patch,
    path = "/v1/subjects/{name}/keys/{key}",
    tag = "subjects",
    params(
        ("name" = String, Path, description = "Its name, its id or an access key id"),
        ("key" = String, Path, description = "The access key's id"),
        Meant,
    ),
    request_body = AccessKeyChanges,
    responses((status = OK, description = "The access key, changed", body = AccessKey))
)]
async fn change_access_key(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath((name, key)): InPath<(String, String)>,
    InQuery(meant): InQuery<Meant>,
    Input(changes): Input<AccessKeyChanges>,
) -> Result<Json<AccessKey>, Refusal> {
    let change = AccessKeyChange {
        is_disabled: changes.disabled,
        expires_ms: changes.expires_at.as_deref().map(expiry).transpose()?,
    };
    let (place, meant) = ((&*name, &*key), meant.without_administrator());
    let changed = admin.vault.change_access_key(&actor, place, change, meant);
    let changed = changed.await.about(&name)?;
    let found = changed.keys.iter().find(|found| found.id == key);
    let found = found.ok_or_else(|| Refusal::from(VaultError::from(NoSuchAccessKey)))?;
    Ok(Json(found.into()))
}

/// Delete an access key
///
/// A system administrator's. It is gone for good, and requests under way with it are cut off.
#[utoipa::path(
    delete,
    path = "/v1/subjects/{name}/keys/{key}",
    tag = "subjects",
    params(
        ("name" = String, Path, description = "Its name, its id or an access key id"),
        ("key" = String, Path, description = "The access key's id"),
        Meant,
    ),
    responses((status = NO_CONTENT, description = "It is deleted"))
)]
async fn delete_access_key(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath((name, key)): InPath<(String, String)>,
    InQuery(meant): InQuery<Meant>,
) -> Result<StatusCode, Refusal> {
    let meant = meant.without_administrator();
    let gone = admin.vault.delete_access_key(&actor, (&name, &key), meant);
    let gone = gone.await;
    gone.about(&name)?;
    Ok(StatusCode::NO_CONTENT)
}
