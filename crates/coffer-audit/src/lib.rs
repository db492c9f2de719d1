//! The audit log: append-only, sealed, chained by hash, with signed checkpoints.
//!
//! ```text
//! audit/
//!   00000001.log   a segment: header, then records; each one a sealed message that knows the hash
//!   00000002.log   of the record before it. Full segments stay as they are.
//!   head           the last durable record, sealed: what a log that was cut off is found by
//! ```
//!
//! What [`AuditLog::append`] has returned for is durable, and so is the head that names it. One
//! thread writes and syncs for all who wait. The format is in `docs/FORMAT.md`, "Audit log".
//!
//! ```
//! use coffer_audit::{AuditKey, AuditLog, CheckpointKey, Event, Options, Outcome, verify};
//! use coffer_seal::{KeystoreId, SecretKey};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let secret = SecretKey::generate();
//! let signer = CheckpointKey::from_seed(&SecretKey::generate());
//! let (public_key, keystore_id) = (signer.public_key(), KeystoreId([7; 16]));
//! let key = || AuditKey::new(secret.clone(), keystore_id);
//!
//! let (log, _) = AuditLog::open(folder.path(), key(), Box::new(signer), Options::default())?;
//! let event = Event::new("level.create", "COFFERADMIN", Outcome::Done).with("level", "secret");
//! let recorded = log.append(event)?;
//! log.close()?;
//!
//! let report = verify(folder.path(), &key(), &public_key, Some(&recorded))?;
//! assert!(report.is_sound());
//! # Ok::<(), coffer_audit::AuditError>(())
//! ```

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod event;

mod format;

mod read;

mod verify;
mod write;

mod log;

#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod tests;

pub use error::AuditError;
pub use event::{Event, LOG_FILE, OWN_ACTS, Outcome, ROLLBACK_ACCEPTED};
pub use format::checkpoint::{CheckpointKey, CheckpointSigner, PUBLIC_KEY_BYTES, SIGNATURE_BYTES};
pub use format::record::{AuditKey, Hash, Record, Recorded};
pub use log::AuditLog;
pub use read::copy::LogExtent;
pub use read::reader::Reader;
pub use read::recency::{Recency, recency};
pub use verify::finding::{Finding, Report, RolledBack, Wrong};
pub use verify::verifier::{last, verify};
pub use write::open::Opened;
pub use write::prune::Pruned;
pub use write::writer::Options;
