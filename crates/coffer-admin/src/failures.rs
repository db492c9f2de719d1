//! Failed sign-ins, counted for each address, so that nobody can guess quickly.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::{SIGN_IN_ADDRESSES, SIGN_IN_FAILURES, SIGN_IN_WINDOW};

/// Failed sign-ins of late.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, Count>>);

#[derive(Debug, Clone, Copy)]
struct Count {
    since: Instant,
    failures: u32,
}

impl Failures {
    /// Whether an address has failed too often to be heard now.
    pub(crate) fn are_too_many(&self, address: IpAddr) -> bool {
        let now = Instant::now();
        self.lock()
            .get(&neighbourhood(address))
            .is_some_and(|count| !count.is_over(now) && count.failures >= SIGN_IN_FAILURES)
    }

    /// Counts a failure.
    pub(crate) fn add(&self, address: IpAddr) {
        let now = Instant::now();
        let mut counts = self.lock();
        let address = neighbourhood(address);
        if counts.len() >= SIGN_IN_ADDRESSES && !counts.contains_key(&address) {
            counts.retain(|_, count| !count.is_over(now));
            if counts.len() >= SIGN_IN_ADDRESSES {
                let oldest = counts.iter().min_by_key(|(_, count)| count.since);
                let oldest = oldest.map(|(address, _)| *address);
                oldest.and_then(|oldest| counts.remove(&oldest));
            }
        }
        let fresh = Count {
            since: now,
            failures: 0,
        };
        let count = counts.entry(address).or_insert(fresh);
        if count.is_over(now) {
            *count = fresh;
        }
        count.failures = count.failures.saturating_add(1);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Count>> {
        // Nothing that runs under this lock panics half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.since) >= SIGN_IN_WINDOW
    }
}

/// One host may use all addresses of an IPv6 network of 64 bits.
fn neighbourhood(address: IpAddr) -> IpAddr {
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
        let failures = Failures::default();
        let [one, neighbour, other]: [IpAddr; 3] =
            ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(|text| text.parse().unwrap());
        for _ in 0..SIGN_IN_FAILURES {
            assert!(!failures.are_too_many(one));
            failures.add(one);
        }
        assert!(failures.are_too_many(one) && failures.are_too_many(neighbour));
        assert!(!failures.are_too_many(other));
    }

    #[test]
    fn it_remembers_a_bounded_number_of_addresses() {
        let failures = Failures::default();
        for number in 0..SIGN_IN_ADDRESSES as u32 + 10 {
            failures.add(IpAddr::V4(number.into()));
        }
        assert_eq!(failures.lock().len(), SIGN_IN_ADDRESSES);
    }
}
