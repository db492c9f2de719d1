//! How far rotations have come.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::system::DocumentId;

/// How far a rotation has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rotation {
    /// The level's name.
    pub level: String,
    /// The bucket's, if it is one that is rotated and not the level.
    pub bucket: Option<String>,
    /// When it was asked for, in milliseconds since 1970.
    pub begun_ms: i64,
    /// When it ended, in milliseconds since 1970.
    pub ended_ms: Option<i64>,
    /// Why it did not come to its end. It is tried again at the next start.
    pub failure: Option<String>,
    /// The generation of the level's key that is replaced, or of the bucket's.
    pub replaced_generation: u32,
    /// Whether that generation is destroyed.
    pub is_replaced_destroyed: bool,
    /// Copies that the older keys are kept for, until these are up to date.
    pub waits_for: Vec<String>,
    /// How many buckets get a new key.
    pub bucket_count: usize,
    /// How many have theirs, and their old one destroyed.
    pub buckets_done: usize,
    /// How many data keys are to be rewrapped in the buckets reached so far.
    pub key_count: u64,
    /// How many were rewrapped.
    pub keys_done: u64,
}

/// The rotations of this process, by level or bucket.
pub(crate) type Rotations = BTreeMap<DocumentId, Rotation>;
