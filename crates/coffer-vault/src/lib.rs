//! The reference monitor: the only door to data.
//!
//! Front doors translate a protocol into calls on a [`Vault`] and hold no policy. Every call names
//! a [`Subject`]; the vault decides by the subject's clearance and the label of the bucket's level
//! ([`monitor`]), then acts: keys come from the keystore, bytes are sealed and opened on their way
//! to and from the store.
//!
//! A bucket that a subject may not read does not exist for it.

#![forbid(unsafe_code)]

pub mod limits;

mod clock;

mod name;

mod rollback;

mod error;

mod access_key;

mod request;

mod digest;

mod roles;

mod rights;

mod failures;

mod lifeline;

mod standing;

mod mark;

mod subject;

mod monitor;

mod actor;

mod counters;

mod folder;

mod system;

mod ledger;

mod repeats;

mod audit;

mod watch;

mod draft;

mod freshness;

mod catalogs;

mod open_uploads;

mod bucket;

mod progress;

mod ingest;

mod body;

mod start;

mod vault;

mod recording;

mod holding;

mod act;

mod granting;

mod manage;

mod deletion;

mod erase;

mod levels;

mod subjects;

mod expiry;

mod settling;

mod sign_in;

mod write;

mod read;

mod multipart;

mod completion;

mod wanted;

mod rotation;

mod keystore_acts;

mod performing;

mod requests;

mod guarded;

mod receipts;

mod exports;

mod recovery;

mod verify;

mod audit_filter;

mod auditing;

pub mod offline;

mod commitments;

#[cfg(test)]
mod latecomers;

#[cfg(test)]
mod put_back;

#[cfg(test)]
mod unremembered;

pub use coffer_keys::is_region;
pub use coffer_seal::{KeyMemory, locked_memory};
pub use coffer_store::{Totals, record};

pub use crate::actor::Actor;
pub use crate::audit_filter::AuditFilter;
pub use crate::auditing::{AuditItem, AuditQuery};
pub use crate::body::ObjectBody;
pub use crate::commitments::{CommitmentsChecked, WrongBlob};
pub use crate::counters::Counters;
pub use crate::error::{BodyError, Result, VaultError, files_run_out};
pub use crate::exports::{Adoption, Imported};
pub use crate::failures::{SignInFailures, neighbourhood};
pub use crate::keystore_acts::KeystoreStatus;
pub use crate::ledger::ReceiptSummary;
pub use crate::levels::{LevelInfo, NewLevel};
pub use crate::lifeline::Lifeline;
pub use crate::name::BucketName;
pub use crate::progress::Rotation;
pub use crate::read::ObjectRead;
pub use crate::recording::Facts;
pub use crate::request::*;
pub use crate::rights::{Right, Rights};
pub use crate::roles::{Role, Roles};
pub use crate::rollback::{Rollback, RollbackOf};
pub use crate::sign_in::SignInFailure;
pub use crate::subject::Subject;
pub use crate::subjects::{NewSubject, SubjectChange, SubjectInfo};
pub use crate::vault::{Vault, VaultOptions};
pub use crate::wanted::{ApprovalRequest, Asked, Wanted};
