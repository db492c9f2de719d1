//! Blobs that a restore misses, and whose they are.

use std::collections::HashMap;

use coffer_replica::ReplicaError;
use coffer_seal::BlobId;
use coffer_store::record::ObjectName;
use coffer_store::{Catalog, ContentWalk};

use super::report::RestoreEvent;
use crate::error::{BackupError, CopyError, Result, VaultError};
use crate::limits::{RESTORE_NAMED_MAX, VERIFY_PAGE};

/// What of one bucket is missing.
#[derive(Default)]
pub(crate) struct Missing {
    pub(crate) count: u64,
    /// What is wrong with each, as far as they are looked for.
    blobs: HashMap<BlobId, String>,
}

/// Whether it is about one blob of the copy, which does not keep others from being restored.
pub(super) fn is_of_blob(error: &VaultError) -> bool {
    let VaultError::Backup(BackupError::Copy(CopyError::Replica(error))) = error else {
        return false;
    };
    matches!(
        error,
        ReplicaError::Missing { .. } | ReplicaError::Altered { .. }
    )
}

impl Missing {
    pub(super) fn add(&mut self, id: BlobId, what: String) {
        self.count += 1;
        if self.blobs.len() < RESTORE_NAMED_MAX {
            self.blobs.insert(id, what);
        }
    }

    /// Tells of each, with the object's name where that is found. Uploads are told by the names of
    /// what they would have made.
    pub(super) async fn tell(
        mut self,
        bucket: String,
        catalog: &Catalog,
        told: &mut impl FnMut(RestoreEvent),
    ) -> Result<()> {
        let mut tell = |name: Option<ObjectName>, what: String| {
            let bucket = bucket.clone();
            told(RestoreEvent::Missing { bucket, name, what });
        };
        let mut walk = ContentWalk::default();
        while !self.blobs.is_empty()
            && let Some(page) = walk.next(catalog, VERIFY_PAGE).await?
        {
            for (name, content) in &page {
                for blob in content.blobs() {
                    if let Some(what) = self.blobs.remove(&blob.id) {
                        tell(Some(name.clone()), what);
                    }
                }
            }
        }
        for what in self.blobs.into_values() {
            tell(None, what);
        }
        Ok(())
    }
}
