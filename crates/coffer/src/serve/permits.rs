//! Permits for requests: so many at once, shared between those who ask.
//!
//! An access key gets another one only while it has fewer than are free, an address while it has
//! fewer than three times as many. Alone, one key has half of all at most; a second one half of the
//! rest. So a client that holds on to all that it can get by one key, from one address or from
//! many, keeps others waiting no more, not even those who share its address.
//!
//! Requests that claim no access key, as of forms, whose bodies are read before it is known who
//! signed them, have half of all together, which their addresses share by the same rule: an
//! address has half of that at most. So who has no access key keeps none of those waiting who sign.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use coffer_vault::neighbourhood;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::limits::{
    PERMITS_ADDRESS_TO_FREE, PERMITS_KEY_TO_FREE, PERMITS_SHARED_FROM, PERMITS_TO_UNCLAIMED,
};

/// The permits of a listener.
#[derive(Debug)]
pub struct Permits {
    hasher: RandomState,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Of a few, all go to who comes first.
    are_shared: bool,
    /// Those who claim no access key may still take so many.
    free_unclaimed: usize,
    of_address: HashMap<IpAddr, usize>,
    of_key: HashMap<u64, usize>,
    /// Who waits, by party and in order.
    waiting: BTreeMap<Party, BTreeMap<u64, oneshot::Sender<Permit>>>,
    next_place: u64,
    /// Who got a permit last after a wait: others go first.
    last: Party,
}

/// Whose a request is: of an address, and of an access key as it claims, told by a hash that
/// no client can foresee; of its address where it claims none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Party {
    /// First, so that all who claim none stand together where parties wait.
    is_claimed: bool,
    address: IpAddr,
    key: u64,
}

/// A permit; free again when dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Arc<Permits>,
    party: Party,
}

/// A place in the queue; given up when dropped.
#[derive(Debug)]
struct Place<'a> {
    permits: &'a Permits,
    party: Party,
    number: u64,
}

impl Permits {
    /// So many permits.
    pub fn new(count: usize) -> Arc<Self> {
        let hasher = RandomState::new();
        let first = Party {
            address: IpAddr::from([0; 16]),
            key: 0,
            is_claimed: false,
        };
        Arc::new(Self {
            hasher,
            state: Mutex::new(State {
                free: count,
                are_shared: count >= PERMITS_SHARED_FROM,
                free_unclaimed: count / PERMITS_TO_UNCLAIMED,
                of_address: HashMap::new(),
                of_key: HashMap::new(),
                waiting: BTreeMap::new(),
                next_place: 0,
                last: first,
            }),
        })
    }

    /// Those who claim this access key, or none, at this address.
    pub fn party(&self, address: IpAddr, key: Option<impl Hash>) -> Party {
        let address = neighbourhood(address);
        Party {
            address,
            is_claimed: key.is_some(),
            key: self.hasher.hash_one(key.ok_or(address)),
        }
    }

    /// A permit; none if there was none in time.
    pub async fn take(self: &Arc<Self>, party: Party, wait: Duration) -> Option<Permit> {
        let (place, permit) = {
            let mut state = self.state.lock();
            if state.admits(party) {
                return Some(self.permit(&mut state, party));
            }
            let number = state.next_place;
            state.next_place += 1;
            let (give, permit) = oneshot::channel();
            state.waiting.entry(party).or_default().insert(number, give);
            let place = Place {
                permits: self,
                party,
                number,
            };
            (place, permit)
        };
        let permit = timeout(wait, permit).await;
        drop(place);
        permit.ok()?.ok()
    }

    fn permit(self: &Arc<Self>, state: &mut State, party: Party) -> Permit {
        state.free -= 1;
        if state.are_shared && !party.is_claimed {
            state.free_unclaimed -= 1;
        }
        *state.of_address.entry(party.address).or_default() += 1;
        *state.of_key.entry(party.key).or_default() += 1;
        Permit {
            permits: self.clone(),
            party,
        }
    }

    /// Gives what is free to those who wait.
    fn give(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            let Some(party) = state.next_party() else {
                return;
            };
            let Some(give) = state.leave(party, None) else {
                return;
            };
            state.last = party;
            let permit = self.permit(&mut state, party);
            drop(state);
            // Who has just gone away gives it back by dropping it.
            drop(give.send(permit));
        }
    }
}

impl State {
    fn admits(&self, party: Party) -> bool {
        self.admits_address(party.address)
            && self.has_room(&self.of_key, &party.key, PERMITS_KEY_TO_FREE)
            && (party.is_claimed || self.admits_unclaimed(party.key))
    }

    fn admits_unclaimed(&self, key: u64) -> bool {
        let own = self.of_key.get(&key).copied().unwrap_or(0);
        !self.are_shared || own < self.free_unclaimed
    }

    fn admits_address(&self, address: IpAddr) -> bool {
        self.has_room(&self.of_address, &address, PERMITS_ADDRESS_TO_FREE)
    }

    fn has_room<K: Hash + Eq>(&self, taken: &HashMap<K, usize>, whose: &K, to_free: usize) -> bool {
        let own = taken.get(whose).copied().unwrap_or(0);
        self.free > 0 && (!self.are_shared || own < self.free * to_free)
    }

    /// Who of those that wait is next. Passes over an address that has its share as one.
    fn next_party(&self) -> Option<Party> {
        if self.free == 0 {
            return None;
        }
        for mut from in [Bound::Excluded(self.last), Bound::Unbounded] {
            while let Some((&party, _)) = self.waiting.range((from, Bound::Unbounded)).next() {
                if self.admits(party) {
                    return Some(party);
                }
                let is_full = !self.admits_address(party.address);
                let none_unclaimed =
                    self.are_shared && !party.is_claimed && self.free_unclaimed == 0;
                // The last address of all: who claims a key comes behind it.
                let all = IpAddr::from([0xff; 16]);
                let is_passed = is_full || none_unclaimed;
                from = Bound::Excluded(Party {
                    address: if none_unclaimed { all } else { party.address },
                    key: if is_passed { u64::MAX } else { party.key },
                    ..party
                });
            }
        }
        None
    }

    /// Takes this one out of the queue, or the party's first.
    fn leave(&mut self, party: Party, number: Option<u64>) -> Option<oneshot::Sender<Permit>> {
        let queue = self.waiting.get_mut(&party)?;
        let gone = match number {
            Some(number) => queue.remove(&number),
            None => queue.pop_first().map(|(_, give)| give),
        };
        if queue.is_empty() {
            self.waiting.remove(&party);
        }
        gone
    }

    fn end(&mut self, party: Party) {
        self.free += 1;
        if self.are_shared && !party.is_claimed {
            self.free_unclaimed += 1;
        }
        one_less(&mut self.of_address, party.address);
        one_less(&mut self.of_key, party.key);
    }
}

fn one_less<K: Hash + Eq>(taken: &mut HashMap<K, usize>, whose: K) {
    if let Some(count) = taken.get_mut(&whose) {
        *count -= 1;
        if *count == 0 {
            taken.remove(&whose);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.permits.state.lock().end(self.party);
        self.permits.give();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permits
            .state
            .lock()
            .leave(self.party, Some(self.number));
    }
}

#[cfg(test)]
mod tests {
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
        // One that leaves early holds up nobody.
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
}
