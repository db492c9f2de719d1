//! What a gateway that serves waits for before it answers, and what it answers those that follow:
//! how far all has come, so that they may answer reads by what they have of it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coffer_seal::BucketId;

use crate::blocking::blocking;
use crate::error::{CopyError, Result, VaultError};
use crate::fence::ServingRight;
use crate::gateways::{ReadAnswer, ReadQuestion, StandingAnswer};
use crate::limits::{ANSWERS_STAND, READS_BUCKETS_MAX};
use crate::vault::Vault;

impl Vault {
    /// After a read of administration, before it is answered: waits until a head has what it may
    /// have told, where the server is a gateway of an engine, and no other answers reads by what
    /// was before it began to serve; then looks whether it still serves.
    ///
    /// # Errors
    /// [`CopyError`](crate::CopyError): `LeaseEnded`, `NotInLog`.
    pub async fn settle_what_was_read(&self) -> Result<()> {
        self.inner.copies.waited_for.settle_read(None).await?;
        self.inner.followers.begun().await;
        self.check_serves()
    }

    /// Before an answer that opens no bucket, and follows from what acts of administration have
    /// done: a refusal, or that a bucket is there. Waits as a read does, where the server is a
    /// gateway of an engine.
    ///
    /// # Errors
    /// [`CopyError`](crate::CopyError): `NotInLog`.
    pub async fn settle_acts(&self) -> Result<()> {
        self.inner.copies.waited_for.settle_read(None).await
    }

    /// Whether [`settle_acts`](Self::settle_acts) has nothing to wait for.
    pub fn acts_are_settled(&self) -> bool {
        self.inner.copies.waited_for.is_settled()
    }

    /// Answers a gateway that follows. All that anyone was shown before the question came is told.
    ///
    /// # Errors
    /// [`CopyError::LeaseEnded`]; of a server that is no gateway; of the disk.
    pub async fn answer_follower(&self, question: &ReadQuestion) -> Result<ReadAnswer> {
        let inner = &self.inner;
        if inner.closed.load(Ordering::Acquire) {
            return Err(VaultError::ShuttingDown);
        }
        let allowed = inner.followers.allow(question);
        let (recall, lasts) = allowed.ok_or(CopyError::LeaseEnded)?;
        let looked_at = ServingRight::now();
        // First: what an act has done by then that was not under way is committed.
        let waited_for = &inner.copies.waited_for;
        let is_quiet = inner.followers.is_quiet() && !waited_for.is_bridled(None);
        let asked = question.buckets.iter().take(READS_BUCKETS_MAX);
        let known = |name: &String| Some((name.clone(), self.commits_of(name)?));
        let buckets: HashMap<String, u64> = asked.filter_map(known).collect();
        let reading = inner.clone();
        let (system_commits, keystore_generation) = blocking(move || {
            let system_commits = reading.system.shown_commit_count()?;
            Ok((system_commits, reading.keystore.keys_generation()))
        })
        .await?;
        let standing = {
            let is_allowed = is_quiet && !lasts.is_zero();
            self.stands(&buckets, is_allowed, looked_at)
        };
        // Last: until now none has served in its place, and shown more.
        self.check_serves()?;
        Ok(ReadAnswer {
            recall,
            lasts_ms: u64::try_from(lasts.as_millis()).unwrap_or_default(),
            is_quiet,
            system_commits,
            keystore_generation,
            buckets,
            standing,
        })
    }

    /// In which buckets what is told, and was looked at after this time, stands for a moment.
    fn stands(
        &self,
        told: &HashMap<String, u64>,
        is_allowed: bool,
        looked_at: Duration,
    ) -> Option<StandingAnswer> {
        let waited_for = &self.inner.copies.waited_for;
        if waited_for.is_to_be_settled() {
            // No read may come here that settles it.
            self.settle_soon();
        }
        let ids = told.keys().filter_map(|name| BucketId::from_hex(name));
        let standing = is_allowed
            .then(|| waited_for.stand(ids, looked_at))
            .flatten()?;
        Some(StandingAnswer {
            lasts_ms: u64::try_from(ANSWERS_STAND.as_millis()).unwrap_or_default(),
            buckets: standing.iter().map(ToString::to_string).collect(),
        })
    }

    /// Has what is in doubt settled in the background, once at a time.
    fn settle_soon(&self) {
        let inner = self.inner.clone();
        if inner.followers.begin_settling() {
            tokio::spawn(async move {
                if let Err(error) = inner.copies.waited_for.settle_read(None).await {
                    tracing::debug!(%error, "what is in doubt was not settled");
                }
                inner.followers.end_settling();
            });
        }
    }

    /// How far a catalog has come, where that is known for sure.
    fn commits_of(&self, name: &str) -> Option<u64> {
        let id = BucketId::from_hex(name)?;
        let open_buckets = &self.inner.open_buckets;
        // One that readers see already may not be counted yet. Nor is it told of what is changed
        // while others may answer by what was before.
        if open_buckets.is_committing(id) || self.inner.copies.waited_for.is_bridled(Some(id)) {
            return None;
        }
        let open = open_buckets.last_commit(id);
        open.or_else(|| self.inner.freshness.commits.of_met(id))
    }
}
