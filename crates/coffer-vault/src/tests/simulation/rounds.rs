//! Heads, put together beside records. This stands for the rounds of a served vault
//! (`replica::round`, `replica::task`): what it asks of the log and of records, and in which order,
//! is theirs.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use coffer_replica::{BucketState, CopyWriter, Covers, Head};
use coffer_seal::BucketId;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::catalog::KEYS;
use super::owner::Owner;
use crate::copies::CopyState;
use crate::error::Result;
use crate::limits::{
    COPY_LAST_ROUND, COPY_LOOKS_EVERY, COPY_PROBES_EVERY, COPY_SWEEPS_AT_MOST_EVERY,
    COPY_SYNC_RETRY_MAX,
};
use crate::replica::is_passing;
use crate::replica::round::covers::Recorded;
use crate::replica::round::fencing::is_of_another;
use crate::replica::round::records::InHead;

/// The file that stands for `system.db`.
pub(super) const SYSTEM: &str = "system.db";

/// What puts heads together.
pub(super) struct Rounds {
    owner: Arc<Owner>,
    writer: CopyWriter,
    /// Chains that are whole and that no head has yet, and those that are not.
    chains: BTreeMap<BucketId, BucketState>,
    unfinished: BTreeMap<BucketId, Option<BucketState>>,
    /// Which commits of `system.db` were put.
    system_put: Option<u64>,
    recording: Option<(CancellationToken, JoinHandle<()>)>,
    keep_ms: i64,
    wants_head: bool,
    seen: Option<Instant>,
    swept: Option<Instant>,
}

impl Rounds {
    pub(super) fn new(owner: Arc<Owner>, writer: CopyWriter, keep_ms: i64) -> Self {
        Self {
            owner,
            writer,
            chains: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            system_put: None,
            recording: None,
            keep_ms,
            wants_head: false,
            seen: None,
            swept: None,
        }
    }

    /// Goes on until it is told to stop, or must not.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut is_up = true;
        while !stop.is_cancelled() {
            let done = {
                let mut work = pin!(self.go_on());
                tokio::select! {
                    biased;
                    done = &mut work => Some(done),
                    () = stop.cancelled() => timeout(COPY_LAST_ROUND, work).await.ok(),
                }
            };
            let Some(done) = done else {
                return self.owner.synchronous.give_up();
            };
            self.owner.records.round_ended();
            is_up = done.is_ok();
            let wait = match done {
                Ok(()) => COPY_LOOKS_EVERY,
                Err(error) if is_passing(&error) => COPY_SYNC_RETRY_MAX,
                Err(error) => {
                    if is_of_another(&error) {
                        self.owner.synchronous.end_right();
                    }
                    self.owner
                        .progress
                        .failed(CopyState::Stopped, error.to_string());
                    self.owner.synchronous.give_up();
                    self.end_records().await;
                    return stop.cancelled().await;
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = sleep(wait) => {}
                () = Self::one_waits(&self.owner, self.recording.is_some()), if is_up => {}
            }
        }
        self.end_records().await;
        if is_up {
            let _ = timeout(COPY_LAST_ROUND, self.go_on()).await;
        }
        self.owner.synchronous.give_up();
    }

    async fn one_waits(owner: &Owner, is_recording: bool) {
        if is_recording {
            owner.records.head_wanted().await;
        } else {
            owner.synchronous.one_waits().await;
        }
    }

    async fn end_records(&mut self) {
        self.owner.records.want_head();
        if let Some((stop, mut task)) = self.recording.take() {
            stop.cancel();
            if timeout(COPY_LAST_ROUND, &mut task).await.is_err() {
                task.abort();
                let _ = task.await;
            }
        }
    }

    async fn go_on(&mut self) -> Result<()> {
        let is_due =
            |last: Option<Instant>, every: Duration| last.is_none_or(|last| last.elapsed() > every);
        if is_due(self.seen, COPY_PROBES_EVERY) {
            if !self.writer.check_end().await? {
                self.wants_head = true;
            }
            self.seen = Some(Instant::now());
        }
        let began_ms = self.owner.host.wall_ms();
        self.owner.records.check()?;
        if !(self.owner.records.is_head_due() || self.wants_head) {
            return Ok(());
        }
        // Before anything is read.
        let covers = self.owner.synchronous.asked();
        self.put(began_ms).await?;
        self.owner.synchronous.reach(covers)?;
        if self.recording.is_none() && self.owner.records.in_head().is_some() {
            self.recording = Some(self.owner.begin_records(self.writer.records()));
        }
        if is_due(self.swept, COPY_SWEEPS_AT_MOST_EVERY) {
            let horizon_ms = self.owner.host.wall_ms() - self.keep_ms;
            let until = std::time::Instant::now() + Duration::from_secs(3_600);
            self.writer
                .sweep(horizon_ms, &HashSet::new(), until)
                .await?;
            self.swept = Some(Instant::now());
        }
        Ok(())
    }

    /// Puts what is new, and the head that names it.
    async fn put(&mut self, began_ms: i64) -> Result<()> {
        let recorded = Recorded::now(self.writer.known().number, Some(&self.owner.records));
        let buckets: Vec<BucketId> = self.owner.held.catalogs.lock().keys().copied().collect();
        for bucket in &buckets {
            self.put_bucket(*bucket).await?;
        }
        for bucket in &buckets {
            if recorded.has_more(*bucket, self.commits_of(*bucket)) {
                self.put_bucket(*bucket).await?;
            }
        }
        let mut next = self.writer.head().clone();
        let has = buckets.iter().map(|id| (*id, self.commits_of(*id)));
        if let Some(number) = recorded.covered_by(has) {
            let files = next.covers.map_or(0, |covers| covers.files);
            next.covers = Some(Covers { number, files });
        }
        for (id, chain) in &self.chains {
            next.buckets.insert(id.to_string(), chain.clone());
        }
        let system_commits = self.put_system(&mut next).await?;
        let head = self.writer.head();
        let is_same = head.buckets == next.buckets && head.files == next.files;
        if self.wants_head || head.as_of_ms == 0 || !is_same {
            (next.as_of_ms, next.after_ms) = (began_ms, self.owner.records.complete_ms());
            next.keep_ms = self.keep_ms;
            if let Err(error) = self.writer.commit(next).await {
                self.system_put = None;
                return Err(error.into());
            }
            let in_head = InHead {
                system_commits,
                keystore_generation: 1,
            };
            self.owner.records.head_written(self.writer.head(), in_head);
            self.chains.clear();
            self.wants_head = false;
        }
        self.owner.records.complete(began_ms);
        Ok(())
    }

    /// How many commits of a catalog the next head has.
    fn commits_of(&self, id: BucketId) -> u64 {
        let of_head = || self.writer.head().buckets.get(&id.to_string());
        let state = self.chains.get(&id).or_else(of_head);
        state.map_or(0, |state| state.commits)
    }

    async fn put_bucket(&mut self, id: BucketId) -> Result<()> {
        let owner = self.owner.clone();
        let state = self.writer.head().buckets.get(&id.to_string()).cloned();
        let commits = owner.held.catalogs.lock()[&id].commits;
        if state.as_ref().is_some_and(|state| state.commits == commits) {
            return Ok(());
        }
        let unfinished = self.unfinished.remove(&id);
        let mut chain = unfinished.unwrap_or_else(|| self.chains.get(&id).cloned().or(state));
        loop {
            let most = 1 + commits as usize % (KEYS + 1);
            let settle = |has_it: bool| {
                if let Some(catalog) = owner.held.catalogs.lock().get_mut(&id) {
                    if has_it {
                        catalog.head_has_it();
                    } else {
                        catalog.head_lacks_it();
                    }
                }
            };
            let taken = owner
                .held
                .catalogs
                .lock()
                .get_mut(&id)
                .map(|all| all.for_head(most));
            let Some(taken) = taken else { break };
            if taken.is_base {
                chain = None;
            }
            let is_last = taken.segment.is_last;
            let put = self
                .writer
                .put_segment(id, chain.as_ref(), taken.segment)
                .await;
            settle(put.is_ok());
            match put {
                Ok(state) => chain = Some(state),
                Err(error) => {
                    self.unfinished.insert(id, chain);
                    return Err(error.into());
                }
            }
            if is_last {
                break;
            }
        }
        self.chains.extend(chain.map(|chain| (id, chain)));
        Ok(())
    }

    /// Puts what stands for `system.db`, if it was changed. How many commits it has.
    async fn put_system(&mut self, next: &mut Head) -> Result<u64> {
        let (commits, says) = *self.owner.held.system.lock();
        if self.system_put != Some(commits) {
            let bytes = [commits.to_be_bytes(), says.to_be_bytes()].concat();
            let piece = self.writer.put_piece(bytes).await?;
            next.files.insert(SYSTEM.to_owned(), vec![piece]);
            self.system_put = Some(commits);
        }
        Ok(commits)
    }
}
