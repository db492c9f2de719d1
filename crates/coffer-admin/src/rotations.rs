//! Rotations: begun, and told of at `/v1/rotations`.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::buckets::bucket_name;
use crate::caller::{Caller, InPath};
use crate::instant::rfc3339;
use crate::refusal::Refusal;

/// How far a rotation has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rotation {
    /// Name of the level.
    pub level: String,
    /// Name of the bucket, if only that is rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket: Option<String>,
    /// When it was asked for: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub begun_at: String,
    /// When it ended: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub ended_at: Option<String>,
    /// Why it did not come to its end; the next start goes on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<String>,
    /// The generation that is replaced: of the level's key, or of the bucket's if only that is
    /// rotated.
    pub replaced_generation: u32,
    /// Whether that generation is destroyed.
    pub replaced_destroyed: bool,
    /// How many buckets get a new key.
    pub bucket_count: u64,
    /// How many have theirs, and their old one is destroyed.
    pub buckets_done: u64,
    /// How many data keys are to be rewrapped in the buckets reached so far.
    pub key_count: u64,
    /// How many are.
    pub keys_done: u64,
}

impl From<coffer_vault::Rotation> for Rotation {
    fn from(rotation: coffer_vault::Rotation) -> Self {
        Self {
            level: rotation.level,
            bucket: rotation.bucket,
            begun_at: rfc3339(rotation.begun_ms),
            ended_at: rotation.ended_ms.map(rfc3339),
            failure: rotation.failure,
            replaced_generation: rotation.replaced_generation,
            replaced_destroyed: rotation.is_replaced_destroyed,
            bucket_count: rotation.bucket_count as u64,
            buckets_done: rotation.buckets_done as u64,
            key_count: rotation.key_count,
            keys_done: rotation.keys_done,
        }
    }
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default()
        .routes(routes!(rotate_level))
        .routes(routes!(rotate_bucket))
        .routes(routes!(list_rotations))
}

/// Rotate a level's key and those of its buckets
///
/// A key custodian's. It goes on in the background, also after a restart.
#[utoipa::path(
    post,
    path = "/v1/levels/{name}/rotate",
    tag = "levels",
    params(("name" = String, Path, description = "The level's name")),
    responses((status = ACCEPTED, description = "It has begun", body = Rotation))
)]
async fn rotate_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<(StatusCode, Json<Rotation>), Refusal> {
    let rotation = admin.vault.rotate_level(&actor, &name).await?;
    Ok((StatusCode::ACCEPTED, Json(rotation.into())))
}

/// Rotate a bucket's key
///
/// A key custodian's. It goes on in the background, also after a restart.
#[utoipa::path(
    post,
    path = "/v1/buckets/{name}/rotate",
    tag = "buckets",
    params(("name" = String, Path, description = "The bucket's name")),
    responses((status = ACCEPTED, description = "It has begun", body = Rotation))
)]
async fn rotate_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<(StatusCode, Json<Rotation>), Refusal> {
    let name = bucket_name(&name)?;
    let rotation = admin.vault.rotate_bucket(&actor, &name).await?;
    Ok((StatusCode::ACCEPTED, Json(rotation.into())))
}

/// List rotations since the server's start
#[utoipa::path(
    get,
    path = "/v1/rotations",
    tag = "keystore",
    responses((status = OK, description = "The latest last", body = Vec<Rotation>))
)]
async fn list_rotations(
    Caller(actor): Caller,
    State(admin): State<Admin>,
) -> Result<Json<Vec<Rotation>>, Refusal> {
    let rotations = admin.vault.rotations(&actor).await?;
    Ok(Json(rotations.into_iter().map(Into::into).collect()))
}
