//! What a server notes of itself under no bucket: that another serves in its place, as it stands in
//! the file `copies` too, which may be lost, moved away or damaged; and that it went on from a
//! copy.

use std::collections::{BTreeSet, HashSet};

use coffer_seal::BucketId;
use coffer_store::StoreError;
use rusqlite::{OptionalExtension, params};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{DocumentId, from_json, run, to_json};
use crate::error::Result;
use crate::system::System;

// Kinds of documents among those of buckets. They stand under no bucket's id.
const FENCED_OFF: &str = "fenced-off";
const WENT_ON: &str = "went-on";
const NOT_RESTORED: &str = "not-restored";

/// By which copy a server is fenced off, and what showed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FenceNote {
    pub(crate) copy: String,
    pub(crate) why: String,
}

/// That a server began with a backup, a restore, or a standby that was promoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WentOn {
    /// When it first served that, in milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// The URL of the copy that the standby followed, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) followed: Option<String>,
}

/// Which buckets a restore of others left out, as long as they have no catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotRestored {
    buckets: BTreeSet<String>,
}

impl System {
    /// What is noted of a fence, if anything is.
    pub(crate) fn fence_note(&self) -> Result<Option<FenceNote>> {
        self.note(FENCED_OFF)
    }

    /// Notes it, durably.
    pub(crate) fn note_fence(&self, note: &FenceNote) -> Result<()> {
        if self.fence_note()?.as_ref() == Some(note) {
            return Ok(());
        }
        self.keep_note(FENCED_OFF, note)
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

    /// When it last went on from a copy, if it did.
    pub(crate) fn went_on(&self) -> Result<Option<WentOn>> {
        self.note(WENT_ON)
    }

    /// Notes it, durably.
    pub(crate) fn note_went_on(&self, at_ms: i64, followed: Option<String>) -> Result<()> {
        self.keep_note(WENT_ON, &WentOn { at_ms, followed })
    }

    /// Buckets that a restore of others left out.
    pub(crate) fn not_restored(&self) -> Result<HashSet<BucketId>> {
        let noted: NotRestored = self.note(NOT_RESTORED)?.unwrap_or_default();
        let ids = noted.buckets.iter();
        Ok(ids.filter_map(|id| BucketId::from_hex(id)).collect())
    }

    /// Notes durably that these were left out as well; those that have a catalog by now are
    /// buckets as any.
    pub(crate) fn note_not_restored(
        &self,
        left_out: HashSet<BucketId>,
        has_catalog: impl Fn(BucketId) -> bool,
    ) -> Result<()> {
        let noted = self.not_restored()?;
        let all = noted.union(&left_out).copied();
        let all: HashSet<_> = all.filter(|id| !has_catalog(*id)).collect();
        if all == noted {
            return Ok(());
        }
        let buckets = all.iter().map(BucketId::to_string).collect();
        self.keep_note(NOT_RESTORED, &NotRestored { buckets })
    }

    fn note<T: DeserializeOwned>(&self, kind: &str) -> Result<Option<T>> {
        let sql = "SELECT document FROM bucket_configuration WHERE bucket_id = ? AND kind = ?";
        let params = params![DocumentId::ONLY.0, kind];
        let found: Option<String> = self.held().read(|connection| {
            let found = connection.query_row(sql, params, |row| row.get(0));
            Ok(found.optional().map_err(StoreError::from)?)
        })?;
        found.map(|json| from_json(&json)).transpose()
    }

    fn keep_note<T: Serialize>(&self, kind: &str, note: &T) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO bucket_configuration(bucket_id, kind, document)
                   VALUES(?, ?, ?)";
        let params = params![DocumentId::ONLY.0, kind, to_json(note)?];
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

    #[test]
    fn that_a_server_went_on_from_a_copy_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("system.db"), SecretKey::generate());
        let system = System::open(&path, &key).unwrap();
        assert_eq!(system.went_on().unwrap(), None);
        let followed = Some("file:///copy".to_owned());
        system.note_went_on(5, None).unwrap();
        system.note_went_on(7, followed.clone()).unwrap();
        drop(system);
        let system = System::open(&path, &key).unwrap();
        let at_ms = 7;
        assert_eq!(system.went_on().unwrap(), Some(WentOn { at_ms, followed }));
    }

    #[test]
    fn what_a_restore_left_out_is_known_until_it_has_a_catalog() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("system.db"), SecretKey::generate());
        let system = System::open(&path, &key).unwrap();
        let (one, other) = (BucketId([1; 16]), BucketId([2; 16]));
        let commits = system.commit_count().unwrap();
        system.note_not_restored(HashSet::new(), |_| false).unwrap();
        assert_eq!(system.commit_count().unwrap(), commits, "nothing is new");
        system
            .note_not_restored(HashSet::from([one, other]), |_| false)
            .unwrap();
        system
            .note_not_restored(HashSet::new(), |id| id == one)
            .unwrap();
        drop(system);
        let system = System::open(&path, &key).unwrap();
        system.note_not_restored(HashSet::new(), |_| false).unwrap();
        assert_eq!(system.not_restored().unwrap(), HashSet::from([other]));
    }
}
