//! What is told of pruning the audit log.

use coffer_audit::Pruned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What was pruned of the audit log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditPruned {
    /// How many records: 0 when no whole segment was old enough.
    pub count: u64,
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub first_sequence: Option<u64>,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_sequence: Option<u64>,
    /// Its hash, on which what is left follows: 64 hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub last_hash: Option<String>,
}

impl From<Option<Pruned>> for AuditPruned {
    fn from(pruned: Option<Pruned>) -> Self {
        pruned.map_or_else(Self::default, |pruned| Self {
            count: pruned.through.sequence + 1 - pruned.first,
            first_sequence: Some(pruned.first),
            last_sequence: Some(pruned.through.sequence),
            last_hash: Some(pruned.through.hash.to_string()),
        })
    }
}
