//! Quotas: how much a bucket, all buckets of a level, or all buckets that a subject has made may
//! hold. The counting is here; who sets them is in `admin`.

use coffer_seal::{BucketId, LevelId, SubjectId};
use serde::{Deserialize, Serialize};

mod ledger;

pub(crate) use self::ledger::QuotaLedger;

/// What a quota is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuotaOf {
    /// A bucket.
    Bucket(BucketId),
    /// All buckets of a level.
    Level(LevelId),
    /// All buckets that a subject has made as a data user.
    Subject(SubjectId),
}

impl QuotaOf {
    /// The word for it, also in `system.db`.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Bucket(_) => "bucket",
            Self::Level(_) => "level",
            Self::Subject(_) => "subject",
        }
    }

    /// The id, in bytes.
    pub(crate) fn id(self) -> [u8; 16] {
        match self {
            Self::Bucket(BucketId(id)) => id,
            Self::Level(LevelId(id)) => id,
            Self::Subject(SubjectId(id)) => id,
        }
    }

    /// The id as people and metrics are told it: 32 hexadecimal digits.
    pub fn id_text(self) -> String {
        match self {
            Self::Bucket(id) => id.to_string(),
            Self::Level(id) => id.to_string(),
            Self::Subject(id) => id.to_string(),
        }
    }

    pub(crate) fn new(kind: &str, id: [u8; 16]) -> Option<Self> {
        match kind {
            "bucket" => Some(Self::Bucket(BucketId(id))),
            "level" => Some(Self::Level(LevelId(id))),
            "subject" => Some(Self::Subject(SubjectId(id))),
            _ => None,
        }
    }
}

/// How much there may be; none: as much as there is room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Bytes of objects, and of parts of uploads under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Objects; of versions, each is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Multipart uploads under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uploads: Option<u64>,
    /// Buckets, of a level or a subject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u64>,
}

/// How much there is, with what is being written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Bytes.
    pub bytes: u64,
    /// Objects.
    pub objects: u64,
    /// Uploads under way.
    pub uploads: u64,
    /// Buckets.
    pub buckets: u64,
}
