//! `/v1/buckets/{name}/end-uploads`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use coffer_vault::UploadsEnded;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::api::buckets::bucket_name;
use crate::http::caller::{Caller, InPath, Input};
use crate::http::refusal::{About, Refusal};

/// Which uploads are to be ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = EndUploads)]
pub struct EndUploadsRequest {
    /// Those that were begun so many seconds ago, or longer.
    pub older_than_seconds: u64,
    /// Whether only to say how many that would be.
    #[serde(default)]
    pub dry_run: bool,
}

/// Uploads that were ended, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedUploads {
    /// The bucket's name.
    pub bucket: String,
    /// How many.
    pub upload_count: u64,
    /// How many bytes their parts had together.
    pub upload_bytes: u64,
    /// Whether they are still there.
    pub dry_run: bool,
}

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default().routes(routes!(end_uploads))
}

/// End unfinished multipart uploads
///
/// A key custodian's, or a data user's who may write there. Their parts are removed.
#[utoipa::path(
    post,
    path = "/v1/buckets/{name}/end-uploads",
    tag = "buckets",
    params(("name" = String, Path, description = "The bucket's name")),
    request_body = EndUploadsRequest,
    responses((status = OK, description = "How many were ended", body = EndedUploads))
)]
async fn end_uploads(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    InPath(name): InPath<String>,
    Input(request): Input<EndUploadsRequest>,
) -> Result<Json<EndedUploads>, Refusal> {
    let name = bucket_name(&name)?;
    let age = Duration::from_secs(request.older_than_seconds);
    let ended = if request.dry_run {
        admin.vault.count_uploads(&actor, &name, age).await
    } else {
        admin.vault.end_uploads(&actor, &name, age).await
    };
    let UploadsEnded { count, bytes } = ended.about(name.as_str())?;
    Ok(Json(EndedUploads {
        bucket: name.to_string(),
        upload_count: count,
        upload_bytes: bytes,
        dry_run: request.dry_run,
    }))
}
