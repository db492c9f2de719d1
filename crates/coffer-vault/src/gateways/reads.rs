//! The side of a gateway that follows: what it serves, and whether it may answer reads by that.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use coffer_seal::{BucketId, random_bytes};
use parking_lot::Mutex;

use super::question::{ReadAnswer, ReadQuestion, Recall};
use super::standing::StandingAnswers;
use crate::cutoff::{ConnectionCutoff, Connections, Holder};
use crate::fence::ServingRight;
use crate::limits::READS_MARGIN;

/// How far a state has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub(crate) system_commits: u64,
    pub(crate) keystore_generation: u64,
    pub(crate) buckets: HashMap<BucketId, u64>,
}

impl Position {
    /// Whether it has all of what is in no bucket.
    fn has_system_of(&self, answer: &ReadAnswer) -> bool {
        self.system_commits >= answer.system_commits
            && self.keystore_generation >= answer.keystore_generation
    }

    /// Whether it has all of a bucket as well.
    fn has(&self, answer: &ReadAnswer, bucket: Option<BucketId>) -> bool {
        let has_bucket = |id: BucketId| {
            let (here, there) = (self.buckets.get(&id), answer.commits_of(id));
            here.zip(there).is_some_and(|(here, there)| *here >= there)
        };
        self.has_system_of(answer) && bucket.is_none_or(has_bucket)
    }
}

/// When a question was asked, by the clock that runs on while a machine sleeps; and how many states
/// had been served by then.
#[derive(Clone, Copy, Debug)]
pub struct AskedAt(Duration, u64);

/// What is to be done so that reads may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// Nothing.
    Settled,
    /// It is to be asked again.
    SoonSettled,
    /// So it is, and another state is needed.
    Behind,
}

/// Whether a gateway that follows may answer reads. Clones are the same.
#[derive(Clone)]
pub struct FollowerReads(Arc<Inner>);

struct Inner {
    follower: String,
    state: Mutex<State>,
    /// States that are still in use, in whose place others have come.
    former_count: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    served: Option<Arc<Position>>,
    /// How often another state was served.
    turns: u64,
    /// Nothing is answered by what was taken away up to this.
    settled: Option<Recall>,
    right: ServingRight,
    /// What needs no question.
    standing: StandingAnswers,
    /// The connections by which answers are under way.
    answering: HashMap<u64, Option<ConnectionCutoff>>,
    next: u64,
    /// Of each bucket, the connections by which it was read in: what was opened may still lie in
    /// their buffers.
    read_by: HashMap<BucketId, Connections>,
    /// Those of buckets that are gone: they go on, until it is heard that one was taken away.
    gone: Vec<Connections>,
    /// Those of them that were cut, until they have ended.
    ending: Vec<Connections>,
}

impl State {
    /// Ends all that is being answered, and the right to it, and the connections by which buckets
    /// were read in that are gone, or of which the key is.
    fn cut(&mut self) {
        std::mem::take(&mut self.right).end();
        self.standing.clear();
        for line in self.answering.drain().filter_map(|(_, line)| line) {
            line.cut();
        }
        self.gone.iter().for_each(Connections::cut);
        self.ending.append(&mut self.gone);
    }

    /// Notes the connections by which buckets were read in that this one does not have. Most were
    /// empty when they were deleted, and what else goes by the same connections is not theirs.
    fn note_gone(&mut self, position: &Position) {
        let is_gone = |id: &BucketId, _: &mut Connections| !position.buckets.contains_key(id);
        let gone = self.read_by.extract_if(is_gone);
        self.gone.extend(gone.map(|(_, connections)| connections));
        self.gone.retain(|connections| connections.count() > 0);
    }

    fn has_ending(&mut self) -> bool {
        self.ending.retain(|connections| connections.count() > 0);
        !self.ending.is_empty()
    }
}

/// That one read may be answered here, for as long as it is held.
pub struct ReadLease {
    right: ServingRight,
    reads: FollowerReads,
    /// How many states had been served when it was given.
    turns: u64,
    bucket: Option<BucketId>,
    /// Of an answer that goes out.
    number: Option<u64>,
}

impl ReadLease {
    /// Whether it still may.
    pub fn holds(&self) -> bool {
        self.right.holds()
    }

    /// The answer is there. Whether it may go out, by the connection of the request that is being
    /// served: that is cut when it may not go on. Before that the request can be forwarded instead.
    pub fn begin(&mut self) -> bool {
        let mut state = self.reads.0.state.lock();
        // What was read in another state may not be shown yet.
        if state.turns != self.turns || !self.right.holds() {
            return false;
        }
        if let Some(id) = self.bucket {
            let read_by = state.read_by.entry(id);
            let read_by = read_by.or_insert_with(|| Connections::new(Holder::Bucket));
            // There may be as many of a bucket as come.
            let _ = read_by.note();
        }
        let number = state.next;
        state.next += 1;
        state.answering.insert(number, ConnectionCutoff::current());
        self.number = Some(number);
        true
    }
}

impl Drop for ReadLease {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.reads.0.state.lock().answering.remove(&number);
        }
    }
}

impl Default for FollowerReads {
    fn default() -> Self {
        Self(Arc::new(Inner {
            follower: hex::encode(random_bytes::<16>()),
            state: Mutex::default(),
            former_count: Arc::default(),
        }))
    }
}

impl FollowerReads {
    /// Where states are counted in whose place others have come, until nothing of them is in use.
    pub fn former_count(&self) -> Arc<AtomicUsize> {
        self.0.former_count.clone()
    }

    /// Another state is served soon: what is asked about this one counts for nothing any more.
    pub fn turn_away(&self) {
        let mut state = self.0.state.lock();
        state.served = None;
        state.standing.clear();
        state.turns += 1;
    }

    /// Another state is served from now on, and the one before was counted as a former one.
    pub fn turn_to(&self, position: Option<Position>) {
        let mut state = self.0.state.lock();
        if let Some(position) = &position {
            state.note_gone(position);
        }
        state.served = position.map(Arc::new);
        // What this one has may not have been shown to anyone.
        state.standing.clear();
        state.turns += 1;
    }

    /// What is to be asked now, about these buckets.
    pub fn question(&self, buckets: impl IntoIterator<Item = BucketId>) -> (ReadQuestion, AskedAt) {
        // Before it is asked: it may have been answered at once.
        let at = ServingRight::now();
        let mut state = self.0.state.lock();
        let asked = AskedAt(at, state.turns);
        let mut all = state.standing.take_used();
        all.extend(buckets.into_iter().map(Some));
        let question = ReadQuestion {
            follower: self.0.follower.clone(),
            settled: state.settled.clone(),
            buckets: all.iter().flatten().map(ToString::to_string).collect(),
        };
        (question, asked)
    }

    /// Takes an answer.
    pub fn take(&self, answer: &Arc<ReadAnswer>, AskedAt(asked, turns): AskedAt) -> Settling {
        let mut state = self.0.state.lock();
        if state.settled.as_ref() == Some(&answer.recall) {
            let lasts = Duration::from_millis(answer.lasts_ms);
            if lasts > READS_MARGIN {
                state.right.extend(asked + lasts - READS_MARGIN);
            }
            if state.turns == turns {
                state.standing.take(answer, asked, ServingRight::now());
            }
            return Settling::Settled;
        }
        state.cut();
        // Of what has left its place all must be gone, for it may have what was taken away.
        let has_former = self.0.former_count.load(Ordering::SeqCst) > 0 || state.has_ending();
        let served = state.served.as_ref();
        let is_new = served.is_some_and(|served| served.has_system_of(answer));
        state.settled = (is_new && !has_former).then(|| answer.recall.clone());
        if is_new {
            Settling::SoonSettled
        } else {
            Settling::Behind
        }
    }

    /// Whether a read that came before this was asked may be answered by what is served, and was so
    /// then: one in this bucket, or in none.
    pub fn lease(
        &self,
        answer: &ReadAnswer,
        asked: AskedAt,
        bucket: Option<BucketId>,
    ) -> Option<ReadLease> {
        self.lease_of(&self.0.state.lock(), answer, asked.1, bucket)
    }

    /// Whether a read that has come by now may be answered by what stands of an earlier answer, as
    /// [`FollowerReads::lease`] says.
    pub fn lease_standing(&self, bucket: Option<BucketId>) -> Option<ReadLease> {
        let mut state = self.0.state.lock();
        let answer = state.standing.of(bucket, ServingRight::now())?;
        self.lease_of(&state, &answer, state.turns, bucket)
    }

    fn lease_of(
        &self,
        state: &State,
        answer: &ReadAnswer,
        asked_turns: u64,
        bucket: Option<BucketId>,
    ) -> Option<ReadLease> {
        // What another state has may not be shown yet.
        if state.turns != asked_turns {
            return None;
        }
        let is_settled = state.settled.as_ref() == Some(&answer.recall);
        let served = state.served.as_ref()?;
        if !(is_settled && answer.is_quiet && state.right.holds() && served.has(answer, bucket)) {
            return None;
        }
        Some(ReadLease {
            right: state.right.clone(),
            reads: self.clone(),
            turns: state.turns,
            bucket,
            number: None,
        })
    }

    /// Whether any answer stands.
    pub fn are_standing(&self) -> bool {
        self.0.state.lock().standing.are_any(ServingRight::now())
    }

    /// Whether reads were answered by such since the last question.
    pub fn are_being_used(&self) -> bool {
        self.0.state.lock().standing.are_used()
    }

    /// Ends what is being answered when that may not be any more. To be called often.
    pub fn tend(&self) {
        let mut state = self.0.state.lock();
        let has_any = !(state.answering.is_empty() && state.gone.is_empty());
        if has_any && !state.right.holds() {
            state.cut();
        }
    }
}

#[cfg(test)]
mod tests;
