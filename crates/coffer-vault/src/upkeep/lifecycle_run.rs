//! A run of lifecycle rules over one bucket: in pages, and in batches, each of which is a
//! transaction that looks again at all that it ends. Between them others have their turn.
//!
//! What a rule did is recorded: that it begins, before its first batch; and how much it was, in the
//! end, of which in an engine the log has all. Where locks and quotas keep all that is due, that is
//! recorded when it changes. No batch is committed once other rules were set, or none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_audit::Outcome;
use coffer_durable::now_ms;
use coffer_seal::UploadId;
use coffer_store::lock::LockTest;
use coffer_store::record::UploadsQuery;
use coffer_store::version::Versioning;
use coffer_store::{AgedVersion, Retired, StoreError};

use crate::access::Act;
use crate::audit::{Facts, SERVER};
use crate::blocking::blocking;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::lifecycle::LifecycleRules;
use crate::limits::{LIFECYCLE_BATCH, LIFECYCLE_PAGE, LIFECYCLE_REST, LIFECYCLE_REST_MAX};
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;
use crate::vault::{Kept, Vault};

/// What a rule did in this run.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    /// Whether it is recorded that the rule acts.
    is_begun: bool,
    removed: u64,
    removed_bytes: u64,
    hidden: u64,
    locked: u64,
    /// Markers that a quota did not allow.
    refused: u64,
    uploads: u64,
}

/// Why a run ends before its end.
enum Stop {
    /// Other rules were set meanwhile, or none: theirs is the next run.
    OtherRules,
    Failed(VaultError),
}

impl<E: Into<VaultError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What is due, after the id of its rule.
type Due = (String, AgedVersion);

type Step = std::result::Result<(), Stop>;

/// One run.
pub(super) struct Run<'a> {
    vault: &'a Vault,
    row: &'a Arc<BucketRow>,
    bucket: UsedBucket,
    rules: Arc<LifecycleRules>,
    now_ms: i64,
    /// By the rules' ids.
    done: BTreeMap<String, Done>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        vault: &'a Vault,
        row: &'a Arc<BucketRow>,
        bucket: UsedBucket,
        rules: Arc<LifecycleRules>,
        now_ms: i64,
    ) -> Self {
        Self {
            vault,
            row,
            bucket,
            rules,
            now_ms,
            done: BTreeMap::new(),
        }
    }

    /// Ends all that is due, and records how much that was, also where it breaks off.
    pub(super) async fn finish(mut self) -> Result<()> {
        let mut outcome = self.versions().await;
        if outcome.is_ok() {
            outcome = self.uploads().await;
        }
        let told = match &outcome {
            Ok(()) | Err(Stop::OtherRules) => Outcome::Done,
            Err(Stop::Failed(_)) => Outcome::Failed,
        };
        let kept_before = self.kept_before();
        for (rule, done) in &self.done {
            let kept = (done.locked, done.refused);
            if !done.is_begun && kept_before.get(rule) == Some(&kept) {
                continue;
            }
            let mut facts = self.facts(rule);
            let counts = [
                ("removed", done.removed),
                ("bytes", done.removed_bytes),
                ("hidden", done.hidden),
                ("locked", done.locked),
                ("refused", done.refused),
                ("uploads", done.uploads),
            ];
            facts.extend(counts.map(|(name, count)| (name, count.to_string())));
            let facts = [facts];
            let recorded = self.vault.record(Act::RunLifecycle, &SERVER, told, &facts);
            if let Err(error) = recorded.await {
                tracing::error!(%error, "what lifecycle rules ended could not be recorded");
            }
        }
        if outcome.is_ok() {
            self.remember_kept();
        }
        match outcome {
            Ok(()) | Err(Stop::OtherRules) => Ok(()),
            Err(Stop::Failed(error)) => Err(self.bucket.if_closed(error)),
        }
    }

    async fn versions(&mut self) -> Step {
        let (mut after, mut due) = (None, Vec::new());
        loop {
            let begun = Instant::now();
            let page = self
                .bucket
                .catalog
                .aged_after(after.as_ref(), LIFECYCLE_PAGE);
            let page = page.await?;
            let Some(last) = page.last() else { break };
            after = Some(last.place.clone());
            let (rules, day, now_ms) = (self.rules.clone(), self.day(), self.now_ms);
            let test = LockTest {
                now_ms: self.vault.lock_now_ms(),
                bypasses_governance: false,
            };
            let judge = move || {
                let judged = page.into_iter().filter_map(|version| {
                    let ending = rules.ending(&version, day)?;
                    (ending.due_ms <= now_ms).then(|| (ending.rule.id.clone(), version))
                });
                Ok(judged.collect::<Vec<_>>())
            };
            for (rule, version) in blocking(judge).await? {
                // Nothing is begun for what stays. A newest version is hidden, locked or not.
                if version.place.is_older && version.lock.keeps_from(test) {
                    self.of_rule(&rule).locked += 1;
                } else {
                    due.push((rule, version));
                }
            }
            self.rest(begun).await?;
            while due.len() >= LIFECYCLE_BATCH {
                self.end(due.drain(..LIFECYCLE_BATCH).collect()).await?;
            }
        }
        self.end(due).await
    }

    /// Ends what is due, with the rules by which it is: first what makes room. Delete markers count
    /// as objects: as many are made as quotas allow.
    async fn end(&mut self, due: Vec<Due>) -> Step {
        let versioning = self.bucket.catalog.versioning().await;
        let versioning = versioning.map_err(VaultError::of_setting)?;
        let is_hidden = |due: &Due| versioning != Versioning::Never && !due.1.place.is_older;
        let (mut hidden, mut removed): (Vec<_>, Vec<_>) = due.into_iter().partition(is_hidden);
        while !removed.is_empty() {
            let length = removed.len();
            self.batch(&mut removed, length).await?;
        }
        let mut length = hidden.len();
        while !hidden.is_empty() {
            // Where versions are suspended, a marker may take the place of an object.
            let ledger = &self.vault.inner.open_buckets.quotas;
            let is_full = versioning == Versioning::Enabled && !ledger.has_room_in(self.row.id);
            if is_full || length == 0 {
                // One that was tried alone; those behind it may still replace something.
                let count = if is_full { hidden.len() } else { 1 };
                for (rule, _) in hidden.drain(..count) {
                    self.of_rule(&rule).refused += 1;
                }
                length = 1;
                continue;
            }
            length = length.min(hidden.len());
            if !self.batch(&mut hidden, length).await? {
                length /= 2;
            }
        }
        Ok(())
    }

    /// Ends the first so many in one transaction, and takes them out. Whether quotas allowed that.
    async fn batch(
        &mut self,
        due: &mut Vec<Due>,
        length: usize,
    ) -> std::result::Result<bool, Stop> {
        let begun = Instant::now();
        for (rule, _) in &due[..length] {
            self.begin(rule).await?;
        }
        let versions = due[..length].iter().map(|(_, version)| version.clone());
        let versions = versions.collect();
        let step = self.vault.inner.lifecycle.step.lock().await;
        self.check_rules()?;
        let mut guard = self.bucket.commit_guard().await?;
        let sharing = self.vault.sharing(self.row)?;
        if sharing.is_some_and(|sharing| sharing.asks_for_objects()) {
            drop(guard);
            // What others are judged by does not end before they have committed.
            guard = self.bucket.commit_alone().await?;
        }
        let lock_now_ms = self.vault.lock_now_ms();
        let vault = self.vault;
        let waited_for = &vault.inner.copies.waited_for;
        let under_way = waited_for.begin_change(Some(self.bucket.id));
        let retired = self.bucket.catalog.retire(versions, now_ms(), lock_now_ms);
        let retirement = retired.await;
        drop((guard, step));
        let is_allowed = !matches!(retirement, Err(StoreError::OverQuota(_)));
        if is_allowed {
            let retirement = waited_for.settle_own(under_way, retirement).await?;
            let count = retirement.ends.len();
            for ((rule, version), end) in due.drain(..count).zip(retirement.ends) {
                self.count(&rule, &version, end);
            }
            self.bucket.blobs.remove(retirement.freed).await;
        }
        self.rest(begun).await?;
        Ok(is_allowed)
    }

    fn count(&mut self, rule: &str, version: &AgedVersion, end: Retired) {
        let tally = &self.vault.inner.tally;
        let done = self.done.entry(rule.to_owned()).or_default();
        match end {
            Retired::Changed => {}
            Retired::Locked => done.locked += 1,
            Retired::Hidden => {
                done.hidden += 1;
                add(&tally.lifecycle_hidden_count, 1);
            }
            Retired::Removed => {
                done.removed += 1;
                done.removed_bytes += version.size_bytes;
                add(&tally.lifecycle_removed_count, 1);
            }
        }
    }

    fn of_rule(&mut self, rule: &str) -> &mut Done {
        self.done.entry(rule.to_owned()).or_default()
    }

    /// What locks and quotas kept of each rule when the last run ended.
    fn kept_before(&self) -> BTreeMap<String, Kept> {
        let kept = self.vault.inner.lifecycle.kept.lock();
        kept.get(&self.row.id).cloned().unwrap_or_default()
    }

    fn remember_kept(&self) {
        let of_rule = |(rule, done): (&String, &Done)| {
            let kept = (done.locked, done.refused);
            (kept != Kept::default()).then(|| (rule.clone(), kept))
        };
        let of_rules = self.done.iter().filter_map(of_rule).collect();
        let mut kept = self.vault.inner.lifecycle.kept.lock();
        kept.insert(self.row.id, of_rules);
    }

    async fn uploads(&mut self) -> Step {
        if !self.rules.ends_uploads() {
            return Ok(());
        }
        let mut start_after = None;
        loop {
            let query = UploadsQuery {
                start_after,
                limit: LIFECYCLE_PAGE,
                ..UploadsQuery::default()
            };
            let page = self.bucket.catalog.uploads(query).await?;
            for upload in &page.uploads {
                let rules = self.rules.clone();
                let (name, day) = (upload.name.expose(), self.day());
                let ending = rules.upload_ending(name, upload.started_ms, day);
                if let Some(ending) = ending.filter(|ending| ending.due_ms <= self.now_ms) {
                    self.abort(&ending.rule.id, upload.id).await?;
                }
            }
            match page.next {
                Some(next) => start_after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn abort(&mut self, rule: &str, id: UploadId) -> Step {
        let begun = Instant::now();
        self.begin(rule).await?;
        let inner = &self.vault.inner;
        let step = inner.lifecycle.step.lock().await;
        self.check_rules()?;
        let changing = inner.open_buckets.uploads.change(self.bucket.id);
        let guard = self.bucket.commit_guard().await?;
        let under_way = inner.copies.waited_for.begin_change(Some(self.bucket.id));
        let aborted = match self.bucket.catalog.abort_upload(&id).await {
            // Completed or aborted meanwhile.
            Err(StoreError::NoSuchUpload) => return Ok(()),
            aborted => aborted,
        };
        if let Ok(aborted) = &aborted {
            changing.ended(aborted.made_by.as_deref());
        }
        drop((guard, changing, step));
        let waited_for = &inner.copies.waited_for;
        let aborted = waited_for.settle_own(under_way, aborted).await?;
        add(&inner.tally.lifecycle_upload_count, 1);
        self.of_rule(rule).uploads += 1;
        self.bucket.blobs.remove(aborted.freed).await;
        self.rest(begun).await
    }

    /// Records, durably, that a rule begins to act, unless that was done.
    async fn begin(&mut self, rule: &str) -> Result<()> {
        if self.done.get(rule).is_some_and(|done| done.is_begun) {
            return Ok(());
        }
        let facts = [self.facts(rule)];
        let vault = self.vault;
        vault
            .record(Act::RunLifecycle, &SERVER, Outcome::Begun, &facts)
            .await?;
        self.of_rule(rule).is_begun = true;
        Ok(())
    }

    fn facts(&self, rule: &str) -> Facts {
        Facts::from([
            ("bucket", self.row.name.to_string()),
            ("rule", rule.to_owned()),
            ("day", self.day().number(self.now_ms).to_string()),
        ])
    }

    /// Held with the lock that a change of the rules takes as well, it keeps true for a commit.
    fn check_rules(&self) -> Step {
        // What was last set may be in doubt.
        if self.row.is_out_of_use() {
            return Err(self.vault.inner.system.out_of_use(self.row).into());
        }
        let now = self.row.documents.lifecycle()?;
        if now.is_some_and(|now| Arc::ptr_eq(&now, &self.rules)) {
            Ok(())
        } else {
            Err(Stop::OtherRules)
        }
    }

    /// Leaves the machine to others, for as long as a step took and some.
    async fn rest(&self, begun: Instant) -> Step {
        if self.bucket.is_cut() {
            return Err(VaultError::NoSuchBucket.into());
        }
        let rest: Duration = begun.elapsed() * LIFECYCLE_REST;
        tokio::time::sleep(rest.min(LIFECYCLE_REST_MAX)).await;
        Ok(())
    }

    fn day(&self) -> crate::lifecycle::Day {
        self.vault.inner.lifecycle.day
    }
}
