//! Failed sign-ins, counted for each address and what it claimed, so that secrets are not
//! guessed quickly.
//!
//! Who fails often is not heard for a while. Only the address that failed is concerned: no one can
//! keep a subject out by guessing from elsewhere.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::limits::{SIGN_IN_COUNTS, SIGN_IN_FAILURES, SIGN_IN_WINDOW};

/// Failed sign-ins of late.
#[derive(Debug)]
pub struct SignInFailures {
    /// After how many a claimant is not heard.
    most: u32,
    began: Instant,
    /// Until when any claimant is not heard, in milliseconds since the beginning; 0 while all are.
    /// Nearly always 0, so that a request that asks takes no lock.
    any_until_ms: AtomicU64,
    counts: Mutex<HashMap<Claimant, Count>>,
}

/// The network that it came from, and the access key that was claimed, if that counts.
type Claimant = (IpAddr, String);

#[derive(Debug, Clone, Copy)]
struct Count {
    since: Instant,
    failures: u32,
}

impl Default for SignInFailures {
    fn default() -> Self {
        Self::new(SIGN_IN_FAILURES)
    }
}

impl SignInFailures {
    /// None yet; so many are one too many.
    pub fn new(most: u32) -> Self {
        Self {
            most,
            began: Instant::now(),
            any_until_ms: AtomicU64::new(0),
            counts: Mutex::default(),
        }
    }

    /// Whether any claimant may not be heard now: if not, there is no need to ask who.
    pub fn any(&self) -> bool {
        let until = self.any_until_ms.load(Ordering::Relaxed);
        until != 0 && self.since_began_ms() < until
    }

    /// Whether an address has failed too often to be heard now, with this claim.
    pub fn are_too_many(&self, address: IpAddr, claim: &str) -> bool {
        if !self.any() {
            return false;
        }
        let now = Instant::now();
        let claimant = (neighbourhood(address), claim.to_owned());
        self.counts
            .lock()
            .get(&claimant)
            .is_some_and(|count| !count.is_over(now) && count.failures >= self.most)
    }

    /// Counts a failure. Says whether it is the one after which the claimant is not heard.
    pub fn add(&self, address: IpAddr, claim: &str) -> bool {
        let now = Instant::now();
        let mut counts = self.counts.lock();
        let claimant = (neighbourhood(address), claim.to_owned());
        if counts.len() >= SIGN_IN_COUNTS && !counts.contains_key(&claimant) {
            counts.retain(|_, count| !count.is_over(now));
            if counts.len() >= SIGN_IN_COUNTS {
                let oldest = counts.iter().min_by_key(|(_, count)| count.since);
                let oldest = oldest.map(|(claimant, _)| claimant.clone());
                oldest.and_then(|oldest| counts.remove(&oldest));
            }
        }
        let fresh = Count {
            since: now,
            failures: 0,
        };
        let count = counts.entry(claimant).or_insert(fresh);
        if count.is_over(now) {
            *count = fresh;
        }
        count.failures = count.failures.saturating_add(1);
        if count.failures >= self.most {
            let window_ms = u64::try_from(SIGN_IN_WINDOW.as_millis()).unwrap_or(u64::MAX);
            let until = self.since_began_ms().saturating_add(window_ms).max(1);
            self.any_until_ms.fetch_max(until, Ordering::Relaxed);
        }
        count.failures == self.most
    }

    fn since_began_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Count {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= SIGN_IN_WINDOW
    }
}

/// An address as it is counted: one host may use all addresses of an IPv6 network of 64 bits.
pub fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_fails_often_is_not_heard_and_others_are() {
        let failures = SignInFailures::default();
        let [one, neighbour, other]: [IpAddr; 3] =
            ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(|text| text.parse().unwrap());
        for number in 1..=SIGN_IN_FAILURES {
            assert!(!failures.any() && !failures.are_too_many(one, "AK"));
            assert_eq!(failures.add(one, "AK"), number == SIGN_IN_FAILURES);
        }
        assert!(failures.any());
        assert!(failures.are_too_many(one, "AK") && failures.are_too_many(neighbour, "AK"));
        assert!(
            !failures.are_too_many(other, "AK"),
            "the same key from elsewhere"
        );
        assert!(!failures.are_too_many(one, "AK2"), "another key from there");
    }

    #[test]
    fn it_remembers_a_bounded_number() {
        let failures = SignInFailures::default();
        for number in 0..SIGN_IN_COUNTS as u32 + 10 {
            failures.add(IpAddr::V4(number.into()), "");
        }
        assert_eq!(failures.counts.lock().len(), SIGN_IN_COUNTS);
    }
}
