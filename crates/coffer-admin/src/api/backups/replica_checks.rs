//! What a check of a sealed copy tells, a line each.

use coffer_durable::rfc3339;
use coffer_vault::CopyCheckEvent;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One line of the report of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum ReplicaReport {
    /// So much was read.
    Progress {
        /// Blobs opened so far.
        blob_count: u64,
        /// Bytes in them.
        blob_bytes: u64,
    },
    /// Something is wrong with the copy.
    Damage {
        /// What.
        what: String,
    },
    /// Something is to be known of the copy, and is no damage.
    Note {
        /// What.
        what: String,
    },
    /// All was read.
    Done {
        /// The head that was checked, `NUMBER:SHA256`.
        head: String,
        /// All that was acknowledged before is in it: RFC 3339.
        #[schema(format = DateTime)]
        as_of: String,
        /// How many buckets it has.
        bucket_count: u64,
        /// How many pages of catalogs.
        page_count: u64,
        /// How many blobs.
        blob_count: u64,
        /// How many bytes are in these.
        blob_bytes: u64,
        /// How many things are wrong.
        damage_count: u64,
        /// How many blobs can't be opened before the copy has taken up a rotation of keys.
        #[serde(default)]
        behind_count: u64,
    },
    /// The copy could not be read.
    Failed {
        /// For people: what happened.
        message: String,
    },
}

impl From<CopyCheckEvent> for ReplicaReport {
    fn from(event: CopyCheckEvent) -> Self {
        match event {
            CopyCheckEvent::Progress {
                blob_count,
                blob_bytes,
            } => Self::Progress {
                blob_count,
                blob_bytes,
            },
            CopyCheckEvent::Damage { what } => Self::Damage { what },
            CopyCheckEvent::Note { what } => Self::Note { what },
            CopyCheckEvent::Done {
                head,
                as_of_ms,
                bucket_count,
                page_count,
                blob_count,
                blob_bytes,
                damage_count,
                behind_count,
            } => Self::Done {
                head: head.to_string(),
                as_of: rfc3339(as_of_ms),
                bucket_count,
                page_count,
                blob_count,
                blob_bytes,
                damage_count,
                behind_count,
            },
            CopyCheckEvent::Failed { problem } => Self::Failed { message: problem },
        }
    }
}
