//! The keystore that goes along with a copy, where that was approved: which levels of it, and how
//! it gets there. Rounds put it, and an erase does at once, beside whatever round is under way.
//!
//! A store may take what is put and refuse to remove what was there before. Then the copy goes on
//! with the newest, which counts, and has not *taken* it: receipts are pending, and it is tried
//! again. What is to be removed is listed each time, so a start remembers it as well.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use coffer_durable::now_ms;
use coffer_keys::{ExportRecipient, Keystore, LevelEntry, SealedKeystore};
use coffer_replica::{CopyId, KeystoreRef, KeystoreWriter};
use coffer_seal::LevelId;
use futures::future::join_all;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::registry::{Registry, TakenKeystore, WithKeystore};
use super::{Copies, Progress, Running};
use crate::blocking::blocking;
use crate::error::{CopyError, Result};
use crate::limits::{
    COPY_BEGUN_LOOKS_EVERY, COPY_KEYSTORE_REMOVAL, COPY_KEYSTORE_WAIT, COPY_PROBES_EVERY,
};

/// Puts the keystore into one copy, one after the other.
pub(crate) struct Carrier {
    id: CopyId,
    writer: Mutex<Option<KeystoreWriter>>,
    /// When it was last looked whether another one is beside it.
    looked: parking_lot::Mutex<Option<Instant>>,
    /// Why those of before could not be removed.
    left: parking_lot::Mutex<Option<String>>,
}

impl WithKeystore {
    /// Whether a level may go along: its keys may be exported, and no more people have to approve
    /// that than approved the copy.
    fn admits(&self, level: &LevelEntry) -> bool {
        let options = level.options;
        self.is_of_engine || options.exportable && options.approvals <= self.people
    }

    /// The levels that stay out.
    pub(crate) fn left_out(&self, keystore: &Keystore) -> Vec<String> {
        let levels = keystore.levels().into_iter();
        let out = levels.filter(|level| !self.admits(level));
        out.map(|level| level.name).collect()
    }
}

impl Carrier {
    pub(crate) fn new(id: CopyId) -> Self {
        Self {
            id,
            writer: Mutex::default(),
            looked: parking_lot::Mutex::default(),
            left: parking_lot::Mutex::default(),
        }
    }

    /// What keeps the copy from having the newest keystore alone.
    pub(crate) fn problem(&self) -> Option<String> {
        let left = self.left.lock();
        left.as_ref().map(|error| {
            format!(
                "the copy has the newest keystore, and the ones before can't be removed from it, \
                 with keys that may be destroyed here; it is tried again: {error}"
            )
        })
    }

    /// Goes on with this writer, of the epoch that has begun.
    pub(crate) async fn begin(&self, writer: KeystoreWriter) {
        *self.writer.lock().await = Some(writer);
    }

    /// What lies there is missing or damaged.
    pub(crate) async fn forget(&self) {
        if let Some(writer) = self.writer.lock().await.as_mut() {
            writer.forget();
        }
    }

    /// Waits until there is a writer, which a copy that was given up may never have.
    async fn begun(&self, progress: &Progress) {
        while self.writer.lock().await.is_none() && !progress.is_given_up() {
            sleep(COPY_BEGUN_LOOKS_EVERY).await;
        }
    }

    /// Whether it is to be looked again what is beside it.
    fn is_look_due(&self) -> bool {
        let mut looked = self.looked.lock();
        let is_due = looked.is_none_or(|looked| looked.elapsed() > COPY_PROBES_EVERY);
        if is_due {
            *looked = Some(Instant::now());
        }
        is_due
    }

    /// It is tried at once to remove those of before, however it went the last time.
    fn look_at_once(&self) {
        *self.looked.lock() = None;
    }

    /// Puts the keystore as it is, unless the copy has it, and removes those of before, also where
    /// they come late; none where none goes along. That these can't be removed is no error: heads
    /// do not wait for it.
    pub(crate) async fn carry(
        &self,
        registry: &Arc<Registry>,
        keystore: &Arc<Keystore>,
    ) -> Result<Option<KeystoreRef>> {
        let mut writer = self.writer.lock().await;
        let Some(entry) = registry.of_id(self.id) else {
            return Ok(None);
        };
        let Some(with) = entry.keystore else {
            return Ok(None);
        };
        let writer = writer.as_mut().ok_or(CopyError::NotReached)?;
        let taken = with.taken.filter(|taken| taken.is_of_this_start);
        let taken = taken.map(|taken| taken.generation);
        let put = writer.put().cloned();
        let put = put.filter(|put| put.generation() == keystore.generation());
        let is_new = put.is_none();
        let put = match put {
            Some(put) => put,
            None => {
                let (id, registry, keystore) = (self.id, registry.clone(), keystore.clone());
                let sealed = blocking(move || seal(id, &registry, &keystore, with)).await?;
                let put = writer.put_newest(sealed.generation, sealed.bytes).await?;
                // Where it failed the last time, it is not tried with each of many.
                if self.left.lock().is_none() {
                    self.look_at_once();
                }
                put
            }
        };
        if self.is_look_due() {
            if !is_new && writer.is_lost().await {
                tracing::warn!(
                    copy = entry.name,
                    "the keystore in a copy is missing or damaged in its store: it is put again"
                );
                // The next round puts it, which is not long after this one.
                writer.forget();
                return Ok(Some(put));
            }
            self.remove_older(writer, &entry.name).await?;
        }
        let generation = put.generation();
        // What was not noted for a failure here is noted by the next.
        if writer.is_alone() && taken != Some(generation) {
            self.note_taken(registry, generation).await?;
        }
        Ok(Some(put))
    }

    /// Removes those of before, unless the store refuses, or takes too long.
    async fn remove_older(&self, writer: &mut KeystoreWriter, copy: &str) -> Result<()> {
        let removed = timeout(COPY_KEYSTORE_REMOVAL, writer.keep_alone()).await;
        let error = match removed {
            Ok(Ok(())) => {
                *self.left.lock() = None;
                return Ok(());
            }
            Ok(Err(error)) if error.is_passing() => error.to_string(),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => "the store did not answer in time".to_owned(),
        };
        tracing::warn!(
            copy,
            error,
            "older keystores could not be removed from a copy, and lie there beside the newest"
        );
        *self.left.lock() = Some(error);
        Ok(())
    }

    async fn note_taken(&self, registry: &Arc<Registry>, generation: u64) -> Result<()> {
        let (id, registry, at_ms) = (self.id, registry.clone(), now_ms());
        let taken = TakenKeystore {
            generation,
            at_ms,
            is_of_this_start: true,
        };
        blocking(move || registry.change_keystore(id, |with| with.taken = Some(taken))).await
    }
}

/// Seals it with the levels that may go along. Those that do so for the first time are counted as
/// exported before.
fn seal(
    id: CopyId,
    registry: &Registry,
    keystore: &Keystore,
    with: WithKeystore,
) -> Result<SealedKeystore> {
    let levels = keystore.levels().into_iter();
    let levels = levels.filter(|level| with.admits(level));
    let admitted: BTreeSet<LevelId> = levels.map(|level| level.id).collect();
    let new: BTreeSet<LevelId> = admitted.difference(&with.levels).copied().collect();
    if with.is_of_engine {
        return Ok(keystore.seal_carried(None, &recipients_of(&with)?)?);
    }
    if !new.is_empty() {
        keystore.count_exports(&new)?;
        registry.change_keystore(id, |with| with.levels.clone_from(&admitted))?;
    }
    Ok(keystore.seal_carried(Some(&admitted), &recipients_of(&with)?)?)
}

fn recipients_of(with: &WithKeystore) -> Result<Vec<ExportRecipient>> {
    let recipients = with.recipients.iter().map(|recipient| recipient.parse());
    Ok(recipients.collect::<std::result::Result<_, _>>()?)
}

impl Copies {
    /// Puts the keystore into all copies that it goes along with, for as long as an erase waits for
    /// that. What each took, the registry tells.
    pub(crate) async fn carry_all(&self, keystore: &Arc<Keystore>) {
        let carriers: Vec<_> = {
            let running = self.running.lock();
            let carrier = |(name, running): (&String, &Running)| {
                let (carrier, progress) = (running.carrier.clone(), running.progress.clone());
                (name.clone(), carrier, progress)
            };
            running.iter().map(carrier).collect()
        };
        let carried = carriers.iter().map(|(name, carrier, progress)| async move {
            let carried = async {
                // One without a keystore is not waited for.
                if self
                    .registry
                    .of_id(carrier.id)
                    .is_some_and(|entry| entry.keystore.is_some())
                {
                    carrier.begun(progress).await;
                }
                carrier.look_at_once();
                carrier.carry(&self.registry, keystore).await
            };
            match timeout(COPY_KEYSTORE_WAIT, carried).await {
                Ok(Ok(_)) => {
                    if let Some(problem) = carrier.problem() {
                        tracing::warn!(copy = name, problem, "an erase is pending in a copy");
                    }
                }
                Ok(Err(error)) => tracing::warn!(
                    copy = name, %error,
                    "a copy has not taken the keystore of an erase yet"
                ),
                Err(_) => tracing::warn!(
                    copy = name,
                    "a copy has not taken the keystore of an erase in time"
                ),
            }
        });
        join_all(carried).await;
    }
}
