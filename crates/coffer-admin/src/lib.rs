//! The administration front door: health and metrics for whoever asks; the API for whoever owns
//! the data folder, and for whoever holds an access key with a role.

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod status;

mod traffic;

mod requests;

mod process;

mod metrics;

mod report;

mod instant;

mod refusal;

mod objects;

mod admin;

mod caller;

mod health;

mod levels;

mod buckets;

mod subjects;

mod progress;

mod approvals;

mod rotations;

mod imports;

mod keystore;

mod receipts;

mod audit;

mod verification;

mod openapi;

mod routes;

mod socket;

pub use axum::body::Body as Answer;

pub use crate::admin::Admin;
pub use crate::approvals::{
    AuditPruned, ExportRequest, Outcome, PendingRequest, RootRotation, Waiting,
};
pub use crate::audit::{AuditPruneRequest, AuditRecord, AuditReport, AuditVerifyRequest};
pub use crate::buckets::{Bucket, BucketRequest};
pub use crate::caller::Peer;
pub use crate::error::AdminError;
pub use crate::imports::{AdoptRequest, Import, ImportRequest, ImportedBucket};
pub use crate::instant::from_rfc3339;
pub use crate::keystore::{Keystore, LevelKey, MoveRequest};
pub use crate::levels::{Level, LevelRequest};
pub use crate::process::count_lost_log_lines;
pub use crate::progress::Rotation;
pub use crate::receipts::{ReceiptEntry, ReceiptKey};
pub use crate::refusal::{ErrorBody, ErrorDetail};
pub use crate::report::{Report, VerifyRequest};
pub use crate::requests::Requests;
pub use crate::routes::{Routes, openapi_json};
pub use crate::socket::{LocalSocket, connect};
pub use crate::status::Status;
pub use crate::subjects::{Grant, MadeSubject, Secret, Subject, SubjectChanges, SubjectRequest};
pub use crate::traffic::{Traffic, TrafficSnapshot};
