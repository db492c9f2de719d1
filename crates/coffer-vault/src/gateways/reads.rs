//! The side of a gateway that follows: what it serves, and whether it may answer reads by that.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use coffer_seal::{BucketId, random_bytes};
use parking_lot::Mutex;

use super::question::{ReadAnswer, ReadQuestion, Recall};
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

/// When a question was asked, by the clock that runs on while a machine sleeps.
#[derive(Clone, Copy, Debug)]
pub struct AskedAt(Duration);

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
    /// Nothing is answered by what was taken away up to this.
    settled: Option<Recall>,
    right: ServingRight,
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
    number: u64,
}

impl ReadLease {
    /// Whether it still may.
    pub fn holds(&self) -> bool {
        self.right.holds()
    }
}

impl Drop for ReadLease {
    fn drop(&mut self) {
        self.reads.0.state.lock().answering.remove(&self.number);
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

    /// Another state is served from now on, and the one before was counted as a former one.
    pub fn turn_to(&self, position: Option<Position>) {
        let mut state = self.0.state.lock();
        if let Some(position) = &position {
            state.note_gone(position);
        }
        state.served = position.map(Arc::new);
    }

    /// What is to be asked now, about these buckets.
    pub fn question(&self, buckets: impl IntoIterator<Item = BucketId>) -> (ReadQuestion, AskedAt) {
        // Before it is asked: it may have been answered at once.
        let asked = AskedAt(ServingRight::now());
        let question = ReadQuestion {
            follower: self.0.follower.clone(),
            settled: self.0.state.lock().settled.clone(),
            buckets: buckets.into_iter().map(|id| id.to_string()).collect(),
        };
        (question, asked)
    }

    /// Takes an answer.
    pub fn take(&self, answer: &ReadAnswer, AskedAt(asked): AskedAt) -> Settling {
        let mut state = self.0.state.lock();
        if state.settled.as_ref() == Some(&answer.recall) {
            let lasts = Duration::from_millis(answer.lasts_ms);
            if lasts > READS_MARGIN {
                state.right.extend(asked + lasts - READS_MARGIN);
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

    /// Whether a read that came before this was asked may be answered by what is served: one in
    /// this bucket, or in none. By the connection of the request that is being served.
    pub fn lease(&self, answer: &ReadAnswer, bucket: Option<BucketId>) -> Option<ReadLease> {
        let mut state = self.0.state.lock();
        let is_settled = state.settled.as_ref() == Some(&answer.recall);
        let served = state.served.as_ref()?;
        if !(is_settled && answer.is_quiet && state.right.holds() && served.has(answer, bucket)) {
            return None;
        }
        if let Some(id) = bucket {
            let read_by = state.read_by.entry(id);
            let read_by = read_by.or_insert_with(|| Connections::new(Holder::Bucket));
            // There may be as many of a bucket as come.
            let _ = read_by.note();
        }
        let number = state.next;
        state.next += 1;
        state.answering.insert(number, ConnectionCutoff::current());
        Some(ReadLease {
            right: state.right.clone(),
            reads: self.clone(),
            number,
        })
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
mod tests {
    use super::Settling::{Behind, Settled, SoonSettled};
    use super::*;

    const BUCKET: BucketId = BucketId([7; 16]);

    fn recall(number: u64) -> Recall {
        let term = "t".to_owned();
        Recall { term, number }
    }

    fn answer(number: u64, commits: u64) -> ReadAnswer {
        ReadAnswer {
            recall: recall(number),
            lasts_ms: 60_000,
            is_quiet: true,
            system_commits: 3,
            keystore_generation: 2,
            buckets: HashMap::from([(BUCKET.to_string(), commits)]),
        }
    }

    fn position(system_commits: u64, commits: u64) -> Position {
        Position {
            system_commits,
            keystore_generation: 2,
            buckets: HashMap::from([(BUCKET, commits)]),
        }
    }

    /// Asks, and takes this answer.
    fn told(reads: &FollowerReads, answer: &ReadAnswer) -> Settling {
        let (_, asked) = reads.question([BUCKET]);
        reads.take(answer, asked)
    }

    fn may(reads: &FollowerReads, answer: &ReadAnswer) -> bool {
        reads.lease(answer, Some(BUCKET)).is_some()
    }

    fn serving(position: Position) -> FollowerReads {
        let reads = FollowerReads::default();
        reads.turn_to(Some(position));
        // It is to say that it has settled first.
        assert_eq!(told(&reads, &answer(0, 5)), SoonSettled);
        assert_eq!(told(&reads, &answer(0, 5)), Settled);
        reads
    }

    #[test]
    fn a_read_is_answered_by_nothing_older_than_what_was_shown() {
        let reads = serving(position(3, 5));
        assert!(may(&reads, &answer(0, 5)) && may(&reads, &answer(0, 4)));
        assert!(!may(&reads, &answer(0, 6)), "the bucket has come further");
        let mut newer = answer(0, 5);
        newer.system_commits = 4;
        assert!(!may(&reads, &newer) && reads.lease(&newer, None).is_none());
        let mut newer = answer(0, 5);
        newer.keystore_generation = 3;
        assert!(!may(&reads, &newer));
        let mut unknown = answer(0, 5);
        unknown.buckets.clear();
        assert!(!may(&reads, &unknown) && reads.lease(&unknown, None).is_some());
        let mut busy = answer(0, 5);
        busy.is_quiet = false;
        assert!(!may(&reads, &busy));
        reads.turn_to(None);
        assert!(!may(&reads, &answer(0, 5)));
    }

    #[test]
    fn nothing_is_answered_before_it_is_allowed_or_after_its_time() {
        let reads = FollowerReads::default();
        reads.turn_to(Some(position(3, 5)));
        assert!(!may(&reads, &answer(0, 5)));
        let mut not_yet = answer(0, 5);
        not_yet.lasts_ms = 0;
        told(&reads, &not_yet);
        told(&reads, &not_yet);
        assert!(!may(&reads, &not_yet));
        let mut short = answer(0, 5);
        short.lasts_ms = u64::try_from(READS_MARGIN.as_millis()).unwrap() + 400;
        told(&reads, &short);
        let lease = reads.lease(&short, Some(BUCKET)).unwrap();
        assert!(lease.holds());
        std::thread::sleep(Duration::from_millis(450));
        assert!(!lease.holds() && !may(&reads, &short), "as after a pause");
        reads.tend();
        told(&reads, &answer(0, 5));
        assert!(!lease.holds(), "what was cut off is not taken up again");
        assert!(may(&reads, &answer(0, 5)));
    }

    #[tokio::test]
    async fn a_recall_ends_what_is_answered_until_a_state_without_it_is_served_alone() {
        let reads = serving(position(3, 5));
        let line = ConnectionCutoff::default();
        let lease = line.scope(async { reads.lease(&answer(0, 5), Some(BUCKET)) });
        let lease = lease.await.unwrap();
        let mut next = answer(1, 5);
        next.system_commits = 4;
        assert_eq!(told(&reads, &next), Behind);
        assert!(!lease.holds() && line.is_cut());
        assert_eq!(reads.question([]).0.settled, None);
        reads.former_count().fetch_add(1, Ordering::SeqCst);
        reads.turn_to(Some(position(4, 5)));
        assert_eq!(told(&reads, &next), SoonSettled);
        // Something of the state before is in use.
        assert_eq!(reads.question([]).0.settled, None);
        reads.former_count().fetch_sub(1, Ordering::SeqCst);
        assert_eq!(told(&reads, &next), SoonSettled);
        assert_eq!(reads.question([]).0.settled, Some(recall(1)));
        assert!(!may(&reads, &next), "not before it is allowed");
        assert_eq!(told(&reads, &next), Settled);
        assert!(may(&reads, &next));
        assert!(!lease.holds());
    }

    /// One by which was read in the bucket, which is gone by now.
    async fn after_the_bucket(reads: &FollowerReads) -> ConnectionCutoff {
        let line = ConnectionCutoff::default();
        let read = async { assert!(may(reads, &answer(0, 5))) };
        line.scope(read).await;
        reads.turn_to(Some(position(3, 6)));
        let mut without = position(4, 6);
        without.buckets.clear();
        reads.turn_to(Some(without));
        line
    }

    #[tokio::test]
    async fn connections_that_read_in_a_bucket_are_cut_when_it_is_taken_away_idle_as_they_are() {
        let reads = serving(position(3, 5));
        let line = after_the_bucket(&reads).await;
        let mut next = answer(0, 5);
        next.system_commits = 4;
        assert_eq!(told(&reads, &next), Settled);
        reads.tend();
        assert!(!line.is_cut(), "it was deleted, and nothing was taken away");
        next.recall = recall(1);
        assert_eq!(told(&reads, &next), SoonSettled);
        assert!(line.is_cut());
        assert_eq!(reads.question([]).0.settled, None, "it has not ended");
        drop(line);
        assert_eq!(told(&reads, &next), SoonSettled);
        assert_eq!(reads.question([]).0.settled, Some(recall(1)));
    }

    #[tokio::test]
    async fn who_may_answer_no_more_keeps_no_connection_of_a_bucket_that_is_gone() {
        let reads = serving(position(3, 5));
        let line = after_the_bucket(&reads).await;
        reads.tend();
        assert!(!line.is_cut());
        reads.0.state.lock().right.end();
        reads.tend();
        assert!(
            line.is_cut(),
            "it may have been erased, and none is there to say so"
        );
    }
}
