//! When a gateway that follows may answer, and what ends that.

use super::super::question::StandingAnswer;
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
        standing: None,
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
    reads.take(&Arc::new(answer.clone()), asked)
}

/// By an answer to a question of now.
fn leased(
    reads: &FollowerReads,
    answer: &ReadAnswer,
    bucket: Option<BucketId>,
) -> Option<ReadLease> {
    let (_, asked) = reads.question([]);
    reads.lease(answer, asked, bucket)
}

fn may(reads: &FollowerReads, answer: &ReadAnswer) -> bool {
    leased(reads, answer, Some(BUCKET)).is_some()
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
    assert!(!may(&reads, &newer) && leased(&reads, &newer, None).is_none());
    let mut newer = answer(0, 5);
    newer.keystore_generation = 3;
    assert!(!may(&reads, &newer));
    let mut unknown = answer(0, 5);
    unknown.buckets.clear();
    assert!(!may(&reads, &unknown) && leased(&reads, &unknown, None).is_some());
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
    let mut lease = leased(&reads, &short, Some(BUCKET)).unwrap();
    assert!(lease.begin());
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
    let begun = async {
        let mut lease = leased(&reads, &answer(0, 5), Some(BUCKET)).unwrap();
        assert!(lease.begin());
        lease
    };
    let lease = line.scope(begun).await;
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
    let read = async {
        let mut lease = leased(reads, &answer(0, 5), Some(BUCKET)).unwrap();
        assert!(lease.begin());
    };
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

/// The same, of which what is in the bucket and in none stands for so long.
fn standing(commits: u64, lasts_ms: u64) -> ReadAnswer {
    let buckets = vec![BUCKET.to_string()];
    ReadAnswer {
        standing: Some(StandingAnswer { lasts_ms, buckets }),
        ..answer(0, commits)
    }
}

#[test]
fn what_stands_is_answered_without_a_question_and_not_after_its_time() {
    let reads = serving(position(3, 5));
    assert!(reads.lease_standing(Some(BUCKET)).is_none());
    told(&reads, &standing(5, 200));
    assert!(reads.are_standing() && !reads.are_being_used());
    assert!(reads.lease_standing(Some(BUCKET)).is_some());
    assert!(reads.lease_standing(None).is_some());
    assert!(reads.lease_standing(Some(BucketId([8; 16]))).is_none());
    // What is read is asked about again, whether a read waits or not.
    assert!(reads.are_being_used());
    assert_eq!(reads.question([]).0.buckets, [BUCKET.to_string()]);
    assert!(!reads.are_being_used());
    std::thread::sleep(Duration::from_millis(200));
    assert!(reads.lease_standing(Some(BUCKET)).is_none() && !reads.are_standing());
}

#[test]
fn what_stands_counts_from_the_question_and_only_for_a_state_that_has_it() {
    let reads = serving(position(3, 5));
    let (_, asked) = reads.question([BUCKET]);
    std::thread::sleep(Duration::from_millis(60));
    reads.take(&Arc::new(standing(5, 60)), asked);
    assert!(reads.lease_standing(Some(BUCKET)).is_none(), "it came late");
    told(&reads, &standing(6, 60_000));
    assert!(reads.lease_standing(Some(BUCKET)).is_none(), "it is behind");
    // Another state may have what none was shown: it is asked for by that.
    let (_, asked) = reads.question([BUCKET]);
    reads.turn_to(Some(position(3, 6)));
    assert!(reads.lease_standing(Some(BUCKET)).is_none());
    reads.take(&Arc::new(standing(6, 60_000)), asked);
    assert!(reads.lease_standing(Some(BUCKET)).is_none(), "asked before");
    told(&reads, &standing(6, 60_000));
    assert!(reads.lease_standing(Some(BUCKET)).is_some());
}

#[test]
fn nothing_stands_after_a_recall() {
    let reads = serving(position(3, 5));
    told(&reads, &standing(5, 60_000));
    assert!(reads.lease_standing(Some(BUCKET)).is_some());
    let mut next = answer(1, 5);
    next.system_commits = 4;
    assert_eq!(told(&reads, &next), Behind);
    assert!(reads.lease_standing(Some(BUCKET)).is_none() && !reads.are_standing());
}

#[test]
fn what_is_read_while_another_state_comes_is_not_shown() {
    let reads = serving(position(3, 5));
    told(&reads, &standing(5, 60_000));
    let mut early = reads.lease_standing(Some(BUCKET)).unwrap();
    let (_, asked) = reads.question([BUCKET]);
    reads.turn_away();
    assert!(!early.begin(), "it may have read in the other one");
    assert!(reads.lease_standing(Some(BUCKET)).is_none());
    assert!(leased(&reads, &answer(0, 5), Some(BUCKET)).is_none());
    reads.turn_to(Some(position(3, 6)));
    let late = reads.lease(&answer(0, 5), asked, Some(BUCKET));
    assert!(late.is_none(), "it was asked before");
    let mut next = leased(&reads, &answer(0, 6), Some(BUCKET)).unwrap();
    assert!(next.begin());
}

#[tokio::test]
async fn a_connection_by_which_nothing_went_out_is_not_cut() {
    let reads = serving(position(3, 5));
    let line = ConnectionCutoff::default();
    let leasing = async { leased(&reads, &answer(0, 5), Some(BUCKET)).unwrap() };
    let mut lease = line.scope(leasing).await;
    let mut without = position(4, 6);
    without.buckets.clear();
    reads.turn_to(Some(without));
    let mut next = answer(1, 5);
    next.system_commits = 4;
    told(&reads, &next);
    assert!(!line.is_cut() && !lease.begin(), "it is forwarded");
}
