//! Deleting objects, and versions of them.

use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_policy::Action;
use coffer_store::Deletion;
use coffer_store::lock::LockTest;
use coffer_store::record::{ObjectName, OnlyIf, Precondition};
use coffer_store::version::{VersionId, Which};

use crate::access::{Act, AskedEach, BucketName, OwnValues, Right, Subject};
use crate::acts::{ChangeGrant, Changed};
use crate::audit::{Facts, On};
use crate::error::{Result, VaultError};
use crate::limits::DELETE_MANY_MAX;
use crate::locks::{asked_to_bypass, of_version, overridden};
use crate::open_buckets::UsedBucket;
use crate::vault::Vault;

/// An object to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteObject {
    /// Its name.
    pub name: ObjectName,
    /// Its newest version, which a delete marker hides where the bucket keeps versions; or this
    /// one, for good.
    pub which: Which,
    /// What must be true of the newest version.
    pub precondition: Precondition,
    /// What must be true of it if it is an object.
    pub only_if: OnlyIf,
    /// Whether retention for governance is passed over.
    pub bypasses_governance: bool,
}

impl DeleteObject {
    /// Whether its outcome tells of what is there: by a condition, or that what had this version's
    /// id was a delete marker.
    fn tells(&self) -> bool {
        self.precondition != Precondition::None
            || !self.only_if.is_nothing()
            || matches!(self.which, Which::Version(_))
    }

    /// Whether its outcome tells more of an object than that there is one.
    fn compares(&self) -> bool {
        matches!(self.precondition, Precondition::Etag(_)) || !self.only_if.is_nothing()
    }

    /// All that it asks for: one that is to pass governance over, or compares what is there, for
    /// that as well (User Guide, "conditional deletes").
    fn actions(&self) -> Vec<Action> {
        let (delete, get) = match self.which {
            Which::Current => (Action::DeleteObject, Action::GetObject),
            Which::Version(_) => (Action::DeleteObjectVersion, Action::GetObjectVersion),
        };
        let bypass = Action::BypassGovernanceRetention;
        let besides = [(self.bypasses_governance, bypass), (self.compares(), get)];
        let besides = besides.into_iter().filter(|(is_asked, _)| *is_asked);
        [delete]
            .into_iter()
            .chain(besides.map(|(_, action)| action))
            .collect()
    }

    /// What is recorded of it beside the name.
    fn facts(&self) -> Facts {
        let mut facts = of_version(self.which);
        if self.bypasses_governance {
            facts.extend(asked_to_bypass());
        }
        facts
    }

    fn at(self, now_ms: i64, lock_now_ms: i64) -> Deletion {
        Deletion {
            name: self.name,
            which: self.which,
            precondition: self.precondition,
            only_if: self.only_if,
            now_ms,
            test: LockTest {
                now_ms: lock_now_ms,
                bypasses_governance: self.bypasses_governance,
            },
        }
    }
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// The delete marker that was made, or removed.
    pub marker: Option<VersionId>,
}

impl Vault {
    /// Deletes an object, or a version of one. One that does not exist is deleted already, unless
    /// the precondition asks for it.
    pub async fn delete_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        delete: DeleteObject,
    ) -> Result<Deleted> {
        let mut outcomes = self.delete_objects(subject, bucket, vec![delete]).await?;
        outcomes.pop().unwrap_or(Ok(Deleted::default()))
    }

    /// Deletes up to 1,000 objects; an outcome for each, in order.
    pub async fn delete_objects(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        doomed: Vec<DeleteObject>,
    ) -> Result<Vec<Result<Deleted>>> {
        if doomed.len() > DELETE_MANY_MAX {
            return Err(VaultError::Invalid {
                what: "at most 1,000 objects in one deletion",
            });
        }
        let mut grant = self.changeable(subject, bucket, Right::Delete).await?;
        if doomed.iter().any(DeleteObject::tells) {
            grant.note_read().await?;
        }
        let (doomed, spared) = spare_denied(&mut grant, doomed).await?;
        let names: Vec<ObjectName> = doomed.iter().map(|one| one.name.clone()).collect();
        let told: Vec<Facts> = doomed.iter().map(DeleteObject::facts).collect();
        let lock_now_ms = self.lock_now_ms();
        let delete = move |bucket: UsedBucket| async move {
            let mut changed = Changed::freeing(Vec::with_capacity(doomed.len()), Vec::new());
            let at = now_ms();
            let doomed = doomed.into_iter().map(|one| one.at(at, lock_now_ms));
            let doomed = doomed.collect();
            let outcomes = bucket.catalog.delete_many(doomed).await?;
            for (place, outcome) in outcomes.into_iter().enumerate() {
                let outcome = outcome.map(|gone| {
                    changed.freed.extend(gone.freed);
                    if let Some(passed_over) = gone.overridden {
                        changed.told.push((place, overridden(passed_over)));
                    }
                    Deleted {
                        marker: gone.marker,
                    }
                });
                if outcome.is_err() {
                    changed.failed.push(place);
                }
                changed.value.push(outcome.map_err(VaultError::from));
            }
            Ok(changed)
        };
        let on = names.iter().zip(&told);
        let on = on.map(|(name, told)| On::Told(name, told));
        let outcomes = if names.is_empty() {
            Vec::new()
        } else {
            grant.change(Act::DeleteObject, on, delete).await?
        };
        let tells = |outcome: &Result<Deleted>| {
            let refusal = outcome.as_ref().err();
            refusal.is_some_and(VaultError::tells_what_is_stored)
        };
        if outcomes.iter().any(tells) {
            grant.note_read().await?;
        }
        let missing = |error| self.missing(subject, grant.row(), error);
        let mut outcomes: Vec<_> = { outcomes.into_iter() }
            .map(|outcome| outcome.map_err(missing))
            .collect();
        for place in spared {
            outcomes.insert(place, Err(VaultError::AccessDenied));
        }
        Ok(outcomes)
    }
}

/// Takes out of a deletion what is denied, and gives the places where that was, ascending.
async fn spare_denied(
    grant: &mut ChangeGrant,
    doomed: Vec<DeleteObject>,
) -> Result<(Vec<DeleteObject>, Vec<usize>)> {
    if !grant.is_shared() && !doomed.iter().any(DeleteObject::compares) {
        return Ok((doomed, Vec::new()));
    }
    let (mut asked, mut counts) = (Vec::with_capacity(doomed.len()), Vec::new());
    for one in &doomed {
        let actions = one.actions();
        counts.push(actions.len());
        let own = OwnValues::of_precondition(&one.precondition).map(Arc::new);
        asked.extend(actions.into_iter().map(|action| AskedEach {
            action,
            name: one.name.clone(),
            which: one.which,
            own: own.clone(),
        }));
    }
    let mut lets = grant.lets_each(asked).await?.into_iter();
    let (mut let_through, mut spared) = (Vec::with_capacity(doomed.len()), Vec::new());
    for (place, (one, count)) in doomed.into_iter().zip(counts).enumerate() {
        // All of them are to be taken, also where the first denies.
        let denied = lets.by_ref().take(count).filter(|is_let| !is_let).count();
        if denied == 0 {
            let_through.push(one);
        } else {
            spared.push(place);
        }
    }
    Ok((let_through, spared))
}
