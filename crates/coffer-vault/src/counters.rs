//! What the vault counts, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of the counters; all since the vault was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Bytes of plaintext sealed and committed.
    pub stored_bytes: u64,
    /// Bytes of plaintext opened and given out.
    pub read_bytes: u64,
    /// Objects and parts committed.
    pub stored_count: u64,
    /// Objects whose reading began.
    pub read_count: u64,
    /// Requests that the monitor refused.
    pub denied_count: u64,
    /// Stored data that did not open.
    pub damage_count: u64,
    /// Writes refused because the disk was full.
    pub storage_full_count: u64,
    /// Blob files that nothing referred to and that were reclaimed.
    pub reclaimed_count: u64,
    /// Catalogs open at the moment.
    pub open_catalog_count: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) stored_bytes: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    pub(crate) stored_count: AtomicU64,
    pub(crate) read_count: AtomicU64,
    pub(crate) denied_count: AtomicU64,
    pub(crate) damage_count: AtomicU64,
    pub(crate) storage_full_count: AtomicU64,
    pub(crate) reclaimed_count: AtomicU64,
}

/// Adds to a counter. Counters order nothing, so relaxed will do.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Tally {
    pub(crate) fn damage_count(&self) -> u64 {
        self.damage_count.load(Ordering::Relaxed)
    }

    pub(crate) fn snapshot(&self, open_catalog_count: u64) -> Counters {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            stored_bytes: value(&self.stored_bytes),
            read_bytes: value(&self.read_bytes),
            stored_count: value(&self.stored_count),
            read_count: value(&self.read_count),
            denied_count: value(&self.denied_count),
            damage_count: value(&self.damage_count),
            storage_full_count: value(&self.storage_full_count),
            reclaimed_count: value(&self.reclaimed_count),
            open_catalog_count,
        }
    }
}
