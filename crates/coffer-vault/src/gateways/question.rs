//! What a gateway that follows asks the one that serves, and what it is answered.

use std::collections::HashMap;

use coffer_seal::BucketId;
use serde::{Deserialize, Serialize};

/// How often something was taken away, by a gateway for as long as it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recall {
    /// Which gateway, and which time that it serves: random.
    pub(super) term: String,
    pub(super) number: u64,
}

/// Asked by a gateway that follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadQuestion {
    /// Who asks: random, and another one with each start.
    pub(super) follower: String,
    /// Up to which recall it answers by nothing that was taken away.
    pub(super) settled: Option<Recall>,
    /// The buckets that it is to read in.
    pub(crate) buckets: Vec<String>,
}

/// How far all has come, when it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadAnswer {
    pub(crate) recall: Recall,
    /// For how long who asked may answer reads: not at all, before it has settled this recall.
    pub(crate) lasts_ms: u64,
    /// Whether no act of administration is under way, which may show before it is committed.
    pub(crate) is_quiet: bool,
    /// Commits of `system.db`, but for later ones that moved the audit log's anchor alone.
    pub(crate) system_commits: u64,
    /// The generation of the keystore, by which it has all keys, levels and buckets.
    pub(crate) keystore_generation: u64,
    /// Commits of catalogs, as far as they are known for sure.
    pub(crate) buckets: HashMap<String, u64>,
    /// What of this stands; none, where nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) standing: Option<StandingAnswer>,
}

/// What stands of an answer: reads may be answered by it that come later, without asking again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StandingAnswer {
    /// For how long, from when it was asked.
    pub(crate) lasts_ms: u64,
    /// In these buckets; and in none.
    pub(crate) buckets: Vec<String>,
}

impl ReadAnswer {
    pub(super) fn commits_of(&self, id: BucketId) -> Option<u64> {
        // Without a heap: each read asks.
        let mut digits = [0; 2 * size_of::<BucketId>()];
        hex::encode_to_slice(id.0, &mut digits).ok()?;
        self.buckets.get(str::from_utf8(&digits).ok()?).copied()
    }
}
