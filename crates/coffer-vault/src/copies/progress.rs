//! How copies stand.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use coffer_durable::now_ms;
use coffer_replica::limits::{GAP_MIN_MS, GAPS_MAX};
use coffer_replica::{BucketState, Gap, Head, KnownHead};
use coffer_seal::BucketId;
use parking_lot::Mutex;

use super::synchronous::SyncStatus;

/// What a copy is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// It is kept up.
    Following,
    /// The last attempt failed, and it is tried again.
    Failing,
    /// It is given up until the server starts again, or the copy is removed.
    Stopped,
}

/// How a copy stands.
#[derive(Clone, Debug)]
pub struct CopyStatus {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// When it was made, in milliseconds since 1970.
    pub made_ms: i64,
    /// What it is doing.
    pub state: CopyState,
    /// Why it fails, or was given up.
    pub problem: Option<String>,
    /// How many buckets it goes on without, for they can't be opened.
    pub passed_count: usize,
    /// All that was acknowledged before this time is in it, in milliseconds since 1970; none as
    /// long as it has not been complete once.
    pub as_of_ms: Option<i64>,
    /// Whether it has ever been complete; none, where it was written before the server started and
    /// was not read since: then that is not known, nor what it was complete as of.
    pub was_complete: Option<bool>,
    /// For how many seconds it has not been known to be complete.
    pub lag_seconds: f64,
    /// How many bytes it is behind, as far as that is known.
    pub lag_bytes: u64,
    /// How many bytes were put there since the server started.
    pub put_bytes: u64,
    /// The head that was written last.
    pub head: Option<KnownHead>,
    /// How long what was can be restored, in milliseconds.
    pub keep_ms: i64,
    /// The earliest moment that can be restored, in milliseconds since 1970.
    pub from_ms: Option<i64>,
    /// Times within the window of which it has no state.
    pub gaps: Vec<Gap>,
    /// By how many milliseconds what the newest head is as of is yet to come: the clock was ahead
    /// when it was written, or is behind. 0, where it is right.
    pub ahead_ms: i64,
    /// The keystore in it, if one goes along.
    pub keystore: Option<CarriedStatus>,
    /// Of one that acknowledgements wait for.
    pub sync: Option<SyncStatus>,
}

/// How the keystore in a copy stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CarriedStatus {
    /// For whom it is sealed: recipients of age. For none: the root key opens it.
    pub recipients: Vec<String>,
    /// The generation that the copy took last, and when, in milliseconds since 1970.
    pub taken: Option<(u64, i64)>,
    /// The server's own generation.
    pub generation: u64,
    /// Levels that stay out of it: their keys are not to be exported, or more people would have to
    /// approve that than approved the copy.
    pub left_out: Vec<String>,
    /// How many erases wait for the copy to take the keystore without the keys.
    pub pending_count: usize,
}

/// Buckets that a copy goes on without.
#[derive(Default)]
pub(crate) struct Passed {
    pub(crate) count: usize,
    /// What operators are told.
    pub(crate) told: Option<String>,
    /// What a check of the copy tells.
    pub(crate) lacking: Option<String>,
}

/// What a copy's task tells.
pub(crate) struct Progress(Mutex<Told>);

struct Told {
    state: CopyState,
    problem: Option<String>,
    passed: Passed,
    as_of_ms: i64,
    /// Whether what a start before this one wrote is known.
    is_read: bool,
    /// As of when it was complete, by this process's clock.
    complete_at: Option<Instant>,
    /// Since when it is this machine that keeps it from being so.
    fails_here_since: Option<Instant>,
    put_bytes: u64,
    /// As of when it was complete for the first time.
    first_ms: i64,
    /// What the newest head says that it is as of.
    newest_ms: i64,
    gaps: Vec<Gap>,
    /// Of heads that do not open.
    damaged: Vec<Gap>,
    /// How many commits of each catalog the newest head has.
    in_head: HashMap<BucketId, u64>,
    /// The same of records, which may have come further than the head.
    in_records: HashMap<BucketId, u64>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Told {
            state: CopyState::Following,
            problem: None,
            passed: Passed::default(),
            as_of_ms: 0,
            is_read: false,
            complete_at: None,
            fails_here_since: None,
            put_bytes: 0,
            first_ms: 0,
            newest_ms: 0,
            gaps: Vec::new(),
            damaged: Vec::new(),
            in_head: HashMap::new(),
            in_records: HashMap::new(),
        }))
    }

    /// It has all that was acknowledged before these times, but for what `problem` tells.
    pub(crate) fn complete(&self, as_of_ms: i64, at: Instant, problem: Option<String>) {
        let mut told = self.0.lock();
        told.state = match problem {
            None => CopyState::Following,
            Some(_) => CopyState::Failing,
        };
        told.problem = problem;
        told.as_of_ms = as_of_ms;
        told.complete_at = Some(at);
        told.fails_here_since = None;
    }

    /// The last attempt failed: whether by what is wrong on this machine.
    pub(crate) fn fails_here(&self, is_here: bool) {
        let since = &mut self.0.lock().fails_here_since;
        *since = is_here.then(|| since.unwrap_or_else(Instant::now));
    }

    /// For how long each attempt has failed by what is wrong on this machine.
    pub(crate) fn has_failed_here(&self) -> Option<Duration> {
        let since = self.0.lock().fails_here_since;
        since.map(|since| since.elapsed())
    }

    /// It goes on without these buckets.
    pub(crate) fn passed(&self, passed: Passed) {
        self.0.lock().passed = passed;
    }

    /// What a check of the copy tells of buckets that it goes on without.
    pub(crate) fn lacking(&self) -> Option<String> {
        self.0.lock().passed.lacking.clone()
    }

    /// As of when it is known to be complete by what a start before this one wrote.
    pub(crate) fn begun(&self, as_of_ms: i64) {
        let mut told = self.0.lock();
        (told.as_of_ms, told.is_read) = (as_of_ms, true);
    }

    /// What this head, the newest, says of its window and of catalogs.
    pub(crate) fn window(&self, head: &Head) {
        let of =
            |(id, state): (&String, &BucketState)| Some((BucketId::from_hex(id)?, state.commits));
        let in_head: HashMap<BucketId, u64> = head.buckets.iter().filter_map(of).collect();
        let mut told = self.0.lock();
        (told.first_ms, told.newest_ms) = (head.first_ms, head.as_of_ms);
        told.gaps.clone_from(&head.gaps);
        told.head_has(in_head);
    }

    /// A record has so many commits of these catalogs.
    pub(crate) fn recorded(&self, commits: impl Iterator<Item = (BucketId, u64)>) {
        let mut told = self.0.lock();
        for (id, commits) in commits {
            let known = told.in_records.entry(id).or_default();
            *known = commits.max(*known);
        }
    }

    /// Whether the copy has so many commits of each of these catalogs, for sure.
    pub(crate) fn has_catalogs(&self, mut wanted: impl Iterator<Item = (BucketId, u64)>) -> bool {
        let told = self.0.lock();
        wanted.all(|(id, commits)| {
            let has = [told.in_head.get(&id), told.in_records.get(&id)];
            has.into_iter().flatten().any(|has| *has >= commits)
        })
    }

    /// Heads do not open, which leaves no state of this time.
    pub(crate) fn damaged(&self, gap: Gap) {
        let damaged = &mut self.0.lock().damaged;
        damaged.retain(|known| known.to_ms != gap.to_ms);
        damaged.push(gap);
        damaged.sort_by_key(|gap| gap.to_ms);
        if damaged.len() > GAPS_MAX {
            damaged.remove(0);
        }
    }

    pub(crate) fn failed(&self, state: CopyState, problem: String) {
        let mut told = self.0.lock();
        told.state = state;
        told.problem = Some(problem);
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.0.lock().state == CopyState::Stopped
    }

    pub(crate) fn put(&self, bytes: u64) {
        self.0.lock().put_bytes += bytes;
    }

    /// `put_ms` is as of when the copy was complete by what was noted here.
    pub(crate) fn fill(&self, status: &mut CopyStatus, put_ms: i64) {
        let told = self.0.lock();
        status.state = told.state;
        status.passed_count = told.passed.count;
        status.problem = told.problem.as_ref().or(told.passed.told.as_ref()).cloned();
        status.put_bytes = told.put_bytes;
        status.as_of_ms = (told.as_of_ms > 0).then_some(told.as_of_ms);
        if told.is_read || told.as_of_ms > 0 {
            status.was_complete = Some(told.as_of_ms > 0);
        }
        status.ahead_ms = ahead_ms(told.newest_ms);
        let begins_ms = now_ms() - status.keep_ms;
        status.from_ms = (told.first_ms > 0).then_some(told.first_ms.max(begins_ms));
        let gaps = told.gaps.iter().chain(&told.damaged);
        let gaps = gaps.filter(|gap| gap.to_ms > begins_ms);
        status.gaps = gaps.copied().collect();
        status.gaps.sort_by_key(|gap| gap.from_ms);
        let noted_ms = (put_ms > 0 && !told.is_read).then_some(put_ms);
        let since_ms = status.as_of_ms.or(noted_ms).unwrap_or(status.made_ms);
        status.lag_seconds = match told.complete_at {
            Some(at) => at.elapsed().as_secs_f64(),
            None => (now_ms() - since_ms).max(0) as f64 / 1_000.0,
        };
    }
}

/// By how many milliseconds a moment of a copy is yet to come, if by more than clocks may differ.
pub(crate) fn ahead_ms(as_of_ms: i64) -> i64 {
    let ahead_ms = as_of_ms.saturating_sub(now_ms());
    if ahead_ms > GAP_MIN_MS { ahead_ms } else { 0 }
}

impl Told {
    /// Of what is gone, records tell no more.
    fn head_has(&mut self, in_head: HashMap<BucketId, u64>) {
        self.in_records.retain(|id, _| in_head.contains_key(id));
        self.in_head = in_head;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: BucketId = BucketId([1; 16]);
    const TWO: BucketId = BucketId([2; 16]);

    #[test]
    fn what_fails_here_is_counted_from_the_first_time_until_it_does_not() {
        let progress = Progress::new();
        assert!(progress.has_failed_here().is_none());
        progress.fails_here(true);
        let first = progress.0.lock().fails_here_since;
        progress.fails_here(true);
        assert!(first.is_some() && first == progress.0.lock().fails_here_since);
        progress.fails_here(false);
        assert!(progress.has_failed_here().is_none(), "it is the store");
        progress.fails_here(true);
        progress.complete(1, Instant::now(), None);
        assert!(progress.has_failed_here().is_none());
    }

    #[test]
    fn a_copy_has_of_catalogs_what_its_head_or_a_record_has() {
        let progress = Progress::new();
        let has = |wanted: &[(BucketId, u64)]| progress.has_catalogs(wanted.iter().copied());
        let head = |has: &[(BucketId, u64)]| {
            let in_head = has.iter().copied().collect();
            progress.0.lock().head_has(in_head);
        };
        assert!(has(&[]) && !has(&[(ONE, 1)]), "no head yet");
        head(&[(ONE, 5), (TWO, 7)]);
        assert!(has(&[(ONE, 5), (TWO, 6)]));
        assert!(!has(&[(ONE, 6)]) && !has(&[(ONE, 5), (TWO, 8)]));
        progress.recorded([(ONE, 6)].into_iter());
        // A head that was begun before the record takes nothing of it back.
        head(&[(ONE, 5), (TWO, 8)]);
        assert!(has(&[(ONE, 6), (TWO, 8)]));
        // What is gone is in no copy.
        head(&[(TWO, 8)]);
        assert!(!has(&[(ONE, 1)]));
    }
}
