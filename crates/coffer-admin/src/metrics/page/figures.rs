//! What the vault tells, all at once.

use coffer_vault::{
    CacheStatus, CopyStatus, Counters, FenceStatus, LevelUsage, QuotaInfo, StandbyStatus,
};

/// What the vault tells.
#[derive(Debug, Default)]
pub(crate) struct VaultFigures {
    /// What it has counted.
    pub(crate) counters: Counters,
    /// What each level holds.
    pub(crate) levels: Vec<LevelUsage>,
    /// What buckets, levels and subjects may hold, and do.
    pub(crate) quotas: Vec<QuotaInfo>,
    /// How sealed copies stand.
    pub(crate) copies: Vec<CopyStatus>,
    /// Of a standby.
    pub(crate) standby: Option<StandbyStatus>,
    /// Of a server that is fenced by a copy.
    pub(crate) fence: Option<FenceStatus>,
    /// Of a gateway of an engine.
    pub(crate) cache: Option<CacheStatus>,
}
