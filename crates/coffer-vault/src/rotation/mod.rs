//! Rotation: new keys for what is there, while it is in use.
//!
//! A level's own key is new at once. The keys of its buckets follow one by one: the bucket gets a
//! new generation, under which everything is wrapped from then on; the data keys that the old one
//! wrapped are rewrapped, many to a commit, with pauses before and within; and when none is left,
//! neither here nor in the newest head of a copy that the keystore goes along with, the old
//! generation is destroyed as an erase destroys keys. Objects are not touched, catalogs not
//! rewritten. A plan is kept in `system.db` until the end, so that a restart goes on with it.

use coffer_audit::Outcome;
use coffer_durable::now_ms;
use coffer_keys::{BucketEntry, KeysError};
use coffer_seal::{BucketId, LevelId};
use parking_lot::MutexGuard;

use crate::access::{Act, Actor, Role};
use crate::audit::{Facts, SERVER};
use crate::blocking::blocking;
use crate::erase::settle;
use crate::error::{Result, VaultError};
use crate::limits::ROTATIONS_TOLD_MAX;
use crate::system::Kind;
use crate::vault::{Rotation, Vault};

mod plan;

mod retiring;

mod rewrapping;

pub(crate) use self::plan::Plan;
use self::plan::to_replace;
use self::retiring::LeftGeneration;

impl Vault {
    /// What the rotation of a level's key, and those of all of its buckets, is to do.
    pub(crate) fn plan_for_level(&self, id: LevelId) -> Result<Plan> {
        let keystore = &self.inner.keystore;
        let level = keystore.level(id).ok_or(VaultError::NoSuchLevel)?;
        let mut buckets = keystore.buckets();
        // One whose folder is still to come from another server has nothing to rewrap yet.
        let system = &self.inner.system;
        // It would keep its keys, should it not be ordered to be erased.
        if system.is_an_erase_in_doubt() && system.has_going_of(id) {
            return Err(VaultError::SystemInDoubt);
        }
        let is_here = |bucket: &BucketEntry| system.bucket_of_id(bucket.id).is_some();
        buckets.retain(|bucket| bucket.level_id == level.id && is_here(bucket));
        Ok(Plan {
            level_id: level.id,
            level: level.name,
            level_generation: Some(level.generation),
            bucket: None,
            buckets: { buckets }.iter().map(to_replace).collect(),
            begun_ms: now_ms(),
        })
    }

    /// What the rotation of a bucket's key is to do.
    pub(crate) fn plan_for_bucket(&self, id: BucketId) -> Result<Plan> {
        let row = self.inner.system.bucket_of_id(id);
        let row = row.ok_or(VaultError::NoSuchBucket)?;
        let entry = self.entry(id).ok_or(VaultError::NoSuchBucket)?;
        let level = self.inner.keystore.level(row.level_id);
        Ok(Plan {
            level_id: row.level_id,
            level: level.ok_or(VaultError::NoSuchLevel)?.name,
            level_generation: None,
            bucket: Some(row.name.as_str().to_owned()),
            buckets: vec![to_replace(&entry)],
            begun_ms: now_ms(),
        })
    }

    /// The rotations since the start, the latest last. Of those that have ended, the latest few.
    pub async fn rotations(&self, actor: &Actor) -> Result<Vec<Rotation>> {
        if !actor.has(Role::Auditor) {
            self.refuse_but_custodians(actor, Act::ListRotations, &Facts::new())?;
        }
        let mut rotations: Vec<_> = self.inner.rotations.lock().values().cloned().collect();
        rotations.sort_by_key(|rotation| rotation.begun_ms);
        Ok(rotations)
    }

    /// Goes on with what a stop interrupted.
    pub(crate) fn resume_rotations(&self) {
        match self.inner.system.documents::<Plan>(Kind::Rotation) {
            Ok(plans) => {
                for plan in plans {
                    self.tell_begun(&plan);
                    self.rotate_in_background(plan);
                }
            }
            Err(error) => tracing::error!(%error, "interrupted rotations can't be read"),
        }
    }

    /// Returns when a rotation has begun and is sure to go on; [`Vault::rotations`] tells how far
    /// it is.
    ///
    /// # Errors
    /// [`VaultError::Invalid`] while it is being rotated.
    pub(crate) async fn begin_rotation(&self, plan: Plan) -> Result<Rotation> {
        if self.is_under_way(&plan) {
            return Err(VaultError::Invalid {
                what: "it is being rotated; `coffer keystore status` tells how far it is",
            });
        }
        let rotation = self.tell_begun(&plan);
        let (inner, kept) = (self.inner.clone(), plan.clone());
        let kept = blocking(move || inner.system.keep(Kind::Rotation, kept.id(), &kept));
        if let Err(error) = kept.await {
            self.inner.rotations.lock().remove(&plan.id());
            return Err(error);
        }
        self.rotate_in_background(plan);
        Ok(rotation)
    }

    fn is_under_way(&self, plan: &Plan) -> bool {
        let rotations = self.inner.rotations.lock();
        let told = rotations.get(&plan.id());
        told.is_some_and(|told| told.ended_ms.is_none())
    }

    fn rotate_in_background(&self, plan: Plan) {
        let this = self.clone();
        let task = tokio::spawn(async move {
            let outcome = this.rotate(&plan).await;
            this.tell(&plan, |told| {
                told.ended_ms = Some(now_ms());
                told.failure = outcome.as_ref().err().map(ToString::to_string);
            });
            // Its name would outlive it in what keeps the log.
            let level = plan.level_id;
            let ended = match outcome {
                Ok(()) => {
                    tracing::info!(%level, "rotated; the older keys are destroyed");
                    Outcome::Done
                }
                Err(error) => {
                    tracing::error!(%level, %error, "a rotation broke off");
                    Outcome::Failed
                }
            };
            this.noted(Act::EndRotation, &SERVER, ended, &plan.facts());
        });
        self.rotation_tasks().push(task);
    }

    /// Breaks off what is under way: the next start goes on with it.
    pub(crate) async fn stop_rotations(&self) {
        let tasks = std::mem::take(&mut *self.rotation_tasks());
        for task in tasks {
            task.abort();
            let _ = task.await;
        }
    }

    async fn rotate(&self, plan: &Plan) -> Result<()> {
        if let Some(generation) = plan.level_generation {
            let _turn = self.inner.one_rotation.lock().await;
            let (inner, level_id) = (self.inner.clone(), plan.level_id);
            blocking(move || {
                let level = inner.keystore.level(level_id);
                if level.is_some_and(|level| level.generation == generation) {
                    settled(
                        &inner.keystore,
                        inner.keystore.rotate_level(level_id).map(drop),
                    )?;
                }
                Ok(())
            })
            .await?;
            self.tell(plan, |told| told.is_replaced_destroyed = true);
        }
        self.inner.at("level rotated");
        let mut outcome = Ok(());
        let mut left = Vec::new();
        for (id, generation) in &plan.buckets {
            match self.rewrap_keys_of(plan, *id, *generation).await {
                Ok(Some(generation)) => left.push(generation),
                Ok(None) => self.tell_bucket_done(plan, *id, *generation),
                // The others are done all the same; the next start tries this one again.
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        // Once for all: each of them may take a round.
        self.wait_for_catalogs(plan, &left).await?;
        for generation in &left {
            match self.retire(generation).await {
                Ok(()) => self.tell_bucket_done(plan, generation.id, generation.older),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome?;
        self.wait_for_keystores(plan).await?;
        let (inner, id) = (self.inner.clone(), plan.id());
        blocking(move || inner.system.drop_document(Kind::Rotation, id).map(drop)).await
    }

    /// Tells that a bucket's keys of this generation are destroyed, unless they are left to an
    /// erase.
    fn tell_bucket_done(&self, plan: &Plan, id: BucketId, replaced: u32) {
        let is_kept = |entry: BucketEntry| {
            let older = entry.older_generation;
            older.is_some_and(|older| older <= replaced) || entry.generation <= replaced
        };
        if self.entry(id).is_some_and(is_kept) {
            return;
        }
        self.tell(plan, |told| {
            told.buckets_done += 1;
            told.is_replaced_destroyed |= plan.bucket.is_some();
        });
    }

    /// Brings a bucket to a generation above `replaced`, and wraps all anew under it. What is to be
    /// destroyed then; none, where that is done. One that is gone meanwhile is done.
    async fn rewrap_keys_of(
        &self,
        plan: &Plan,
        id: BucketId,
        replaced: u32,
    ) -> Result<Option<LeftGeneration>> {
        let mut has_waited = false;
        loop {
            let turn = self.inner.one_rotation.lock().await;
            let Some(entry) = self.entry(id) else {
                return Ok(None);
            };
            let Some(older) = entry.older_generation else {
                if entry.generation > replaced {
                    return Ok(None);
                }
                let inner = self.inner.clone();
                let rotated = blocking(move || match inner.keystore.rotate_bucket(id) {
                    Err(KeysError::NoSuchBucket { .. }) => Ok(()),
                    rotated => Ok(rotated.map(drop)?),
                });
                rotated.await?;
                self.inner.at("new generation");
                continue;
            };
            let inner = &self.inner;
            let opened = inner
                .open_buckets
                .open(&inner.folder, &inner.keystore, id)
                .await;
            let bucket = match opened {
                Ok(bucket) => Some(bucket),
                Err(_) if self.entry(id).is_none() => return Ok(None),
                Err(VaultError::NoSuchBucket) if !has_waited => None,
                Err(error) => return Err(error),
            };
            if let Some(bucket) = bucket {
                let left = self.leave_generation(plan, &bucket, id, older).await;
                if self.entry(id).is_none() {
                    return Ok(None);
                }
                if !bucket.is_cut() {
                    // Neither erases nor backups wait for what waits for copies.
                    drop((bucket, turn));
                    let left = left?;
                    if entry.generation > replaced {
                        return Ok(Some(left));
                    }
                    // What an earlier rotation left goes first: there are two at most.
                    self.wait_for_catalogs(plan, std::slice::from_ref(&left))
                        .await?;
                    self.retire(&left).await?;
                    continue;
                }
            }
            // It is being erased. Should that fail, its keys are still to be rotated.
            has_waited = true;
            let _changing = inner.changing_buckets.lock().await;
            if inner.system.is_going(id) {
                // It is ordered, or may be.
                let is_in_doubt = inner.system.is_an_erase_in_doubt();
                return if is_in_doubt {
                    Err(VaultError::SystemInDoubt)
                } else {
                    Ok(None)
                };
            }
        }
    }

    fn entry(&self, id: BucketId) -> Option<BucketEntry> {
        self.inner.keystore.bucket(id)
    }

    fn tell_begun(&self, plan: &Plan) -> Rotation {
        let rotation = Rotation {
            level: plan.level.clone(),
            bucket: plan.bucket.clone(),
            begun_ms: plan.begun_ms,
            ended_ms: None,
            failure: None,
            replaced_generation: plan.replaced_generation(),
            is_replaced_destroyed: false,
            waits_for: Vec::new(),
            bucket_count: plan.buckets.len(),
            buckets_done: 0,
            key_count: 0,
            keys_done: 0,
        };
        let mut rotations = self.inner.rotations.lock();
        if rotations.len() >= ROTATIONS_TOLD_MAX {
            let ended = rotations.iter().filter(|(_, told)| told.ended_ms.is_some());
            let oldest = ended
                .min_by_key(|(_, told)| told.ended_ms)
                .map(|(id, _)| *id);
            oldest.map(|id| rotations.remove(&id));
        }
        rotations.insert(plan.id(), rotation.clone());
        rotation
    }

    fn tell(&self, plan: &Plan, change: impl FnOnce(&mut Rotation)) {
        self.inner.rotations.lock().get_mut(&plan.id()).map(change);
    }

    fn rotation_tasks(&self) -> MutexGuard<'_, Vec<tokio::task::JoinHandle<()>>> {
        let mut tasks = self.inner.rotation_tasks.lock();
        tasks.retain(|task| !task.is_finished());
        tasks
    }
}

/// What became of a change that destroys an old root key: where only that failed, it is tried
/// again. What was removed meanwhile needs no change.
pub(crate) fn settled(
    keystore: &coffer_keys::Keystore,
    changed: Result<(), KeysError>,
) -> Result<()> {
    match changed {
        Err(KeysError::Unsettled { .. }) => Ok(settle(keystore)?),
        Err(KeysError::NoSuchBucket { .. } | KeysError::NoSuchGeneration { .. }) => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
pub(crate) mod tests;
