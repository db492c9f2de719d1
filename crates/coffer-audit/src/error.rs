//! What can go wrong with the audit log.

use std::io;
use std::sync::Arc;

use coffer_durable::DurableError;
use thiserror::Error;

/// What can go wrong with the audit log. Damage is not here, it is reported: see
/// [`Finding`](crate::Finding).
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The log was written by a newer version of coffer.
    #[error(
        "{file} of the audit log has format {found}; this version of coffer knows segments of \
         format 1 and heads up to 2"
    )]
    NewerFormat {
        /// The file's name.
        file: String,
        /// Its format.
        found: u32,
    },
    /// An event is larger than a record may be, or its names are not names.
    #[error("that is no event of the audit log: its {what} is too long or not allowed")]
    Event {
        /// Which part.
        what: &'static str,
    },
    /// The log has been closed.
    #[error("the audit log is closed")]
    Closed,
    /// More events wait to be written than may.
    #[error("too many events wait for the audit log; try again")]
    Busy,
    /// The log holds as much as can be numbered.
    #[error("the audit log has as many segments as can be counted")]
    Exhausted,
    /// A checkpoint could not be signed.
    #[error("a checkpoint of the audit log could not be signed: its key can't be used")]
    NotSigned,
    /// A record that was to be read does not open: `verify` says more.
    #[error("record {sequence} of the audit log, in {file}, can't be read: {what}")]
    Unreadable {
        /// The record.
        sequence: u64,
        /// The segment's file.
        file: String,
        /// What was found.
        what: &'static str,
    },
    /// The operating system refused.
    #[error("could not {op} {file} of the audit log: {source}")]
    Io {
        /// What was attempted: a verb.
        op: &'static str,
        /// On which file, in the log's folder.
        file: String,
        /// The system's answer.
        source: Arc<io::Error>,
    },
}

impl AuditError {
    /// For `map_err` on durable operations.
    pub(crate) fn durable(op: &'static str, file: &str) -> impl FnOnce(DurableError) -> Self {
        move |error| Self::io(op, file)(error.into())
    }

    /// For `map_err` on file operations.
    pub(crate) fn io(op: &'static str, file: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            op,
            file: file.to_owned(),
            source: Arc::new(source),
        }
    }
}
