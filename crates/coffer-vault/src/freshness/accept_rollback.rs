//! Going on from older copies, on purpose.
//!
//! What was put aside may come back, too: it must not be taken for the newer one then. So the count
//! of what is gone on from is raised beyond whatever the other can have reached.

use coffer_audit::{Event, Outcome};
use coffer_keys::limits::ROLLBACK_STEP;
use coffer_store::record::Id;
use coffer_store::{Catalog, StoreError};

use super::Freshness;
use crate::access::Act;
use crate::audit::{Audit, SERVER};
use crate::data_folder::Folder;
use crate::error::{Result, Rollback, RollbackOf, VaultError};
use crate::system::System;

impl Freshness {
    /// Accepts what was found: records it, and raises what has a count. Blocks; within a runtime.
    pub(crate) fn accept(
        &self,
        found: &[Rollback],
        folder: &Folder,
        system: &System,
        audit: &Audit,
    ) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        for rollback in found {
            tracing::warn!(%rollback, "ROLLBACK ACCEPTED: an older copy is gone on from");
        }
        for rollback in found {
            let event = Event::new(Act::AcceptRollback.name(), SERVER, Outcome::Done)
                .with("file", rollback.file())
                .with("found", rollback.found)
                .with("held", rollback.held);
            let log = audit.log_or_open()?;
            log.append(event).map_err(VaultError::AuditUnavailable)?;
        }
        self.raise_anchor();
        let held = self.held_system_commits().max(system.commit_count()?);
        system.raise_commit_count(held.saturating_add(ROLLBACK_STEP))?;
        for id in self.to_raise(found, system) {
            if let Err(error) = self.raise_catalog(folder, id) {
                tracing::warn!(bucket = %id, %error, "a catalog could not be gone on from");
            }
        }
        Ok(())
    }

    /// Those that are older, or all, when what holds them is older itself: then nothing tells how
    /// far they had come.
    fn to_raise(&self, found: &[Rollback], system: &System) -> Vec<Id> {
        let holder = |rollback: &Rollback| {
            matches!(
                rollback.of,
                RollbackOf::Keystore { .. } | RollbackOf::Anchor
            )
        };
        if found.iter().any(holder) {
            return system.buckets().iter().map(|row| row.id).collect();
        }
        let catalog = |rollback: &Rollback| match rollback.of {
            RollbackOf::Catalog(id) => Some(id),
            _ => None,
        };
        found.iter().filter_map(catalog).collect()
    }

    fn raise_catalog(&self, folder: &Folder, id: Id) -> Result<()> {
        let key = self.keystore.bucket_key(&id.0)?.catalog_key();
        let raise = async {
            let catalog = Catalog::open(&folder.bucket(id), &key).await?;
            let raised = async {
                let reached = catalog
                    .commit_count()
                    .await?
                    .max(self.commits.highest_of(id));
                let beyond = reached.saturating_add(ROLLBACK_STEP);
                catalog.raise_commit_count(beyond).await?;
                self.commits.seen(id, beyond);
                Ok::<_, StoreError>(())
            };
            let raised = raised.await;
            catalog.close().await;
            raised
        };
        Ok(tokio::runtime::Handle::current().block_on(raise)?)
    }
}
