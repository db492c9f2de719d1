//! `/v1/subjects`.

use axum::Json;
use axum::extract::State;
use coffer_vault::{NewSubject, Role, Roles, SubjectChange, SubjectInfo, VaultError};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::grants::Grant;
use self::grants::grants;
use crate::admin::Admin;
use crate::api::access_keys::{AccessKey, Meant, Secret, expiry, moment};
use crate::api::buckets::bucket_name;
use crate::http::caller::{Caller, InPath, InQuery, Input};
use crate::http::refusal::{About, Refusal};
use crate::http::strict_json;
use coffer_durable::rfc3339;

mod grants;

/// A subject: the holder of access keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Subject {
    /// Its id, which never changes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its access keys, the oldest first.
    pub access_keys: Vec<AccessKey>,
    /// What it may see and write: a label, or a range such as `s0-s2:c1`.
    pub clearance: String,
    /// Whether its clearance is trusted: what it reads has no bearing on where it writes.
    pub trusted: bool,
    /// What it has read above the lower end of its clearance, which keeps it from writing below
    /// that: the level, or a label. Absent: nothing, or it has been settled since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "secret")]
    pub read: Option<String>,
    /// What it may do.
    #[schema(example = json!(["data-user"]))]
    pub roles: Vec<String>,
    /// Whether it may use every bucket that its clearance allows. If not, `grants` says which.
    pub all_buckets: bool,
    /// What it may do in which buckets, as far as its clearance allows.
    pub grants: Vec<Grant>,
    /// What of its grants it can't use, because its clearance leaves out the label of the bucket.
    /// Absent: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable_grants: Vec<Grant>,
    /// Whether it is disabled, with all of its access keys.
    pub disabled: bool,
    /// Whether it is not known yet if what was last changed of it has happened. It counts as
    /// disabled until then; absent: it is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_doubt: bool,
    /// When it expires, with all of its access keys: RFC 3339, UTC; absent: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime, nullable = false)]
    pub expires_at: Option<String>,
    /// When it was made: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub created_at: String,
}

/// A subject that has just been made, with its secret, which is shown this once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeSubject {
    /// The subject.
    #[serde(flatten)]
    pub subject: Subject,
    /// Its access key's id.
    pub access_key_id: String,
    /// Its secret access key.
    pub secret_access_key: Secret,
}

/// A subject to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewSubject)]
pub struct SubjectRequest {
    /// Its name, unique: letters, digits, and `.`, `_`, `@` and `-` between them.
    #[schema(pattern = "^[A-Za-z0-9]([A-Za-z0-9._@-]{0,61}[A-Za-z0-9])?$")]
    pub name: String,
    /// `LOW..HIGH`, names of levels or labels; or one of either; or SELinux's text, such as
    /// `s0-s2:c1`.
    #[schema(example = "default..secret")]
    pub clearance: String,
    /// Whether what it reads is to have no bearing on where it writes; for a range only.
    #[serde(default)]
    pub trusted: bool,
    /// What it may do: `data-user`, `system-administrator`, `key-custodian`, `auditor`.
    #[serde(default = "data_user")]
    #[schema(example = json!(["data-user"]))]
    pub roles: Vec<String>,
    /// When it expires, with all of its access keys: RFC 3339; absent or null: never.
    #[serde(default)]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// What it may do in which buckets; absent or null: everything in every bucket that its
    /// clearance allows.
    #[serde(default, deserialize_with = "strict_json::optional_list")]
    pub grants: Option<Vec<Grant>>,
}

fn data_user() -> Vec<String> {
    vec![Role::DataUser.to_string()]
}

/// What to change of a subject. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = SubjectChange)]
pub struct SubjectChanges {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its clearance, written as for a new subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clearance: Option<String>,
    /// Whether its clearance, a range, is trusted. A new clearance is not, unless this says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Its roles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<String>>,
    /// When it expires: RFC 3339, or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "never")]
    pub expires_at: Option<String>,
    /// Whether it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Take all grants away first: everything in every bucket that its clearance allows.
    pub all_buckets: bool,
    /// Rights to grant, instead of those granted in these buckets before.
    #[serde(deserialize_with = "strict_json::list")]
    pub grant: Vec<Grant>,
    /// Buckets to grant nothing in any more.
    pub revoke: Vec<String>,
}

impl From<SubjectInfo> for Subject {
    fn from(info: SubjectInfo) -> Self {
        let SubjectInfo {
            subject,
            keys,
            grants,
            unreachable,
            read,
            is_disabled,
            is_in_doubt,
            expires_ms,
            created_ms,
        } = info;
        Self {
            id: subject.id().to_string(),
            name: subject.name().to_owned(),
            access_keys: keys.iter().map(AccessKey::from).collect(),
            clearance: subject.clearance().to_string(),
            trusted: subject.is_trusted(),
            read,
            roles: subject
                .roles()
                .iter()
                .map(|role| role.to_string())
                .collect(),
            all_buckets: grants.is_none(),
            grants: grants.into_iter().flatten().map(Grant::from).collect(),
            unreachable_grants: unreachable.into_iter().map(Grant::from).collect(),
            disabled: is_disabled,
            in_doubt: is_in_doubt,
            expires_at: expires_ms.map(rfc3339),
            created_at: rfc3339(created_ms),
        }
    }
}

impl TryFrom<SubjectRequest> for NewSubject {
    type Error = Refusal;

    fn try_from(request: SubjectRequest) -> Result<Self, Refusal> {
        Ok(Self {
            name: request.name,
            clearance: request.clearance,
            is_trusted: request.trusted,
            roles: roles(&request.roles)?,
            expires_ms: request.expires_at.as_deref().map(moment).transpose()?,
            grants: request.grants.map(grants).transpose()?,
        })
    }
}

impl TryFrom<SubjectChanges> for SubjectChange {
    type Error = Refusal;

    fn try_from(changes: SubjectChanges) -> Result<Self, Refusal> {
        let revoke = changes.revoke.iter().map(|name| bucket_name(name));
        Ok(Self {
            name: changes.name,
            clearance: changes.clearance,
            is_trusted: changes.trusted,
            roles: changes.roles.as_deref().map(roles).transpose()?,
            expires_ms: changes.expires_at.as_deref().map(expiry).transpose()?,
            is_disabled: changes.disabled,
            all_buckets: changes.all_buckets,
            grant: grants(changes.grant)?,
            revoke: revoke.collect::<Result<_, _>>()?,
        })
    }
}

fn roles(names: &[String]) -> Result<Roles, Refusal> {
    let roles = names.iter().map(|name| name.parse::<Role>());
    let roles: Result<Roles, VaultError> = roles.collect();
    Ok(roles?)
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(list_subjects, create_subject))
        .routes(routes!(show_subject, change_subject, delete_subject))
        .routes(routes!(settle_subject))
}

/// Make a subject with an access key
///
/// A system administrator's. The answer is the only one that ever holds the secret.
#[utoipa::path(
    post,
    path = "/v1/subjects",
    tag = "subjects",
    request_body = SubjectRequest,
    responses((status = CREATED, description = "The subject, made", body = MadeSubject))
)]
async fn create_subject(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<SubjectRequest>,
) -> Result<(StatusCode, Json<MadeSubject>), Refusal> {
    let (name, granted) = (request.name.clone(), request.buckets());
    let made = admin.vault.create_subject(&actor, request.try_into()?);
    let (info, new) = match made.await {
        Err(error @ VaultError::NoSuchBucket) => Err(error).about(&granted)?,
        other => other.about(&name)?,
    };
    let made = MadeSubject {
        subject: info.into(),
        access_key_id: new.key.id,
        secret_access_key: Secret(new.secret.to_string()),
    };
    Ok((StatusCode::CREATED, Json(made)))
}

/// List subjects
///
/// A system administrator, a key custodian and an auditor see all subjects, others themselves.
#[utoipa::path(
    get,
    path = "/v1/subjects",
    tag = "subjects",
    responses((status = OK, description = "By name", body = Vec<Subject>))
)]
async fn list_subjects(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<Subject>>, Refusal> {
    let subjects = admin.vault.subjects(&actor).into_iter();
    Ok(Json(subjects.map(Subject::from).collect()))
}

/// Show a subject
#[utoipa::path(
    get,
    path = "/v1/subjects/{name}",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id")),
    responses((status = OK, description = "The subject", body = Subject))
)]
async fn show_subject(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Json<Subject>, Refusal> {
    let subject = admin.vault.subject_named(&actor, &name).about(&name)?;
    Ok(Json(subject.into()))
}

/// Change a subject
///
/// A system administrator's. Disabling it, or changing what it may use, cuts off its requests that
/// are under way; a new name does not.
#[utoipa::path(
    patch,
    path = "/v1/subjects/{name}",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id"), Meant),
    request_body = SubjectChanges,
    responses((status = OK, description = "The subject, changed", body = Subject))
)]
async fn change_subject(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    InQuery(meant): InQuery<Meant>,
    Input(changes): Input<SubjectChanges>,
) -> Result<Json<Subject>, Refusal> {
    let renamed = changes.name.clone();
    let granted = changes.buckets();
    let change = changes.try_into()?;
    let meant = meant.without_administrator();
    let changed = admin.vault.change_subject(&actor, &name, change, meant);
    let changed = changed.await;
    let changed = match changed {
        Err(VaultError::SubjectExists) => changed.about(renamed.as_deref().unwrap_or(&name))?,
        Err(VaultError::NoSuchBucket) => changed.about(&granted)?,
        _ => changed.about(&name)?,
    };
    Ok(Json(changed.into()))
}

/// Settle a subject
///
/// A key custodian's, and not on itself: what the subject has read bears no more on where it
/// writes.
/// Its requests that are under way are cut off.
#[utoipa::path(
    post,
    path = "/v1/subjects/{name}/settle",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id")),
    responses((status = OK, description = "The subject, settled", body = Subject))
)]
async fn settle_subject(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<Json<Subject>, Refusal> {
    let settled = admin.vault.settle_subject(&actor, &name).await;
    Ok(Json(settled.about(&name)?.into()))
}

/// Delete a subject
///
/// A system administrator's. Its access keys are gone for good, and its requests are cut off.
#[utoipa::path(
    delete,
    path = "/v1/subjects/{name}",
    tag = "subjects",
    params(("name" = String, Path, description = "Its name, its id or an access key id"), Meant),
    responses((status = NO_CONTENT, description = "It is deleted"))
)]
async fn delete_subject(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    InQuery(meant): InQuery<Meant>,
) -> Result<StatusCode, Refusal> {
    let meant = meant.without_administrator();
    let gone = admin.vault.delete_subject(&actor, &name, meant).await;
    gone.about(&name)?;
    Ok(StatusCode::NO_CONTENT)
}
