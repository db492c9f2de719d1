//! Blobs that a restore misses, and whose they are.

use std::collections::HashMap;

use coffer_replica::ReplicaError;
use coffer_seal::BlobId;
use coffer_store::Catalog;
use coffer_store::record::{Content, ObjectName};

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
        let mut after = None;
        while !self.blobs.is_empty() {
            let page = catalog.objects_after(after.as_ref(), VERIFY_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.place.clone());
            for object in &page {
                if let Content::Blobs { blobs, .. } = &object.content {
                    for blob in blobs {
                        if let Some(what) = self.blobs.remove(&blob.id) {
                            tell(Some(object.place.name.clone()), what);
                        }
                    }
                }
            }
        }
        let mut after = None;
        while !self.blobs.is_empty() {
            let page = catalog.parts_after(after, VERIFY_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some((last.upload_id, last.part.number));
            for part in &page {
                if let Some(what) = self.blobs.remove(&part.part.blob.id) {
                    tell(Some(part.name.clone()), what);
                }
            }
        }
        for what in self.blobs.into_values() {
            tell(None, what);
        }
        Ok(())
    }
}
