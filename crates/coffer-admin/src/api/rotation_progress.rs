//! Rotations, as they are told.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use coffer_durable::rfc3339;

/// How far a rotation has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rotation {
    /// Name of the level.
    pub level: String,
    /// Name of the bucket, if only that is rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub bucket: Option<String>,
    /// When it was asked for: RFC 3339, UTC.
    #[schema(format = DateTime)]
    pub begun_at: String,
    /// When it ended: RFC 3339, UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub ended_at: Option<String>,
    /// Why it did not come to its end; the next start goes on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub failure: Option<String>,
    /// The generation that is replaced: of the level's key, or of the bucket's if only that is
    /// rotated.
    pub replaced_generation: u32,
    /// Whether that generation is destroyed.
    pub replaced_destroyed: bool,
    /// Copies with the keystore in them that it waits for: older keys are destroyed when these
    /// have the catalogs without them, and it ends when they have the keystore without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// How many buckets get a new key.
    pub bucket_count: u64,
    /// How many have theirs, and their old one is destroyed.
    pub buckets_done: u64,
    /// How many data keys are to be rewrapped in the buckets reached so far.
    pub key_count: u64,
    /// How many are.
    pub keys_done: u64,
    /// It changed the root key: what that means for copies that are kept apart, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub keep_apart: Option<String>,
}

impl From<coffer_vault::Rotation> for Rotation {
    fn from(rotation: coffer_vault::Rotation) -> Self {
        Self {
            level: rotation.level,
            bucket: rotation.bucket,
            begun_at: rfc3339(rotation.begun_ms),
            ended_at: rotation.ended_ms.map(rfc3339),
            failure: rotation.failure,
            replaced_generation: rotation.replaced_generation,
            replaced_destroyed: rotation.is_replaced_destroyed,
            waits_for: rotation.waits_for,
            bucket_count: rotation.bucket_count as u64,
            buckets_done: rotation.buckets_done as u64,
            key_count: rotation.key_count,
            keys_done: rotation.keys_done,
            keep_apart: None,
        }
    }
}
