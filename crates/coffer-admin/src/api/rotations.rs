//! Rotations: begun, and told of at `/v1/rotations`.

use axum::Json;
use axum::extract::State;
use coffer_vault::GuardedOutcome;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::approvals::Waiting;
use crate::api::buckets::bucket_name;
use crate::api::root_rotation::copies_are_stale;
use crate::api::rotation_progress::Rotation;
use crate::http::caller::{Caller, InPath};
use crate::http::refusal::{About, Refusal};

/// What became of a rotation that was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum RotationAnswer {
    /// It has begun.
    Begun(Rotation),
    /// It waits for approvals.
    Waits(Box<Waiting>),
}

impl From<GuardedOutcome> for RotationAnswer {
    fn from(asked: GuardedOutcome) -> Self {
        match asked {
            GuardedOutcome::Rotating(rotation) => Self::Begun(rotation.into()),
            GuardedOutcome::Waits(request) | GuardedOutcome::Approved(request) => {
                let request = request.into();
                Self::Waits(Box::new(Waiting { request }))
            }
            GuardedOutcome::Erased(_)
            | GuardedOutcome::Exported(_)
            | GuardedOutcome::Rerooted
            | GuardedOutcome::Pruned(_)
            | GuardedOutcome::LockTimeSet(_)
            | GuardedOutcome::CopyAdded(_) => {
                unreachable!("a rotation was asked for")
            }
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
    responses((
        status = ACCEPTED,
        description = "It has begun, or waits for approvals",
        body = RotationAnswer,
    ))
)]
async fn rotate_level(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<(StatusCode, Json<RotationAnswer>), Refusal> {
    let rotation = admin.vault.rotate_level(&actor, &name).await.about(&name)?;
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
    responses((
        status = ACCEPTED,
        description = "It has begun, or waits for approvals",
        body = RotationAnswer,
    ))
)]
async fn rotate_bucket(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
) -> Result<(StatusCode, Json<RotationAnswer>), Refusal> {
    let name = bucket_name(&name)?;
    let rotation = admin.vault.rotate_bucket(&actor, &name).await;
    let rotation = rotation.about(name.as_str())?;
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
    let told = |rotation: coffer_vault::Rotation| {
        let has_changed_root = rotation.is_replaced_destroyed || rotation.buckets_done > 0;
        let mut told = Rotation::from(rotation);
        told.keep_apart = has_changed_root.then(|| copies_are_stale(&admin)).flatten();
        told
    };
    Ok(Json(rotations.into_iter().map(told).collect()))
}
