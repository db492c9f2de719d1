//! How much each level holds, for metrics: from what was seen of its buckets last, so that asking
//! reads no catalog.

use std::collections::BTreeMap;

use crate::vault::Vault;

/// What the buckets of a level hold together, as of half a minute ago at most. After a start,
/// buckets count from when they were opened first, which takes some seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelUsage {
    /// The level's id: 32 hexadecimal digits.
    pub level: String,
    /// How many buckets it has.
    pub buckets: u64,
    /// Objects in them.
    pub objects: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Bytes of the parts of uploads under way.
    pub upload_bytes: u64,
}

impl Vault {
    /// What each level holds, those without buckets among them, by id.
    pub fn level_usage(&self) -> Vec<LevelUsage> {
        let inner = &self.inner;
        let levels = inner.keystore.levels().into_iter();
        let mut usage: BTreeMap<_, _> = levels
            .map(|level| {
                let none = LevelUsage {
                    level: level.id.to_string(),
                    ..LevelUsage::default()
                };
                (level.id.0, none)
            })
            .collect();
        for row in inner.system.buckets() {
            let Some(level) = usage.get_mut(&row.level_id.0) else {
                continue;
            };
            level.buckets += 1;
            if let Some((totals, uploads)) = inner.open_buckets.last_seen(row.id) {
                level.objects += totals.objects;
                level.bytes += totals.bytes;
                level.upload_bytes += uploads.bytes;
            }
        }
        usage.into_values().collect()
    }
}
