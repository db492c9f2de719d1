//! Levels that come from another server.

use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use coffer_keys::KeysError;
use coffer_vault::{Adoption, BucketId, LEFT_BEHIND, VaultError};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::access_keys::Secret;
use crate::api::buckets::bucket_name;
use crate::http::caller::{Caller, Input};
use crate::http::refusal::Refusal;
use crate::limits::IMPORT_BYTES;

/// An export to be taken in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewImport)]
pub struct ImportRequest {
    /// The export: an armored age file.
    pub export: String,
    /// What opens it: an identity of age, `AGE-SECRET-KEY-1…`.
    pub identity: Secret,
    /// Another name for the level.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, pattern = "^[a-z0-9-]{1,63}$")]
    pub name: Option<String>,
    /// Another level may have its label: then the same subjects use both.
    #[serde(default)]
    pub same_label: bool,
}

/// A level that was taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Import {
    /// The level's name here.
    pub level: String,
    /// Its buckets.
    pub buckets: Vec<ImportedBucket>,
}

/// A bucket of a level that was taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImportedBucket {
    /// Its id: the name of its folder, 32 hexadecimal digits.
    pub id: String,
    /// `adopted`; `name-taken`: adopt it under another; `folder-missing`: copy its folder, then
    /// adopt it, or restart; `unreadable`.
    pub state: String,
    /// Its name, as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub problem: Option<String>,
    /// What the other server kept of an adopted bucket outside of its folder, if it did, and which
    /// has not come along: set it anew. Kinds: `owner`, `grants`, `policy`,
    /// `public-access-block`, `cors`, `lifecycle`, `encryption`, `etag`, `object-lock`,
    /// `quota`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
}

/// A bucket to be adopted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptRequest {
    /// Its id: the name of its folder.
    #[schema(pattern = "^[0-9a-f]{32}$")]
    pub id: String,
    /// Another name for it.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
}

fn told(id: BucketId, adoption: Adoption) -> ImportedBucket {
    let left_behind = match &adoption {
        Adoption::Adopted(_) => LEFT_BEHIND.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    let (state, name, problem) = match adoption {
        Adoption::Adopted(name) => ("adopted", Some(name.to_string()), None),
        Adoption::NameTaken(name) => ("name-taken", Some(name.to_string()), None),
        Adoption::FolderMissing => ("folder-missing", None, None),
        Adoption::Unreadable(problem) => ("unreadable", None, Some(problem)),
    };
    ImportedBucket {
        id: id.to_string(),
        state: state.to_owned(),
        name,
        problem,
        left_behind,
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    let imports = OpenApiRouter::default()
        .routes(routes!(import_level))
        .layer(DefaultBodyLimit::max(IMPORT_BYTES));
    OpenApiRouter::default()
        .routes(routes!(adopt_bucket))
        .merge(imports)
}

/// Take in a level from an export
///
/// A key custodian's. Its buckets are adopted as far as their folders have been copied here.
#[utoipa::path(
    post,
    path = "/v1/imports",
    tag = "levels",
    request_body = ImportRequest,
    responses((status = CREATED, description = "The level, taken in", body = Import))
)]
async fn import_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<ImportRequest>,
) -> Result<(StatusCode, Json<Import>), Refusal> {
    let identity = request.identity.0.parse();
    let identity = identity.map_err(|error: KeysError| Refusal::invalid(error.to_string()))?;
    let export = request.export.into_bytes();
    let imported = admin
        .vault
        .import_level(&actor, export, identity, request.name, request.same_label)
        .await?;
    let buckets = imported.buckets.into_iter();
    let import = Import {
        level: imported.level.name,
        buckets: buckets.map(|(id, adoption)| told(id, adoption)).collect(),
    };
    Ok((StatusCode::CREATED, Json(import)))
}

/// Adopt a bucket of a level that was taken in
///
/// A key custodian's, after the bucket's folder has been copied, or to give it another name.
#[utoipa::path(
    post,
    path = "/v1/adoptions",
    tag = "buckets",
    request_body = AdoptRequest,
    responses((status = OK, description = "What became of it", body = ImportedBucket))
)]
async fn adopt_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<AdoptRequest>,
) -> Result<Json<ImportedBucket>, Refusal> {
    let id = BucketId::from_hex(&request.id);
    let id = id.ok_or_else(|| Refusal::invalid("an id has 32 hexadecimal digits"))?;
    let name = request.name.as_deref().map(bucket_name).transpose()?;
    let adoption = admin.vault.adopt_bucket(&actor, id, name).await;
    let adoption = adoption.map_err(|error| match error {
        VaultError::NoSuchBucket => Refusal::new(
            StatusCode::NOT_FOUND,
            "no_such_bucket",
            format!("no imported level has a bucket {id} that is still to be adopted"),
        ),
        error => error.into(),
    })?;
    Ok(Json(told(id, adoption)))
}
