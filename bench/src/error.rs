//! What can stop a benchmark. A missed target is not among them: that is a result.

use std::path::PathBuf;

use coffer_measure::error::MeasureError;

/// Why a benchmark could not run, or why its figures must not be believed.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file, a folder or a process did not do what was asked.
    #[error("{action}: {source}")]
    Io {
        /// What was being done, for the reader of the message.
        action: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// What bench and lab measure with failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// TLS failed on a connection.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A record did not open, or was of a kind that has no place here.
    #[error("TLS record: {what}")]
    Record {
        /// What was wrong with it.
        what: &'static str,
    },
    /// The peer closed the connection before the answer was complete.
    #[error("the server closed the connection in the middle of an answer")]
    Closed,
    /// An answer that is not HTTP/1.1 as this client understands it.
    #[error("HTTP answer: {what}")]
    Http {
        /// What could not be understood.
        what: String,
    },
    /// The server answered with another status than a benchmark can count.
    #[error("status {status} for {request}: {body}")]
    Status {
        /// The status of the answer.
        status: u16,
        /// The first line of the request.
        request: String,
        /// The beginning of the answer's body.
        body: String,
    },
    /// The bytes that came back are not the bytes that were stored.
    #[error("wrong contents in {request} near offset {offset}")]
    WrongContents {
        /// The first line of the request.
        request: String,
        /// Bytes from the start of the body.
        offset: u64,
    },
    /// A body of another length than was stored.
    #[error("{request}: {found} bytes instead of {expected}")]
    WrongLength {
        /// The first line of the request.
        request: String,
        /// Bytes that should have come.
        expected: u64,
        /// Bytes that the server announced.
        found: u64,
    },
    /// A server did not start.
    #[error("{server} did not start: {why}")]
    NotStarted {
        /// Which one.
        server: &'static str,
        /// Its last words, or what was waited for.
        why: String,
    },
    /// The store's database function failed.
    #[error("opening a database: {0}")]
    Store(#[from] coffer_store::StoreError),
    /// The access key of a server could not be read.
    #[error(transparent)]
    Client(#[from] coffer_client::ClientError),
    /// A request that prepares or looks was refused, or its answer is none.
    #[error(transparent)]
    S3(#[from] coffer_client::s3::S3Error),
    /// A sealed transfer failed.
    #[error(transparent)]
    Sealed(#[from] coffer_client::sealed::SealedError),
    /// A command of coffer or of another program failed.
    #[error("{command}: {problem}")]
    Command {
        /// What was started.
        command: String,
        /// How it ended, and what it said.
        problem: String,
    },
    /// A commit failed.
    #[error("committing: {source}")]
    Database {
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A program that is needed isn't there.
    #[error("{program} was not found: {hint}")]
    Missing {
        /// The program.
        program: PathBuf,
        /// How to get it.
        hint: &'static str,
    },
}

/// The result of anything in this crate.
pub type Result<T> = std::result::Result<T, BenchError>;

/// Adds to an I/O error what was being done.
pub trait Doing<T> {
    /// `action` reads as in "writing FILE".
    fn doing(self, action: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<std::io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| BenchError::Io {
            action: action(),
            source: source.into(),
        })
    }
}
