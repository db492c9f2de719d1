//! How copies stand.

use std::time::Instant;

use coffer_durable::now_ms;
use coffer_replica::limits::GAPS_MAX;
use coffer_replica::{Gap, Head, KnownHead};
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
    /// All that was acknowledged before this time is in it, in milliseconds since 1970; none as
    /// long as it has not been complete once.
    pub as_of_ms: Option<i64>,
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

/// What a copy's task tells.
pub(crate) struct Progress(Mutex<Told>);

struct Told {
    state: CopyState,
    problem: Option<String>,
    as_of_ms: i64,
    /// As of when it was complete, by this process's clock.
    complete_at: Option<Instant>,
    put_bytes: u64,
    /// As of when it was complete for the first time.
    first_ms: i64,
    gaps: Vec<Gap>,
    /// Of heads that do not open.
    damaged: Vec<Gap>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Told {
            state: CopyState::Following,
            problem: None,
            as_of_ms: 0,
            complete_at: None,
            put_bytes: 0,
            first_ms: 0,
            gaps: Vec::new(),
            damaged: Vec::new(),
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
    }

    /// As of when it is known to be complete by what a start before this one wrote.
    pub(crate) fn begun(&self, as_of_ms: i64) {
        self.0.lock().as_of_ms = as_of_ms;
    }

    /// What this head says of its window.
    pub(crate) fn window(&self, head: &Head) {
        let mut told = self.0.lock();
        told.first_ms = head.first_ms;
        told.gaps.clone_from(&head.gaps);
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

    pub(crate) fn fill(&self, status: &mut CopyStatus) {
        let told = self.0.lock();
        status.state = told.state;
        status.problem.clone_from(&told.problem);
        status.put_bytes = told.put_bytes;
        status.as_of_ms = (told.as_of_ms > 0).then_some(told.as_of_ms);
        let begins_ms = now_ms() - status.keep_ms;
        status.from_ms = (told.first_ms > 0).then_some(told.first_ms.max(begins_ms));
        let gaps = told.gaps.iter().chain(&told.damaged);
        let gaps = gaps.filter(|gap| gap.to_ms > begins_ms);
        status.gaps = gaps.copied().collect();
        status.gaps.sort_by_key(|gap| gap.from_ms);
        let since_ms = status.as_of_ms.unwrap_or(status.made_ms);
        status.lag_seconds = match told.complete_at {
            Some(at) => at.elapsed().as_secs_f64(),
            None => (now_ms() - since_ms).max(0) as f64 / 1_000.0,
        };
    }
}
