//! `/v1/backup`: a copy of the data folder, reported as it is made.

use std::path::PathBuf;

use axum::extract::State;
use axum::response::Response;
use coffer_vault::{BackupCounts, BackupEvent};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::admin::Admin;
use crate::http::caller::{Caller, Input};
use crate::http::json_lines::json_lines;
use crate::http::refusal::Refusal;

pub(crate) mod replica_checks;

pub(crate) mod replicas;

pub(crate) mod standby;

pub(crate) fn routes() -> OpenApiRouter<Admin> {
    OpenApiRouter::default().routes(routes!(back_up))
}

/// What the server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// A folder of the server's machine, by its absolute path: the copy goes into `copy` there.
    pub folder: String,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum BackupReport {
    /// So much has been looked at, and copied.
    Progress {
        /// Blobs looked at so far.
        blob_count: u64,
        /// Blobs copied so far: they were not in the copy before.
        copied_count: u64,
        /// Bytes of these.
        copied_bytes: u64,
    },
    /// The copy has but the name of this bucket, as the server: a restore left it out.
    LeftOut {
        /// Its name.
        bucket: String,
    },
    /// The copy is complete.
    Done {
        /// The folder that holds it.
        folder: String,
        /// How many buckets it has.
        bucket_count: u64,
        /// How many blobs it has.
        blob_count: u64,
        /// Blobs that were copied: they were not in the copy before.
        copied_count: u64,
        /// Bytes of these.
        copied_bytes: u64,
        /// Buckets of which it has but the name and the key, as the server has: their erase was
        /// ordered in the copy that the server went on from. Ask for it again.
        #[serde(default)]
        left_to_erase_count: u64,
        /// Of how many others it has but the name, as the server: each was told.
        #[serde(default)]
        left_out_count: u64,
    },
    /// There is none, and the one before stays.
    Failed {
        /// For programs: a word that stays the same.
        code: String,
        /// For people: what happened.
        message: String,
    },
}

impl From<BackupEvent> for BackupReport {
    fn from(event: BackupEvent) -> Self {
        match event {
            BackupEvent::Progress(BackupCounts {
                blob_count,
                copied_count,
                copied_bytes,
                ..
            }) => Self::Progress {
                blob_count,
                copied_count,
                copied_bytes,
            },
            BackupEvent::LeftOut { bucket } => Self::LeftOut {
                bucket: bucket.as_str().to_owned(),
            },
            BackupEvent::Done { folder, counts } => Self::Done {
                folder: folder.display().to_string(),
                bucket_count: counts.bucket_count,
                blob_count: counts.blob_count,
                copied_count: counts.copied_count,
                copied_bytes: counts.copied_bytes,
                left_to_erase_count: counts.left_to_erase_count,
                left_out_count: counts.left_out_count,
            },
            BackupEvent::Failed(error) => {
                let (code, message) = Refusal::from(error).told();
                Self::Failed { code, message }
            }
        }
    }
}

/// Copy the data folder while it is served
///
/// A system administrator's, at the local socket only. The answer is a line of JSON for each event,
/// and lasts until the copy is complete; who hangs up ends it, and the next one goes on from there.
#[utoipa::path(
    post,
    path = "/v1/backup",
    tag = "storage",
    request_body = BackupRequest,
    responses((
        status = OK,
        description = "Events, a line each; the last is `done` or `failed`",
        body = BackupReport,
        content_type = "application/x-ndjson",
    ))
)]
async fn back_up(
    Caller(actor): Caller,
    State(admin): State<Admin>,
    Input(request): Input<BackupRequest>,
) -> Result<Response, Refusal> {
    let folder = PathBuf::from(request.folder);
    let events = admin.vault.back_up(&actor, &folder).await?;
    Ok(json_lines(events.map(BackupReport::from)))
}
