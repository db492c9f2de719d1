//! The administration front door: health and metrics for every client; the API for the owner of
//! the data folder, and for holders of access keys with a role.

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod status;

mod metrics;

mod admin;

mod http;

mod health;

mod api;

mod openapi;

mod routes;

mod local_socket;

pub use axum::body::Body as Answer;

pub use coffer_durable::from_rfc3339;

pub use crate::admin::Admin;
pub use crate::api::access_keys::{
    AccessKey, AccessKeyChanges, AccessKeyRequest, MadeAccessKey, RotationRequest, Secret,
};
pub use crate::api::approvals::lock_time::{LockTime, LockTimeRequest};
pub use crate::api::approvals::{
    ApprovalOutcome, AuditPruned, ExportRequest, PendingRequest, Waiting,
};
pub use crate::api::audit::{AuditPruneRequest, AuditRecord, AuditReport, AuditVerifyRequest};
pub use crate::api::backups::replica_checks::ReplicaReport;
pub use crate::api::backups::replicas::{
    Replica, ReplicaGap, ReplicaKeystore, ReplicaRequest, ReplicaSync,
};
pub use crate::api::backups::standby::{Promotion, Standby};
pub use crate::api::backups::{BackupReport, BackupRequest};
pub use crate::api::buckets::quotas::{QuotaLimits, QuotaRow, QuotaUsed};
pub use crate::api::buckets::settings::{BucketSettings, LockSettings, VersioningState};
pub use crate::api::buckets::{Bucket, BucketRequest, EtagKind};
pub use crate::api::imports::{AdoptRequest, Import, ImportRequest, ImportedBucket};
pub use crate::api::keystore::{Keystore, KeystoreBackup, LevelKey, MoveRequest};
pub use crate::api::levels::{Level, LevelRequest};
pub use crate::api::receipts::{ReceiptEntry, ReceiptKey};
pub use crate::api::root_rotation::RootRotation;
pub use crate::api::rotation_progress::Rotation;
pub use crate::api::subjects::{Grant, MadeSubject, Subject, SubjectChanges, SubjectRequest};
pub use crate::api::uploads::{EndUploadsRequest, EndedUploads};
pub use crate::api::verify_report::{Report, VerifyRequest};
pub use crate::error::AdminError;
pub use crate::http::caller::Peer;
pub use crate::http::refusal::{ErrorBody, ErrorDetail};
pub use crate::local_socket::LocalSocket;
pub use crate::metrics::process::count_lost_log_lines;
pub use crate::metrics::s3_metrics::{S3Metrics, S3Time};
pub use crate::metrics::traffic::{Traffic, TrafficSnapshot};
pub use crate::routes::{Routes, openapi_json};
pub use crate::status::Status;
