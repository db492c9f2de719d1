//! What an engine's log is known to hold, for who forms the next record, and what rounds and
//! records tell each other.
//!
//! A round puts a head together while records are written, and takes as long as it takes. What
//! keeps both right is that all that is noted here only rises: how many commits of each catalog,
//! and how much of each file, the log has. A record begins there, or before.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_replica::{Head, RecordedFiles};
use coffer_seal::BucketId;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{Result, VaultError};
use crate::limits::{
    ENGINE_HEADS_EVERY, ENGINE_RECORDS_BOUND, ENGINE_RECORDS_MAX, ENGINE_RECORDS_MAX_BYTES,
};

/// What of the server the newest head has, that no record can add to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InHead {
    pub(crate) system_commits: u64,
    pub(crate) keystore_generation: u64,
}

/// What rounds and records share.
pub(crate) struct Records {
    state: Mutex<State>,
    /// Held while blobs are taken that are new, until they are there.
    pub(super) blobs: Arc<tokio::sync::Mutex<()>>,
    is_head_wanted: AtomicBool,
    wakes: Notify,
    /// How many rounds have ended.
    rounds: watch::Sender<u64>,
    /// What ended the records.
    failure: Mutex<Option<VaultError>>,
}

#[derive(Default)]
struct State {
    /// None: no head of this start has all yet.
    in_head: Option<InHead>,
    commits: HashMap<BucketId, u64>,
    /// Buckets that can't be opened, and that rounds go on without.
    passed: HashSet<BucketId>,
    /// How long files are, by their names in heads.
    files: BTreeMap<String, u64>,
    files_number: u64,
    /// Before this time all that was acknowledged is in the log, in milliseconds since 1970.
    complete_ms: i64,
    /// What keeps the log from being whole.
    problem: Option<String>,
    /// Since the newest head.
    record_count: u64,
    record_bytes: u64,
    /// The records that no head has in it for sure, in their order: their numbers and lengths.
    uncovered: VecDeque<(u64, u64)>,
    head_at: Option<Instant>,
}

/// How far files have come that only grow.
#[derive(Clone, Default)]
pub(crate) struct FilesKnown {
    pub(crate) number: u64,
    pub(crate) bytes: BTreeMap<String, u64>,
}

impl Default for Records {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            blobs: Arc::default(),
            is_head_wanted: AtomicBool::new(false),
            wakes: Notify::new(),
            rounds: watch::Sender::new(0),
            failure: Mutex::default(),
        }
    }
}

/// What records add to, of all that a head names.
fn grows(name: &str) -> bool {
    name.starts_with("audit/")
}

impl Records {
    /// What no record can add to; none before the first head.
    pub(crate) fn in_head(&self) -> Option<InHead> {
        self.state.lock().in_head
    }

    /// How many commits of a catalog the log has; none, where it has nothing of it.
    pub(crate) fn commits_of(&self, id: BucketId) -> Option<u64> {
        self.state.lock().commits.get(&id).copied()
    }

    /// Rounds go on without this bucket.
    pub(super) fn pass(&self, id: BucketId) {
        self.state.lock().passed.insert(id);
    }

    /// They have it again.
    pub(super) fn pass_no_more(&self, id: BucketId) {
        self.state.lock().passed.remove(&id);
    }

    /// Whether they go on without it.
    pub(super) fn is_passed(&self, id: BucketId) -> bool {
        self.state.lock().passed.contains(&id)
    }

    /// How far catalogs have come in the log.
    pub(crate) fn commits(&self) -> HashMap<BucketId, u64> {
        self.state.lock().commits.clone()
    }

    pub(crate) fn files(&self) -> FilesKnown {
        let state = self.state.lock();
        FilesKnown {
            number: state.files_number,
            bytes: state.files.clone(),
        }
    }

    pub(crate) fn complete_ms(&self) -> i64 {
        self.state.lock().complete_ms
    }

    pub(crate) fn complete(&self, at_ms: i64) {
        let mut state = self.state.lock();
        state.complete_ms = state.complete_ms.max(at_ms);
    }

    pub(crate) fn problem(&self) -> Option<String> {
        self.state.lock().problem.clone()
    }

    pub(crate) fn tell_problem(&self, problem: Option<String>) {
        self.state.lock().problem = problem;
    }

    /// How many commits of each catalog a log has that was taken over, those in its records among
    /// them: no head covers records of a catalog that it has less of.
    pub(crate) fn taken_over(&self, commits: HashMap<BucketId, u64>) {
        self.state.lock().commits = commits;
    }

    /// A head was written. Records may have come further than it.
    pub(crate) fn head_written(&self, head: &Head, in_head: InHead) {
        let mut state = self.state.lock();
        let known = std::mem::take(&mut state.commits);
        for (id, of) in &head.buckets {
            if let Some(id) = BucketId::from_hex(id) {
                let recorded = known.get(&id).copied().unwrap_or_default();
                state.commits.insert(id, recorded.max(of.commits));
            }
        }
        let files = head.files.iter().filter(|(name, _)| grows(name));
        let files = files.map(|(name, pieces)| {
            let bytes = pieces.iter().map(|piece| piece.bytes).sum();
            (name.clone(), bytes)
        });
        let number = head.covers.map_or(0, |covers| covers.files);
        if number >= state.files_number {
            (state.files_number, state.files) = (number, files.collect());
        }
        state.in_head = Some(in_head);
        (state.record_count, state.record_bytes) = (0, 0);
        let covered = head.covers.map_or(0, |covers| covers.number);
        state.uncovered.retain(|(number, _)| *number > covered);
        state.head_at = Some(Instant::now());
    }

    /// Whether so much is in no head that one has to come before the next record: who follows, and
    /// who takes over, reads all of it.
    pub(crate) fn are_full(&self) -> bool {
        let state = self.state.lock();
        let bytes: u64 = state.uncovered.iter().map(|(_, bytes)| bytes).sum();
        state.uncovered.len() as u64 >= ENGINE_RECORDS_BOUND * ENGINE_RECORDS_MAX
            || bytes >= ENGINE_RECORDS_BOUND * ENGINE_RECORDS_MAX_BYTES
    }

    /// A record was written, with this number, and so long.
    pub(crate) fn written(
        &self,
        (number, length_bytes): (u64, u64),
        commits: impl Iterator<Item = (BucketId, u64)>,
        files: Option<&RecordedFiles>,
    ) {
        let mut state = self.state.lock();
        for (id, commits) in commits {
            // One that is gone meanwhile is in no head any more.
            if let Some(known) = state.commits.get_mut(&id) {
                *known = commits.max(*known);
            }
        }
        if let Some(files) = files.filter(|files| files.number > state.files_number) {
            state.files_number = files.number;
            for (name, from_bytes, bytes) in &files.parts {
                let until_bytes = from_bytes.unwrap_or(0) + bytes.len() as u64;
                state.files.insert(name.clone(), until_bytes);
            }
        }
        state.record_count += 1;
        state.record_bytes += length_bytes;
        state.uncovered.push_back((number, length_bytes));
        let is_much = state.record_count >= ENGINE_RECORDS_MAX
            || state.record_bytes >= ENGINE_RECORDS_MAX_BYTES;
        drop(state);
        if is_much {
            self.want_head();
        }
    }

    /// Whether a round is to be done now.
    pub(crate) fn is_head_due(&self) -> bool {
        let is_wanted = self.is_head_wanted.swap(false, Ordering::SeqCst);
        let head_at = self.state.lock().head_at;
        is_wanted || head_at.is_none_or(|at| at.elapsed() >= ENGINE_HEADS_EVERY)
    }

    /// Has a round be done soon.
    pub(crate) fn want_head(&self) {
        self.is_head_wanted.store(true, Ordering::SeqCst);
        self.wakes.notify_one();
    }

    /// Has a round be done, and waits until one has ended.
    pub(crate) async fn head(&self, stop: &CancellationToken) {
        let mut rounds = self.rounds.subscribe();
        self.want_head();
        tokio::select! {
            biased;
            _ = rounds.changed() => {}
            () = stop.cancelled() => {}
        }
    }

    /// Returns when a round is to be done.
    pub(crate) async fn head_wanted(&self) {
        while !self.is_head_wanted.load(Ordering::SeqCst) {
            self.wakes.notified().await;
        }
    }

    pub(crate) fn round_ended(&self) {
        self.rounds.send_modify(|count| *count += 1);
    }

    /// No more records.
    pub(crate) fn fail(&self, error: VaultError) {
        *self.failure.lock() = Some(error);
        self.want_head();
    }

    /// What ended the records, if anything did.
    pub(crate) fn check(&self) -> Result<()> {
        self.failure.lock().take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use coffer_replica::Covers;

    use super::*;

    fn write(records: &Records, number: u64, length_bytes: u64) {
        records.written((number, length_bytes), std::iter::empty(), None);
    }

    fn head(records: &Records, number: u64) {
        let head = Head {
            covers: Some(Covers { number, files: 0 }),
            ..Head::default()
        };
        let in_head = InHead {
            system_commits: 1,
            keystore_generation: 1,
        };
        records.head_written(&head, in_head);
    }

    #[test]
    fn records_that_no_head_has_are_bounded_by_their_number_and_their_length() {
        let records = Records::default();
        head(&records, 0);
        let most = ENGINE_RECORDS_BOUND * ENGINE_RECORDS_MAX;
        for number in 1..=most {
            assert!(!records.are_full(), "{number}");
            write(&records, number, 1);
        }
        assert!(records.are_full());
        // A head that has none of them in it does not help; one that has the first does.
        head(&records, 0);
        assert!(records.are_full());
        head(&records, 1);
        assert!(!records.are_full());
        write(&records, most + 2, 1);
        assert!(records.are_full());
        head(&records, most + 2);
        write(
            &records,
            most + 4,
            ENGINE_RECORDS_BOUND * ENGINE_RECORDS_MAX_BYTES,
        );
        assert!(records.are_full());
        head(&records, most + 4);
        assert!(!records.are_full());
    }

    #[test]
    fn a_head_is_asked_for_long_before_that() {
        let records = Records::default();
        head(&records, 0);
        assert!(!records.is_head_due());
        for number in 1..=ENGINE_RECORDS_MAX {
            assert!(!records.is_head_due(), "{number}");
            write(&records, number, 1);
        }
        assert!(records.is_head_due() && !records.are_full());
        head(&records, 0);
        write(&records, ENGINE_RECORDS_MAX + 1, ENGINE_RECORDS_MAX_BYTES);
        assert!(records.is_head_due() && !records.are_full());
    }
}
