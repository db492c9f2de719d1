//! What the vault counts, for metrics; what of it is damage is told in the log as well.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use coffer_seal::{BlobId, BucketId};
use coffer_store::StoreError;
use parking_lot::Mutex;

use crate::limits::{DAMAGED_PLACES_TOLD, REPEATS_WINDOW};
use crate::transfer_counters::{TransferCounters, TransferTally};

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
    /// Requests that the monitor refused, and those for buckets that there are not.
    pub denied_count: u64,
    /// Stored data that did not open.
    pub damage_count: u64,
    /// Writes refused because the disk was full.
    pub storage_full_count: u64,
    /// Blob files that nothing referred to and that were reclaimed.
    pub reclaimed_count: u64,
    /// Blob files that nothing referred to and that were kept, for their catalog was in doubt.
    pub kept_orphan_count: u64,
    /// Versions and delete markers that lifecycle rules removed.
    pub lifecycle_removed_count: u64,
    /// Objects that lifecycle rules hid behind delete markers.
    pub lifecycle_hidden_count: u64,
    /// Uploads that were ended for their age, by rules or the server's setting.
    pub lifecycle_upload_count: u64,
    /// Buckets that runs of lifecycle rules left to the next run, for they were in doubt or could
    /// not be read or written.
    pub lifecycle_postponed_count: u64,
    /// Catalogs open at the moment.
    pub open_catalog_count: u64,
    /// Multipart uploads that were neither completed nor aborted, as of half a minute ago.
    pub open_upload_count: u64,
    /// Sealed transfers.
    pub transfers: TransferCounters,
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
    pub(crate) kept_orphan_count: AtomicU64,
    pub(crate) lifecycle_removed_count: AtomicU64,
    pub(crate) lifecycle_hidden_count: AtomicU64,
    pub(crate) lifecycle_upload_count: AtomicU64,
    pub(crate) lifecycle_postponed_count: AtomicU64,
    pub(crate) transfers: TransferTally,
    damaged: Places,
}

/// Adds to a counter. Counters order nothing, so relaxed will do.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Tally {
    pub(crate) fn damage_count(&self) -> u64 {
        self.damage_count.load(Ordering::Relaxed)
    }

    /// Counts damage, and tells of it in the log: of each place once a minute, and of no object,
    /// for names are secret.
    pub(crate) fn met(&self, error: &StoreError) {
        let StoreError::Damaged { what, bucket, blob } = error else {
            return;
        };
        add(&self.damage_count, 1);
        if !self.damaged.is_news((*bucket, *blob), Instant::now()) {
            return;
        }
        match blob {
            Some(blob) => tracing::error!(
                %bucket, %blob, what,
                "stored data is damaged: `coffer verify` names the object"
            ),
            None => tracing::error!(
                %bucket, what,
                "stored data is damaged: `coffer verify` tells what can still be read"
            ),
        }
    }

    /// Counts an object or a part that was stored.
    pub(crate) fn stored(&self, size_bytes: u64) {
        add(&self.stored_count, 1);
        add(&self.stored_bytes, size_bytes);
    }

    pub(crate) fn snapshot(
        &self,
        open_catalog_count: u64,
        open_upload_count: u64,
        open_transfer_count: u64,
    ) -> Counters {
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
            kept_orphan_count: value(&self.kept_orphan_count),
            lifecycle_removed_count: value(&self.lifecycle_removed_count),
            lifecycle_hidden_count: value(&self.lifecycle_hidden_count),
            lifecycle_upload_count: value(&self.lifecycle_upload_count),
            lifecycle_postponed_count: value(&self.lifecycle_postponed_count),
            open_catalog_count,
            open_upload_count,
            transfers: self.transfers.snapshot(open_transfer_count),
        }
    }
}

/// Places where damage was met of late: a bucket's catalog, or one of its blobs.
#[derive(Debug, Default)]
struct Places(Mutex<HashMap<(BucketId, Option<BlobId>), Instant>>);

impl Places {
    /// Whether a place is to be told of: it was not told of within a minute, and of few others.
    fn is_news(&self, place: (BucketId, Option<BlobId>), now: Instant) -> bool {
        let mut told = self.0.lock();
        told.retain(|_, since| now.duration_since(*since) < REPEATS_WINDOW);
        if told.len() >= DAMAGED_PLACES_TOLD || told.contains_key(&place) {
            return false;
        }
        told.insert(place, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_news_once_a_minute_and_only_so_many_are() {
        let (places, now) = (Places::default(), Instant::now());
        let bucket = BucketId([0; 16]);
        let blob = |number: usize| BlobId((number as u128).to_be_bytes());
        assert!(places.is_news((bucket, None), now));
        assert!(!places.is_news((bucket, None), now));
        let told = (1..10 * DAMAGED_PLACES_TOLD)
            .filter(|number| places.is_news((bucket, Some(blob(*number))), now))
            .count();
        assert_eq!(told, DAMAGED_PLACES_TOLD - 1);
        assert!(places.is_news((bucket, None), now + REPEATS_WINDOW));
    }
}
