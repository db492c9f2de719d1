//! That another serves in this server's place, as it is noted beside the file `copies`: where that
//! one is lost, moved away or damaged, it is known all the same.

use coffer_store::StoreError;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::{DocumentId, from_json, run, to_json};
use crate::error::Result;
use crate::system::System;

/// The kind of document that notes it, among those of buckets. It stands under no bucket's id.
pub(super) const FENCED_OFF: &str = "fenced-off";

/// By which copy a server is fenced off, and what showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FenceNote {
    pub(crate) copy: String,
    pub(crate) why: String,
}

impl System {
    /// What is noted, if anything is.
    pub(crate) fn fence_note(&self) -> Result<Option<FenceNote>> {
        let sql = "SELECT document FROM bucket_configuration WHERE bucket_id = ? AND kind = ?";
        let params = params![DocumentId::ONLY.0, FENCED_OFF];
        let found: Option<String> = self.held().read(|connection| {
            let found = connection.query_row(sql, params, |row| row.get(0));
            Ok(found.optional().map_err(StoreError::from)?)
        })?;
        found.map(|json| from_json(&json)).transpose()
    }

    /// Notes it, durably.
    pub(crate) fn note_fence(&self, note: &FenceNote) -> Result<()> {
        if self.fence_note()?.as_ref() == Some(note) {
            return Ok(());
        }
        let sql = "INSERT OR REPLACE INTO bucket_configuration(bucket_id, kind, document)
                   VALUES(?, ?, ?)";
        let params = params![DocumentId::ONLY.0, FENCED_OFF, to_json(note)?];
        self.held()
            .change(|transaction| run(transaction, sql, params).map(drop))
    }

    /// Forgets it, durably.
    pub(crate) fn forget_fence(&self) -> Result<()> {
        if self.fence_note()?.is_none() {
            return Ok(());
        }
        let sql = "DELETE FROM bucket_configuration WHERE bucket_id = ? AND kind = ?";
        let params = params![DocumentId::ONLY.0, FENCED_OFF];
        self.held()
            .change(|transaction| run(transaction, sql, params).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use coffer_seal::SecretKey;

    use super::*;

    #[test]
    fn that_another_serves_is_known_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("system.db"), SecretKey::generate());
        let note = FenceNote {
            copy: "far".to_owned(),
            why: "promoted".to_owned(),
        };
        let system = System::open(&path, &key).unwrap();
        assert_eq!(system.fence_note().unwrap(), None);
        system.note_fence(&note).unwrap();
        drop(system);
        let system = System::open(&path, &key).unwrap();
        assert!(system.buckets().is_empty());
        let commits = system.commit_count().unwrap();
        system.note_fence(&note).unwrap();
        assert_eq!(system.commit_count().unwrap(), commits, "it is known");
        assert_eq!(system.fence_note().unwrap(), Some(note));
        system.forget_fence().unwrap();
        assert_eq!(system.fence_note().unwrap(), None);
    }
}
