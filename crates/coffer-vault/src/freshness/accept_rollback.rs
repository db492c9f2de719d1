//! Going on from older copies, on purpose.
//!
//! What was put aside may come back, too: it must not be taken for the newer one then. So the count
//! of what is gone on from is raised beyond whatever the other can have reached.

use std::collections::HashSet;

use coffer_audit::{Event, Outcome};
use coffer_keys::limits::ROLLBACK_STEP;
use coffer_seal::BucketId;
use coffer_store::{Catalog, StoreError};

use super::Freshness;
use crate::access::Act;
use crate::audit::{Audit, SERVER};
use crate::data_folder::Folder;
use crate::error::{Result, Rollback, RollbackOf, VaultError};
use crate::system::{Doubts, System};

impl Freshness {
    /// Accepts what was found: records it, and raises what has a count. `ordered` are buckets whose
    /// erase is ordered. Blocks; within a runtime.
    pub(crate) fn accept(
        &self,
        found: &[Rollback],
        folder: &Folder,
        system: &System,
        audit: &Audit,
        ordered: HashSet<BucketId>,
    ) -> Result<()> {
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
        // Before anything else is changed: a start after a stop in between may find nothing that
        // is older.
        self.doubt(found, folder, system, audit, ordered)?;
        self.raise_anchor();
        for id in self.to_raise(found, system) {
            if !self.keystore.holds_bucket(id) {
                let name = system.bucket_of_id(id).map(|row| row.name.to_string());
                tracing::warn!(
                    bucket = %id, name,
                    "the keystore has no key for a bucket, which is not served: its key was \
                     destroyed, or the keystore is older than the bucket or leaves its level out"
                );
                continue;
            }
            if let Err(error) = self.raise_catalog(folder, id) {
                tracing::warn!(bucket = %id, %error, "a catalog could not be gone on from");
            }
        }
        // Last: until then a start finds it older.
        Ok(self.keystore.go_on_from_older()?)
    }

    /// Notes what of `system.db` is in doubt, and has it be newer than what was put aside.
    fn doubt(
        &self,
        found: &[Rollback],
        folder: &Folder,
        system: &System,
        audit: &Audit,
        ordered: HashSet<BucketId>,
    ) -> Result<()> {
        let is_older = is_system_older(found);
        // Releases of data keys that only the newer one knew of are not counted any more.
        let levels = self.keystore.levels().into_iter();
        let levels = levels.filter(|level| is_older && level.options.sealed_transfer);
        let is = |of: &RollbackOf| found.iter().any(|rollback| rollback.of == *of);
        let subjects = is(&RollbackOf::Backup) && is(&RollbackOf::System);
        if subjects {
            record_all_disabled(system, audit)?;
        }
        // What a copy left out is not there; what else is missing may have been changed since.
        let ordered = if is(&RollbackOf::Backup) {
            ordered
        } else {
            HashSet::new()
        };
        let count = system.commit_count()?;
        let held = self.held_system_commits().max(count);
        let keystore = &self.keystore;
        system.doubt(Doubts {
            // One may have been called off since, and objects locked.
            orders: is_older,
            ordered,
            has_catalog: &|id| folder.has_catalog(id),
            lacks_key: &|row| !keystore.holds_bucket(row.id),
            // A bucket's key is there before its row is.
            is_keystore_later: keystore.held().system_commits >= count,
            key_releases: levels.map(|level| level.id).collect(),
            subjects,
            commit_count: held.saturating_add(ROLLBACK_STEP),
        })
    }

    /// Those that are older, or all, when what holds them is older itself: then nothing tells how
    /// far they had come.
    fn to_raise(&self, found: &[Rollback], system: &System) -> Vec<BucketId> {
        let holder = |rollback: &Rollback| {
            matches!(
                rollback.of,
                RollbackOf::Keystore { .. } | RollbackOf::Anchor | RollbackOf::Backup
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

    fn raise_catalog(&self, folder: &Folder, id: BucketId) -> Result<()> {
        let key = self.keystore.bucket_key(id)?.catalog_key();
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

/// Whether `system.db` may be older: a keystore or an anchor that was put back may have come with
/// all of the folder.
fn is_system_older(found: &[Rollback]) -> bool {
    let is_of_one = |of: &RollbackOf| matches!(of, RollbackOf::Catalog(_) | RollbackOf::Audit);
    !found.iter().all(|one| is_of_one(&one.of))
}

/// Acts that a restored `system.db` lacks may have disabled subjects or access keys, or deleted
/// them: which, it can't tell. So no subject and no access key counts until an administrator
/// enables both again.
fn record_all_disabled(system: &System, audit: &Audit) -> Result<()> {
    let mut count = 0;
    for entry in system.all_subjects() {
        let subject = &entry.subject;
        let event = Event::new(Act::DisableSubject.name(), SERVER, Outcome::Done)
            .with("subject", subject.name())
            .with("subject_id", subject.id())
            .with("access_keys", entry.access_keys().count())
            .with("reason", "system.db was restored, and lacks later acts");
        let log = audit.log_or_open()?;
        log.append(event).map_err(VaultError::AuditUnavailable)?;
        count += entry.access_keys().count();
    }
    tracing::warn!(
        count,
        "ALL ACCESS KEYS ARE DISABLED: the keystore is newer than the restored system.db, so later \
         changes of who has access are lost. Enable those that are to count, subjects and their \
         keys: coffer subject enable NAME, coffer subject key enable KEY-ID"
    );
    Ok(())
}
