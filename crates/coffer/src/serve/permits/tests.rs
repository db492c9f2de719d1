//! Who gets permits, and who waits.

use super::*;

const WAIT: Duration = Duration::from_secs(1);

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// All permits that a key gets at an address.
async fn all(permits: &Arc<Permits>, at: u8, key: &str) -> Vec<Permit> {
    let party = permits.party(address(at), Some(key));
    let mut got = Vec::new();
    while let Some(permit) = permits.take(party, Duration::ZERO).await {
        got.push(permit);
    }
    got
}

#[tokio::test(start_paused = true)]
async fn one_client_has_half_and_others_still_get_permits() {
    let permits = Permits::new(512);
    let greedy = all(&permits, 1, "greedy").await;
    assert_eq!(greedy.len(), 256);
    // Neither do more addresses help it, nor does it keep out who shares its own.
    assert_eq!(all(&permits, 2, "greedy").await.len(), 0);
    let neighbour = all(&permits, 1, "neighbour").await;
    assert_eq!(neighbour.len(), 128);
    let other = all(&permits, 3, "other").await;
    assert_eq!(other.len(), 64);
    drop(greedy);
    assert!(all(&permits, 2, "greedy").await.len() > 150);
    drop((neighbour, other));
    let state = permits.state.lock();
    assert_eq!(state.free, 512);
    assert!(state.of_address.is_empty() && state.of_key.is_empty());
    assert!(state.waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn many_that_act_together_leave_some() {
    let permits = Permits::new(512);
    let mut held = Vec::new();
    for at in 0..4 {
        held.extend(all(&permits, at, "shared").await);
    }
    assert_eq!(
        held.len(),
        256,
        "four addresses with one key have no more than one"
    );
    held.clear();
    for at in 0..4 {
        held.extend(all(&permits, at, &at.to_string()).await);
    }
    assert_eq!(all(&permits, 99, "newcomer").await.len(), 16);
    held.clear();
    // One address with a key for each request.
    for number in 0..600 {
        let party = permits.party(address(1), Some(number));
        held.extend(permits.take(party, Duration::ZERO).await);
    }
    assert_eq!(held.len(), 384);
}

#[tokio::test(start_paused = true)]
async fn who_claims_no_key_keeps_none_waiting_who_does() {
    let permits = Permits::new(512);
    let mut held = Vec::new();
    for at in 1..=30 {
        let party = permits.party(address(at), None::<&str>);
        let before = held.len();
        while let Some(permit) = permits.take(party, Duration::ZERO).await {
            held.push(permit);
        }
        let most = if at == 1 { 128 } else { 64 };
        assert!(held.len() - before <= most, "{at}");
    }
    assert_eq!(held.len(), 256);
    let neighbour = all(&permits, 1, "signed").await;
    assert_eq!(neighbour.len(), 128);
    let other = all(&permits, 99, "other").await;
    assert_eq!(other.len(), 64);
    drop((held, neighbour, other));
    let state = permits.state.lock();
    assert_eq!((state.free, state.free_unclaimed), (512, 256));
}

#[tokio::test(start_paused = true)]
async fn of_many_that_none_may_serve_one_is_looked_at() {
    let permits = Permits::new(512);
    let mut held = Vec::new();
    for at in 1..=30 {
        let party = permits.party(address(at), None::<&str>);
        while let Some(permit) = permits.take(party, Duration::ZERO).await {
            held.push(permit);
        }
    }
    assert_eq!(held.len(), 256, "all that those have who claim no key");
    let mut state = permits.state.lock();
    let mut answers = Vec::new();
    let mut wait = |state: &mut State, party| {
        let (give, permit) = oneshot::channel();
        state.waiting.entry(party).or_default().insert(0, give);
        answers.push(permit);
    };
    for number in 0..1_000_u32 {
        let at = IpAddr::from(number.to_be_bytes());
        wait(&mut state, permits.party(at, None::<&str>));
    }
    state.last = permits.party(IpAddr::from([0, 0, 1, 0]), None::<&str>);
    // Once behind who was served last, and once from the beginning.
    assert_eq!(state.looks().count(), 2);
    assert_eq!(state.next_party(), None);
    let signed = permits.party(address(99), Some("signed"));
    wait(&mut state, signed);
    assert_eq!(state.next_party(), Some(signed));
    assert!(state.looks().take_while(|party| *party != signed).count() <= 1);
    state.waiting.clear();
}

#[tokio::test(start_paused = true)]
async fn a_few_permits_are_all_given_to_one_client() {
    for count in 1..PERMITS_SHARED_FROM {
        let permits = Permits::new(count);
        assert_eq!(all(&permits, 1, "only").await.len(), count);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_gets_what_is_freed_in_order_and_in_rotation() {
    let permits = Permits::new(1);
    let held = all(&permits, 1, "a").await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for (at, key, name) in [
        (1, "a", 1),
        (1, "a", 2),
        (1, "a", 3),
        (2, "b", 4),
        (3, "c", 5),
    ] {
        let (permits, order) = (permits.clone(), order.clone());
        tasks.push(tokio::spawn(async move {
            let party = permits.party(address(at), Some(key));
            let permit = permits.take(party, WAIT).await.unwrap();
            order.lock().push(name);
            tokio::time::sleep(WAIT / 10).await;
            drop(permit);
        }));
        tokio::task::yield_now().await;
    }
    // One that leaves early holds up none.
    let party = permits.party(address(1), Some("a"));
    assert!(permits.take(party, WAIT / 100).await.is_none());
    drop(held);
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().clone();
    assert_eq!(order, [1, 4, 5, 2, 3]);
    assert_eq!(permits.state.lock().free, 1);
    assert!(permits.state.lock().waiting.is_empty());
}
