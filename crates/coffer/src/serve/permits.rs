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
use std::iter;
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

    /// Who of those that wait is next.
    fn next_party(&self) -> Option<Party> {
        if self.free == 0 {
            return None;
        }
        self.looks().find(|party| self.admits(*party))
    }

    /// Who is looked at, one after the other, where each before may not be served: after who was
    /// served last, and from the beginning. Passes over an address that has its share as one, and
    /// over all that claim no key as one where none of them may be served.
    fn looks(&self) -> impl Iterator<Item = Party> {
        [Bound::Excluded(self.last), Bound::Unbounded]
            .into_iter()
            .flat_map(move |from| {
                let next =
                    move |party: &Party| self.first_from(Bound::Excluded(self.passed(*party)));
                iter::successors(self.first_from(from), next)
            })
    }

    fn first_from(&self, from: Bound<Party>) -> Option<Party> {
        let mut waiting = self.waiting.range((from, Bound::Unbounded));
        waiting.next().map(|(party, _)| *party)
    }

    /// The last of those that need no look where this one may not be served.
    fn passed(&self, party: Party) -> Party {
        let is_full = !self.admits_address(party.address);
        let none_unclaimed = self.are_shared && !party.is_claimed && self.free_unclaimed == 0;
        // The last address of all: who claims a key comes behind it.
        let all = IpAddr::from([0xff; 16]);
        let is_passed = is_full || none_unclaimed;
        Party {
            address: if none_unclaimed { all } else { party.address },
            key: if is_passed { u64::MAX } else { party.key },
            ..party
        }
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
mod tests;
