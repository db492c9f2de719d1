//! What is counted of sealed transfers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A snapshot of the counters of sealed transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransferCounters {
    /// Those to clients.
    pub sent: TransferEnds,
    /// Those from clients.
    pub received: TransferEnds,
    /// Sealed bytes sent to clients.
    pub sent_bytes: u64,
    /// Sealed bytes received from clients.
    pub received_bytes: u64,
    /// Data keys that were given to clients.
    pub released_key_count: u64,
    /// Objects and parts that came to be stored without being opened, to be opened later.
    pub stored_unverified_count: u64,
    /// Those of them that have opened whole since.
    pub verified_count: u64,
    /// Those that did not, or had another checksum.
    pub verify_failed_count: u64,
    /// Those that were replaced, deleted or never committed before they were opened.
    pub verify_gone_count: u64,
    /// Those that have begun and not ended, at the moment.
    pub open_count: u64,
}

/// How transfers in one direction ended, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferEnds {
    /// All was sent, or received and stored.
    pub done_count: u64,
    /// Broken off: by the client, or because it was no longer let.
    pub cut_count: u64,
    /// Asked for with a ticket that is no good.
    pub refused_count: u64,
    /// What was sent by the client did not open, or what is stored was found altered.
    pub damaged_count: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct TransferTally {
    sent: [AtomicU64; 4],
    received: [AtomicU64; 4],
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) released_key_count: AtomicU64,
    pub(crate) stored_unverified_count: AtomicU64,
    pub(crate) verified_count: AtomicU64,
    pub(crate) verify_failed_count: AtomicU64,
    pub(crate) verify_gone_count: AtomicU64,
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransferEnd {
    Done,
    Cut,
    Refused,
    Damaged,
}

impl TransferTally {
    /// Counts one to a client.
    pub(crate) fn sent(&self, end: TransferEnd) {
        self.sent[end as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one from a client.
    pub(crate) fn received(&self, end: TransferEnd) {
        self.received[end as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self, open_count: u64) -> TransferCounters {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let ends = |counts: &[AtomicU64; 4]| TransferEnds {
            done_count: value(&counts[TransferEnd::Done as usize]),
            cut_count: value(&counts[TransferEnd::Cut as usize]),
            refused_count: value(&counts[TransferEnd::Refused as usize]),
            damaged_count: value(&counts[TransferEnd::Damaged as usize]),
        };
        TransferCounters {
            sent: ends(&self.sent),
            received: ends(&self.received),
            sent_bytes: value(&self.sent_bytes),
            received_bytes: value(&self.received_bytes),
            released_key_count: value(&self.released_key_count),
            stored_unverified_count: value(&self.stored_unverified_count),
            verified_count: value(&self.verified_count),
            verify_failed_count: value(&self.verify_failed_count),
            verify_gone_count: value(&self.verify_gone_count),
            open_count,
        }
    }
}
