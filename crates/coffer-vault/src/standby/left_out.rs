//! Levels that a copy leaves out, whose keys would go with the server: no engine begins there.

use std::collections::{BTreeMap, HashSet};

use coffer_keys::Keystore;
use coffer_replica::CopyReader;
use coffer_seal::{BucketId, LevelId};

use super::Standby;
use crate::blocking::blocking;
use crate::erase::ordered_to_erase;
use crate::error::{CopyError, Result, VaultError};
use crate::limits::BUCKETS_NAMED;
use crate::system::System;

impl Standby {
    /// Refuses a copy that is to become the log of an engine and has buckets of levels that its
    /// keystore leaves out. One that is a log goes on as it is. The small files were fetched.
    pub(super) async fn refuse_left_out(&self, reader: &CopyReader) -> Result<()> {
        if !self.link.is_of_engine() || reader.head().is_log() {
            return Ok(());
        }
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        let key = reached.keystore.system_key();
        let path = self.data().join("system.db");
        let rows = blocking(move || {
            let system = System::open_read_only(&path, &key)?;
            let ordered = ordered_to_erase(&system)?;
            let rows = system.buckets().into_iter();
            let rows = rows.map(|row| (row.id, row.level_id, row.name.as_str().to_owned()));
            Ok((rows.collect::<Vec<_>>(), ordered))
        });
        let (rows, ordered) = rows.await?;
        match told(&reached.keystore, rows, &ordered) {
            Some(levels) => Err(CopyError::LevelsLeftOut { levels }.into()),
            None => Ok(()),
        }
    }
}

/// The levels that a keystore lacks and that have buckets, with these. The names of such levels
/// are in the keystore alone.
fn told(
    keystore: &Keystore,
    rows: Vec<(BucketId, LevelId, String)>,
    ordered: &HashSet<BucketId>,
) -> Option<String> {
    let mut levels: BTreeMap<LevelId, Vec<String>> = BTreeMap::new();
    for (id, level, name) in rows {
        if keystore.level(level).is_none() && !ordered.contains(&id) {
            levels.entry(level).or_default().push(name);
        }
    }
    let told = levels.into_iter().map(|(level, mut names)| {
        names.sort_unstable();
        let more = match names.len().saturating_sub(BUCKETS_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.truncate(BUCKETS_NAMED);
        format!("{level}, with the buckets {}{more}", names.join(", "))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| told.join("; "))
}
