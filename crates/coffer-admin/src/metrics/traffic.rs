//! What the S3 listener counts, for metrics: what happens below requests. What happens above is
//! counted by the front door itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of the listener, all since the program started. Counters order nothing among
/// themselves, so relaxed access will do.
#[derive(Debug, Default)]
pub struct Traffic {
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    accepted_count: AtomicU64,
    ended_count: AtomicU64,
    handshake_failed_count: AtomicU64,
    post_quantum_count: AtomicU64,
    cut_off_count: AtomicU64,
    turned_away_count: AtomicU64,
    made_room_count: AtomicU64,
    kept_out_count: AtomicU64,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficSnapshot {
    /// Bytes that came in, as they were on the wire.
    pub received_bytes: u64,
    /// Bytes that went out, as they were on the wire.
    pub sent_bytes: u64,
    /// Connections accepted.
    pub accepted_count: u64,
    /// Connections open at the moment.
    pub open_count: u64,
    /// Connections that ended in or before their TLS handshake.
    pub handshake_failed_count: u64,
    /// Connections whose keys were exchanged by X25519MLKEM768.
    pub post_quantum_count: u64,
    /// Connections that were cut off because they were too slow.
    pub cut_off_count: u64,
    /// Requests that were answered 503 because too many were under way.
    pub turned_away_count: u64,
    /// Idle connections that were closed: for others, or because they had not signed in.
    pub made_room_count: u64,
    /// Connections that were closed at once because their address had as many as it may.
    pub kept_out_count: u64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Traffic {
    /// Bytes came in.
    pub fn received(&self, bytes: u64) {
        add(&self.received_bytes, bytes);
    }

    /// Bytes went out.
    pub fn sent(&self, bytes: u64) {
        add(&self.sent_bytes, bytes);
    }

    /// A connection was accepted.
    pub fn accepted(&self) {
        add(&self.accepted_count, 1);
    }

    /// A connection ended.
    pub fn ended(&self) {
        add(&self.ended_count, 1);
    }

    /// A connection ended in or before its TLS handshake.
    pub fn handshake_failed(&self) {
        add(&self.handshake_failed_count, 1);
    }

    /// A connection's keys were exchanged by X25519MLKEM768.
    pub fn post_quantum(&self) {
        add(&self.post_quantum_count, 1);
    }

    /// A connection was cut off because it was too slow.
    pub fn cut_off(&self) {
        add(&self.cut_off_count, 1);
    }

    /// A request was answered 503 because too many were under way.
    pub fn turned_away(&self) {
        add(&self.turned_away_count, 1);
    }

    /// An idle connection was closed, to make room or because it did not sign in.
    pub fn made_room(&self) {
        add(&self.made_room_count, 1);
    }

    /// A connection was closed at once because its address had its share.
    pub fn kept_out(&self) {
        add(&self.kept_out_count, 1);
    }

    /// The counters now.
    pub fn snapshot(&self) -> TrafficSnapshot {
        let ended_count = value(&self.ended_count);
        let accepted_count = value(&self.accepted_count);
        TrafficSnapshot {
            received_bytes: value(&self.received_bytes),
            sent_bytes: value(&self.sent_bytes),
            accepted_count,
            open_count: accepted_count.saturating_sub(ended_count),
            handshake_failed_count: value(&self.handshake_failed_count),
            post_quantum_count: value(&self.post_quantum_count),
            cut_off_count: value(&self.cut_off_count),
            turned_away_count: value(&self.turned_away_count),
            made_room_count: value(&self.made_room_count),
            kept_out_count: value(&self.kept_out_count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_connections() {
        let traffic = Traffic::default();
        traffic.accepted();
        traffic.accepted();
        traffic.ended();
        assert_eq!(traffic.snapshot().open_count, 1);
    }
}
