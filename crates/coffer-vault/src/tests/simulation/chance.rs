//! What depends on a seed alone.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// Numbers that follow from a seed. Clones draw from the same ones.
#[derive(Clone, Debug)]
pub(super) struct Chance(Arc<Mutex<u64>>);

impl Chance {
    pub(super) fn of(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// The next of SplitMix64.
    fn next(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Of `count` times once; never, where that is 0.
    pub(super) fn once_in(&self, count: u64) -> bool {
        count > 0 && self.below(count) == 0
    }

    pub(super) fn of_these<T: Copy>(&self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize]
    }

    pub(super) fn millis(&self, from: u64, until: u64) -> Duration {
        Duration::from_millis(from + self.below(until - from + 1))
    }
}
