//! What can go wrong with files.

use std::io;

use thiserror::Error;

/// What can go wrong with a file that must be durable.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DurableError {
    /// The operating system refused.
    #[error("could not {op} it: {source}")]
    Io {
        /// What was attempted: a verb.
        op: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// A sync succeeded, and then something else was read than was written.
    #[error("the disk does not hold what was written to it")]
    NotReadBack,
}

impl DurableError {
    /// Whether another file had the name.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }

    /// For `map_err` on file operations.
    pub(crate) fn io(op: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { op, source }
    }
}

/// For callers that say themselves what they were about.
impl From<DurableError> for io::Error {
    fn from(error: DurableError) -> Self {
        match error {
            DurableError::Io { source, .. } => source,
            DurableError::NotReadBack => Self::other(error),
        }
    }
}
