//! What a rotation is to do.

use coffer_keys::BucketEntry;
use coffer_seal::{BucketId, LevelId};
use serde::{Deserialize, Serialize};

use crate::audit::Facts;
use crate::system::DocumentId;

/// What a rotation is to do; kept until it is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(super) level_id: LevelId,
    pub(super) level: String,
    /// The generation of the level's key that is to be replaced, if it is.
    pub(super) level_generation: Option<u32>,
    pub(super) bucket: Option<String>,
    /// Buckets, and the generation of each one's key that is to be replaced.
    pub(super) buckets: Vec<(BucketId, u32)>,
    pub(super) begun_ms: i64,
}

impl Plan {
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::from([("level", self.level.clone())]);
        if let Some(bucket) = &self.bucket {
            facts.insert("bucket", bucket.clone());
        }
        facts
    }

    /// The generation that is replaced: of the level's key, or of the bucket's.
    pub(super) fn replaced_generation(&self) -> u32 {
        let of_bucket = || self.buckets.first().map(|(_, generation)| *generation);
        self.level_generation.or_else(of_bucket).unwrap_or(0)
    }

    pub(super) fn id(&self) -> DocumentId {
        match (&self.bucket, self.buckets.first()) {
            (Some(_), Some((id, _))) => (*id).into(),
            _ => self.level_id.into(),
        }
    }
}

/// A bucket as a plan names it.
pub(super) fn to_replace(entry: &BucketEntry) -> (BucketId, u32) {
    (entry.id, entry.generation)
}
