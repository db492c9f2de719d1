//! What can stop a measurement.

use std::path::PathBuf;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A file or a socket did not do what was asked.
    #[error("{action}: {source}")]
    Io {
        /// What was being done, for the reader of the message.
        action: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// TLS could not be set up.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A certificate could not be made.
    #[error("making a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A file of `/proc` that doesn't read as documented in proc(5).
    #[error("cannot make sense of {path}")]
    Proc {
        /// The file.
        path: PathBuf,
    },
    /// A file that holds no certificate, or no key.
    #[error("{path}: {what}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is missing in it.
        what: &'static str,
    },
}

/// The result of anything in this crate.
pub type Result<T> = std::result::Result<T, MeasureError>;

/// Adds to an I/O error what was being done.
pub(crate) fn doing<T>(done: std::io::Result<T>, action: impl FnOnce() -> String) -> Result<T> {
    done.map_err(|source| MeasureError::Io {
        action: action(),
        source,
    })
}
