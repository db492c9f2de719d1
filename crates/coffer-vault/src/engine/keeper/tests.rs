//! Leases that are taken, left, and renewed elsewhere.

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use tokio::time::timeout;

use self::faulty::Faulty;
use super::*;
use crate::fence::BOOT_TIME;
use crate::limits::LEASE_LASTS;

mod faulty;

/// A keeper that does one thing at a time, as it is told.
fn work(store: &Arc<Faulty>, address: &str, wants: bool) -> Work {
    Work {
        place: LeasePlace::new(store.clone()),
        own: [CopyId::random(), CopyId::random()],
        address: address.to_owned(),
        turns: watch::Sender::new(Turn::Unknown),
        others: watch::Sender::new(Seen::NotYet),
        wants: watch::channel(wants).1,
        right: Term::default(),
        hesitation: Hesitation::default(),
        free_since: None,
        asked: None,
        seen: None,
        looked: Duration::ZERO,
        held: None,
        is_told: false,
    }
}

/// It is so many seconds since the machine was started.
fn at(seconds: u64) {
    BOOT_TIME.set(Some(Duration::from_secs(seconds)));
}

fn other(address: &str) -> Turn {
    Turn::Other {
        address: address.to_owned(),
    }
}

async fn has_it(keeper: &LeaseKeeper, within: Duration) -> bool {
    let mut turns = keeper.turns();
    let turn = timeout(within, turns.wait_for(|turn| *turn == Turn::Mine));
    turn.await.is_ok()
}

#[tokio::test]
async fn a_lease_that_is_renewed_elsewhere_is_told_from_one_that_is_renewed_here() {
    let store: Store = Arc::new(InMemory::new());
    let keeper = |name: &str| LeaseKeeper::begin_at(store.clone(), name.to_owned(), tokio::spawn);
    let owner = keeper("owner").await.unwrap();
    owner.wants(true);
    assert!(has_it(&owner, LEASE_LOOKS_EVERY * 4).await);
    let follower = keeper("follower").await.unwrap();
    assert_eq!(follower.silent_owner().await, None);
    owner.task.abort();
    assert_eq!(follower.silent_owner().await, None, "it was renewed here");
    // As a copy of the store has it.
    let late = keeper("late").await.unwrap();
    assert_eq!(late.silent_owner().await.as_deref(), Some("owner"));
    let again = keeper("owner").await.unwrap();
    assert_eq!(again.silent_owner().await, None, "it was this one's");
}

/// Nothing else would take the lease then, or renew it, for as long as the process is there.
#[tokio::test]
async fn a_keeper_that_has_ended_says_so() {
    let store: Store = Arc::new(InMemory::new());
    let keeper = LeaseKeeper::begin_at(store, "one".to_owned(), tokio::spawn);
    let keeper = keeper.await.unwrap();
    assert!(
        timeout(LEASE_LOOKS_EVERY * 2, keeper.stopped())
            .await
            .is_err()
    );
    keeper.task.abort();
    timeout(LEASE_LOOKS_EVERY, keeper.stopped()).await.unwrap();
}

/// It has the lease when its task fails: the process is told, no turn is waited for any more, and
/// another gateway takes the lease when it has ended.
#[tokio::test]
async fn a_keeper_whose_task_fails_says_so_and_is_replaced() {
    let store: Store = Arc::new(InMemory::new());
    let fails = Arc::new(tokio::sync::Notify::new());
    let when = fails.clone();
    let failing = |work| {
        tokio::spawn(async move {
            tokio::select! {
                () = work => {}
                () = when.notified() => panic!("a defect"),
            }
        })
    };
    let keeper = LeaseKeeper::begin_at(store.clone(), "one".to_owned(), failing);
    let keeper = keeper.await.unwrap();
    keeper.wants(true);
    assert!(has_it(&keeper, LEASE_LOOKS_EVERY * 4).await);
    let (right, mut turns) = (keeper.right(), keeper.turns());
    assert!(right.holds());
    fails.notify_one();
    timeout(LEASE_LOOKS_EVERY, keeper.stopped()).await.unwrap();
    assert!(turns.wait_for(|turn| *turn != Turn::Mine).await.is_err());
    timeout(LEASE_LOOKS_EVERY, keeper.end()).await.unwrap();
    let other = LeaseKeeper::begin_at(store, "other".to_owned(), tokio::spawn);
    let other = other.await.unwrap();
    other.wants(true);
    assert!(has_it(&other, LEASE_LASTS * 2).await);
    assert!(!right.holds());
}

#[tokio::test]
async fn a_gateway_without_room_leaves_a_free_lease_to_another() {
    let store: Store = Arc::new(InMemory::new());
    let keeper = |name: &str| LeaseKeeper::begin_at(store.clone(), name.to_owned(), tokio::spawn);
    let (full, other) = (
        keeper("full").await.unwrap(),
        keeper("other").await.unwrap(),
    );
    full.hesitation().set(true);
    full.wants(true);
    assert!(!has_it(&full, LEASE_LOOKS_EVERY * 4).await);
    other.wants(true);
    assert!(has_it(&other, LEASE_LOOKS_EVERY * 6).await);
    assert!(!has_it(&full, LEASE_LOOKS_EVERY * 4).await);
    // With room again it takes what is given back.
    full.hesitation().set(false);
    other.wants(false);
    assert!(has_it(&full, LEASE_LOOKS_EVERY * 6).await);
    full.end().await;
    other.end().await;
}

/// Its first lease and its second are number 1, both times not renewed yet.
#[tokio::test]
async fn a_lease_taken_anew_lasts_from_when_it_was_seen_though_one_like_it_was_seen_before() {
    let lease = Path::from("lease.json");
    for (there, is_looked_at) in [(None, false), (None, true), (Some("none"), true)] {
        let store = Arc::<Faulty>::default();
        let (mut owner, mut follower) = (work(&store, "a", true), work(&store, "b", false));
        at(10);
        owner.look().await;
        follower.look().await;
        assert_eq!(*follower.turns.borrow(), other("a"));
        store.delete(&lease).await.unwrap();
        if let Some(text) = there {
            store.put(&lease, text.into()).await.unwrap();
        }
        if is_looked_at {
            follower.look().await;
            assert_eq!(*follower.turns.borrow(), Turn::Unknown);
        }
        if there.is_some() {
            store.delete(&lease).await.unwrap();
        }
        at(17);
        owner.held = None;
        owner.look().await;
        assert_eq!(*owner.turns.borrow(), Turn::Mine);
        follower.wants = watch::channel(true).1;
        for (second, turn) in [(18, other("a")), (23, other("a")), (24, Turn::Mine)] {
            at(second);
            follower.look().await;
            assert_eq!(
                *follower.turns.borrow(),
                turn,
                "{there:?} {is_looked_at} {second}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_looked_at_is_anothers_for_as_long_as_it_lasts() {
    let store = Arc::<Faulty>::default();
    let (mut owner, mut follower) = (work(&store, "a", true), work(&store, "b", true));
    at(10);
    owner.look().await;
    follower.look().await;
    for (second, turn) in [(12, other("a")), (15, other("a")), (16, Turn::Unknown)] {
        at(second);
        store.silent.store(1, Ordering::SeqCst);
        follower.look().await;
        assert_eq!(*follower.turns.borrow(), turn, "{second}");
    }
}

/// Its right lasts for 4 s, of which one has passed when a renewal is asked for.
#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_asked_for_once_more_and_one_that_fails_is_tried_again() {
    let store = Arc::<Faulty>::default();
    let spawn = |work| tokio::spawn(work);
    let keeper = LeaseKeeper::begin_at(store.clone(), "a".to_owned(), spawn);
    let keeper = keeper.await.unwrap();
    let place = LeasePlace::new(store.clone());
    keeper.wants(true);
    assert!(has_it(&keeper, LEASE_LOOKS_EVERY * 4).await);
    store.silent.store(1, Ordering::SeqCst);
    sleep(LEASE_RENEWED_EVERY + Duration::from_millis(1_500)).await;
    let renewals = place.read().await.unwrap().unwrap().lease.renewals;
    assert!(renewals >= 1, "by the second request");
    store.refused.store(5, Ordering::SeqCst);
    sleep(LEASE_RENEWED_EVERY + Duration::from_millis(1_500)).await;
    assert_eq!(store.refused.load(Ordering::SeqCst), 0);
    let again = place.read().await.unwrap().unwrap().lease.renewals;
    assert!(again > renewals, "soon after it was refused");
    assert_eq!(*keeper.turns().borrow(), Turn::Mine);
    keeper.end().await;
}
