//! Who waits for the log of an engine, or for another copy, and what they are answered.

use std::time::Instant;

use super::*;
use crate::error::BackupError;
use crate::limits::ANSWERS_STAND;

fn waited_for(wait: Duration) -> (Arc<WaitedFor>, Arc<Synchronous>) {
    let all = Arc::<WaitedFor>::default();
    let copy = Synchronous::new("far", wait, None);
    all.add(copy.clone());
    (all, copy)
}

fn told(error: VaultError) -> CopyError {
    match error {
        VaultError::Backup(BackupError::Copy(error)) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn one_round_answers_all_who_waited_when_it_began_and_none_who_came_later() {
    let (all, copy) = waited_for(Duration::from_secs(5));
    let wait = || {
        let all = all.clone();
        tokio::spawn(async move { all.acknowledge(None).await })
    };
    let early: Vec<_> = (0..100).map(|_| wait()).collect();
    copy.one_waits().await;
    tokio::task::yield_now().await;
    let covers = copy.asked();
    assert_eq!((covers, copy.status(None).waiting_count), (100, 100));
    let late = wait();
    tokio::task::yield_now().await;
    copy.reach(covers).unwrap();
    for waiter in early {
        waiter.await.unwrap().unwrap();
    }
    assert!(!late.is_finished());
    copy.reach(copy.asked()).unwrap();
    late.await.unwrap().unwrap();
    assert_eq!(copy.status(None).waiting_count, 0);
    let idle = timeout(Duration::from_secs(60), copy.one_waits());
    assert!(idle.await.is_err(), "no round where nothing waits");
}

#[tokio::test(start_paused = true)]
async fn what_no_head_takes_in_time_is_in_doubt_and_what_was_given_up_is_refused() {
    let (all, copy) = waited_for(Duration::from_secs(2));
    let late = told(all.acknowledge(None).await.unwrap_err());
    assert!(matches!(late, CopyError::NotYet { .. }), "{late}");
    assert!(late.to_string().contains("in doubt"), "{late}");
    let waiting = tokio::spawn({
        let all = all.clone();
        async move { all.acknowledge(None).await }
    });
    copy.one_waits().await;
    tokio::task::yield_now().await;
    copy.give_up();
    let done = told(waiting.await.unwrap().unwrap_err());
    assert!(matches!(done, CopyError::NotAnyMore { .. }), "{done}");
    let refused = told(all.assure_reachable().unwrap_err());
    assert!(refused.to_string().contains("nothing was stored"));
    assert_eq!(copy.status(None).in_doubt_count, 2);
    // A late answer to a head that was given up on acknowledges nothing new.
    assert!(all.acknowledge(None).await.is_err());
    all.remove(&copy);
    all.assure_reachable().unwrap();
    all.acknowledge(None).await.unwrap();
}

/// No operator is to do anything: another gateway serves, or this one when it has the lease.
#[tokio::test(start_paused = true)]
async fn the_log_of_an_engine_that_was_given_up_is_told_as_a_lease_that_ended() {
    let all = WaitedFor::default();
    let right = ServingRight::default();
    right.extend(ServingRight::now() + Duration::from_secs(60));
    let log = Synchronous::new("engine", Duration::from_secs(2), Some(right.clone()));
    all.add(log.clone());
    let waited = told(all.acknowledge(None).await.unwrap_err());
    assert!(matches!(waited, CopyError::NotInLog), "{waited}");
    log.end_right();
    assert!(!right.holds());
    log.give_up();
    let refused = told(all.assure_reachable().unwrap_err());
    assert!(matches!(refused, CopyError::LeaseEnded), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_ends_by_itself_is_done_once_the_log_of_an_engine_has_it() {
    let (all, copy) = waited_for(Duration::from_secs(2));
    let end = || {
        let all = all.clone();
        let under_way = all.begin_change(None);
        tokio::spawn(async move { all.settle_own(under_way, Ok::<_, VaultError>(7)).await })
    };
    assert_eq!(end().await.unwrap().unwrap(), 7, "no engine");
    assert_eq!(copy.asked(), 0);
    all.hold_readers();
    let ending = end();
    copy.one_waits().await;
    tokio::task::yield_now().await;
    assert!(!ending.is_finished());
    assert!(all.unacknowledged.seen().is_some(), "readers wait as well");
    copy.reach(copy.asked()).unwrap();
    assert_eq!(ending.await.unwrap().unwrap(), 7);
    assert!(all.unacknowledged.seen().is_none());
    // What the log does not take in time is in doubt.
    let late = told(end().await.unwrap().unwrap_err());
    assert!(matches!(late, CopyError::NotYet { .. }), "{late}");
    assert!(all.unacknowledged.seen().is_some());
    let reads = tokio::spawn({
        let all = all.clone();
        async move { all.settle_read(None).await }
    });
    copy.one_waits().await;
    tokio::task::yield_now().await;
    copy.reach(copy.asked()).unwrap();
    reads.await.unwrap().unwrap();
    assert!(all.unacknowledged.seen().is_none());
    // So is what failed half-way; it has the answer that it had.
    let under_way = all.begin_change(None);
    let failed = all.settle_own(under_way, Err::<u8, _>(VaultError::InDoubt));
    assert!(matches!(failed.await, Err(VaultError::InDoubt)));
    assert!(all.unacknowledged.seen().is_some());
}

#[tokio::test]
async fn what_is_in_the_log_later_than_the_lease_lasts_answers_none() {
    let right = ServingRight::default();
    right.extend(ServingRight::now() + Duration::from_secs(60));
    let all = Arc::<WaitedFor>::default();
    let copy = Synchronous::new("log", Duration::from_millis(20), Some(right.clone()));
    all.add(copy.clone());
    copy.reach(1).unwrap();
    all.acknowledge(None).await.unwrap();
    right.end();
    let refused = told(copy.reach(2).unwrap_err());
    assert!(matches!(refused, CopyError::LeaseEnded), "{refused}");
    let late = told(all.acknowledge(None).await.unwrap_err());
    assert!(matches!(late, CopyError::NotInLog), "{late}");
}

#[tokio::test]
async fn what_is_changed_waits_until_what_followers_were_told_of_it_is_over() {
    const CHANGED: BucketId = BucketId([1; 16]);
    const OTHER: BucketId = BucketId([2; 16]);
    let all = WaitedFor::default();
    all.hold_readers();
    let stand = || all.stand([CHANGED, OTHER].into_iter(), ServingRight::now());
    drop(all.begin_change(Some(OTHER)));
    assert_eq!(stand(), Some(vec![CHANGED]), "the other was just changed");
    let began = Instant::now();
    let other = all.begin_change(Some(OTHER));
    all.acknowledge_change(other.as_ref()).await.unwrap();
    all.settle_read(Some(OTHER)).await.unwrap();
    assert!(began.elapsed() < ANSWERS_STAND / 2, "nothing stood of it");
    let change = all.begin_change(Some(CHANGED));
    assert_eq!(stand(), Some(Vec::new()));
    // A reader that has seen it waits as well, and so does who changed it.
    all.settle_read(Some(CHANGED)).await.unwrap();
    assert!(began.elapsed() >= ANSWERS_STAND / 2);
    all.acknowledge_change(change.as_ref()).await.unwrap();
    change.unwrap().is_in_doubt();
    drop(other);
    assert!(all.is_to_be_settled());
    all.settle_read(None).await.unwrap();
    assert!(!all.is_to_be_settled());
}
