//! What is told while files are moved.

use std::time::Duration;

use serde::Serialize;

/// Something that happened.
pub enum Event<'a> {
    /// So much more is to be moved.
    Found {
        /// Files or objects.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// So many bytes have gone, or, as a negative number, have to go again.
    Bytes(i64),
    /// So many bytes need not go: they were there of before.
    Kept(u64),
    /// Something is tried again.
    Retrying {
        /// Why.
        problem: &'a str,
        /// After how long.
        wait: Duration,
    },
    /// Something is worth knowing.
    Note(&'a str),
    /// A file or object is where it should be.
    Done(&'a Moved),
    /// One is not.
    Failed(&'a Failure),
}

/// Is told what happens.
pub trait Watch: Send + Sync {
    /// Takes an event; called from any thread.
    fn event(&self, event: &Event<'_>);
}

/// A file or object that is where it should be.
#[derive(Debug, Clone, Serialize)]
pub struct Moved {
    /// Where it came from.
    pub from: String,
    /// Where it is now.
    pub to: String,
    /// How long it is.
    pub bytes: u64,
    /// How much of that was there of before.
    pub kept_bytes: u64,
    /// The checksum of all of it; none of what a command before this one has moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Whether both sides have the same checksum.
    pub verified: bool,
    /// What was fetched was compared with the server's `checksum`, with its `part_checksums`, by
    /// the `seals` of its chunks, or only by its `length`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<&'static str>,
    /// `unverified` where it came sealed, and the server has not opened it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<&'static str>,
    /// How its bytes went: `sealed`, `tls` or `http`.
    pub transfer: &'static str,
    /// Its version, in buckets that have versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
}

/// A file or object that could not be moved, of many.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// Which.
    pub what: String,
    /// For programs: a word that stays the same.
    pub code: String,
    /// Why.
    pub message: String,
}
