use std::time::Duration;

use super::*;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

async fn is_told(slot: &Slot) -> bool {
    timeout(Duration::from_millis(1), slot.activity().asked_to_leave())
        .await
        .is_ok()
}

async fn take(slots: &Arc<Slots>, text: &str) -> Option<Slot> {
    let taken = timeout(Duration::from_millis(20), slots.take(address(text))).await;
    taken.ok().and_then(Result::ok)
}

#[tokio::test(start_paused = true)]
async fn the_oldest_idle_stranger_of_the_fullest_address_leaves_first() {
    let slots = Slots::new(6, 0);
    let mut held = Vec::new();
    for last in [1, 7, 7, 9, 9, 9] {
        held.push(take(&slots, &format!("192.0.2.{last}")).await.unwrap());
    }
    held[1].activity().begin();
    held[2].sign_in();
    held[3].activity().set_sending(true);
    let _newcomer = take(&slots, "192.0.2.8").await.unwrap();
    assert!(is_told(&held[4]).await && slots.taken() == 6);
    let _another = take(&slots, "192.0.2.8").await.unwrap();
    assert!(is_told(&held[5]).await && !is_told(&held[3]).await);
    held.drain(..).for_each(drop);
    assert_eq!(slots.taken(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_has_signed_in_leaves_after_all_who_have_not_and_work_is_left_alone() {
    let slots = Slots::new(2, 0);
    let [one, two] = [take(&slots, "::1").await, take(&slots, "127.0.0.2").await];
    let (one, two) = (one.unwrap(), two.unwrap());
    one.sign_in();
    let three = take(&slots, "127.0.0.3").await.unwrap();
    assert!(is_told(&two).await && !is_told(&one).await);
    three.activity().begin();
    let four = take(&slots, "127.0.0.4").await.unwrap();
    assert!(is_told(&one).await);
    four.activity().begin();
    assert!(take(&slots, "127.0.0.5").await.is_none(), "all are at work");
    four.activity().end();
    assert!(take(&slots, "127.0.0.5").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn no_address_holds_all_slots() {
    let slots = Slots::new(16, 0);
    let mut held = Vec::new();
    for number in 0..14 {
        // All of one network of IPv6.
        let slot = take(&slots, &format!("2001:db8::{number}")).await.unwrap();
        slot.activity().begin();
        held.push(slot);
    }
    let refused = slots.take(address("2001:db8::ff")).await;
    assert_eq!(refused.err(), Some(TooMany));
    assert!(take(&slots, "2001:db8:0:1::").await.is_some());
    held[3].activity().end();
    assert!(take(&slots, "2001:db8::ff").await.is_some());
    assert!(is_told(&held[3]).await);
}

#[tokio::test(start_paused = true)]
async fn an_address_holds_as_many_as_it_is_told() {
    let slots = Slots::shared(6, 0, Some(2));
    let [one, two] = [take(&slots, "::1").await, take(&slots, "::1").await].map(Option::unwrap);
    one.activity().begin();
    two.activity().begin();
    assert_eq!(slots.take(address("::1")).await.err(), Some(TooMany));
    assert!(take(&slots, "192.0.2.1").await.is_some());
    one.activity().end();
    assert!(take(&slots, "::1").await.is_some() && is_told(&one).await);
}

#[tokio::test(start_paused = true)]
async fn the_reserve_is_there_when_all_else_is_in_use() {
    let slots = Slots::new(2, 1);
    let held = [take(&slots, "::1").await, take(&slots, "::1").await].map(Option::unwrap);
    held.iter().for_each(|slot| slot.activity().begin());
    let probe = take(&slots, "127.0.0.1").await.unwrap();
    assert!(probe.activity().is_reserved() && !held[0].activity().is_reserved());
    probe.activity().begin();
    assert!(take(&slots, "127.0.0.1").await.is_none());
    drop(probe);
    assert!(take(&slots, "127.0.0.1").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_proxy_tells_whose_a_connection_is_and_the_end_waits_for_all() {
    let slots = Slots::new(8, 0);
    let mut held = Vec::new();
    for number in 0..7 {
        let mut slot = take(&slots, "10.0.0.1").await.unwrap();
        slot.belongs_to(address(&format!("192.0.2.{number}")))
            .unwrap();
        slot.activity().begin();
        held.push(slot);
    }
    assert!(take(&slots, "10.0.0.1").await.is_some());
    let waits = tokio::spawn({
        let slots = slots.clone();
        async move { slots.all_free().await }
    });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    held.clear();
    waits.await.unwrap();
}
