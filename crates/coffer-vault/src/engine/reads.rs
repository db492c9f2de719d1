//! What the gateway that serves answers those that follow: how far all has come, so that they may
//! answer reads by what they have of it.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use coffer_seal::BucketId;

use crate::blocking::blocking;
use crate::error::{CopyError, Result, VaultError};
use crate::gateways::{ReadAnswer, ReadQuestion};
use crate::limits::READS_BUCKETS_MAX;
use crate::vault::Vault;

impl Vault {
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
        // First: what an act has done by then that was not under way is committed.
        let is_quiet = inner.followers.is_quiet();
        let asked = question.buckets.iter().take(READS_BUCKETS_MAX);
        let known = |name: &String| Some((name.clone(), self.commits_of(name)?));
        let buckets: HashMap<String, u64> = asked.filter_map(known).collect();
        let reading = inner.clone();
        let (system_commits, keystore_generation) = blocking(move || {
            let system_commits = reading.system.shown_commit_count()?;
            Ok((system_commits, reading.keystore.keys_generation()))
        })
        .await?;
        // Last: until now none has served in its place, and shown more.
        self.check_serves()?;
        Ok(ReadAnswer {
            recall,
            lasts_ms: u64::try_from(lasts.as_millis()).unwrap_or_default(),
            is_quiet,
            system_commits,
            keystore_generation,
            buckets,
        })
    }

    /// How far a catalog has come, where that is known for sure.
    fn commits_of(&self, name: &str) -> Option<u64> {
        let id = BucketId::from_hex(name)?;
        let open_buckets = &self.inner.open_buckets;
        // One that readers see already may not be counted yet.
        if open_buckets.is_committing(id) {
            return None;
        }
        let open = open_buckets.last_commit(id);
        open.or_else(|| self.inner.freshness.commits.of_met(id))
    }
}
