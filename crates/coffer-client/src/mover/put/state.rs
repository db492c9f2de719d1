//! The journal of an upload in parts: what was begun of which file, and which parts were stored.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::mover::error::MoverError;
use crate::mover::journal::Journal;
use crate::mover::source::Seen;
use crate::s3::{KeptTime, ObjectName, Since};

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) upload_id: String,
    /// Whether the server compares checksums.
    pub(super) compares: bool,
    pub(super) part_bytes: u64,
    pub(super) source: Seen,
    /// What the object is to have: other headers begin anew.
    pub(super) headers: Vec<(String, String)>,
    /// When, in seconds by the server's clock; by this machine's, or long ago, in journals of
    /// earlier versions.
    #[serde(default)]
    pub(super) seconds: u64,
    /// Uploads of before that may still be at the server.
    #[serde(default)]
    pub(super) to_end: Vec<String>,
}

/// What a journal says of uploads that may still be at the server, and that nothing goes on with;
/// where that is all that it says, no other is under way.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToEnd {
    #[serde(default)]
    pub(super) to_end: Vec<String>,
}

impl Begun {
    /// When it was begun.
    pub(super) fn began(&self) -> Since {
        Since::Server(self.seconds)
    }
}

/// A file that was begun to be stored as one piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BegunWhole {
    pub(super) source: Seen,
    /// What the object is to have.
    pub(super) headers: Vec<(String, String)>,
    /// When.
    pub(super) began: KeptTime,
}

/// A part that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPart {
    pub(super) number: u32,
    pub(super) etag: String,
    pub(super) crc: u64,
}

/// Opens the journal of the upload of a file to a name of a service.
pub(super) fn journal(
    state: &Path,
    endpoint: &str,
    from: &Path,
    name: &ObjectName,
) -> Result<Journal, MoverError> {
    open(state, &file_name(endpoint, from, name))
}

/// The same of a file that goes as one piece.
pub(super) fn journal_of_whole(
    state: &Path,
    endpoint: &str,
    from: &Path,
    name: &ObjectName,
) -> Result<Journal, MoverError> {
    let of_parts = file_name(endpoint, from, name);
    open(state, &of_parts.with_extension("whole"))
}

fn open(state: &Path, file_name: &Path) -> Result<Journal, MoverError> {
    let folder = state.join("uploads");
    let made = std::fs::create_dir_all(&folder);
    made.map_err(MoverError::local("making the folder", &folder))?;
    Journal::open(&folder.join(file_name))
}

fn file_name(endpoint: &str, from: &Path, name: &ObjectName) -> PathBuf {
    let from = std::path::absolute(from).unwrap_or_else(|_| from.to_owned());
    let mut digest = digest::Context::new(&digest::SHA256);
    let parts = [endpoint, &name.bucket, &name.key];
    for part in parts.map(str::as_bytes) {
        digest.update(part);
        digest.update(&[0]);
    }
    digest.update(from.as_os_str().as_encoded_bytes());
    let hash = digest.finish();
    PathBuf::from(hex::encode(&hash.as_ref()[..16]) + ".jsonl")
}
