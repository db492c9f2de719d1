//! Metrics of sealed copies.

use coffer_vault::{
    CacheStatus, CopyState, CopyStatus, FenceState, FenceStatus, StandbyState, StandbyStatus,
};

use super::Page;

impl Page {
    pub(super) fn copies(&mut self, copies: &[CopyStatus], standby: Option<&StandbyStatus>) {
        self.standby(standby);
        if copies.is_empty() {
            return;
        }
        let name = "coffer_replica_lag_seconds";
        let help = "For how long a sealed copy has not been known to be complete.";
        self.family(name, "gauge", help);
        for copy in copies {
            self.sample(name, &[("replica", &copy.name)], copy.lag_seconds);
        }
        let name = "coffer_replica_lag_bytes";
        let help = "How many bytes of catalogs a sealed copy is behind, as far as is known.";
        self.family(name, "gauge", help);
        for copy in copies {
            self.sample(name, &[("replica", &copy.name)], copy.lag_bytes);
        }
        let name = "coffer_replica_put_bytes_total";
        self.family(name, "counter", "Bytes put into a sealed copy.");
        for copy in copies {
            self.sample(name, &[("replica", &copy.name)], copy.put_bytes);
        }
        let name = "coffer_replica_following";
        let help = "Whether the last attempt to keep a sealed copy up succeeded.";
        self.family(name, "gauge", help);
        for copy in copies {
            let is_following = copy.state == CopyState::Following;
            self.sample(name, &[("replica", &copy.name)], u8::from(is_following));
        }
        let name = "coffer_replica_gaps";
        let help = "How many times within a sealed copy's window it has no state of.";
        self.family(name, "gauge", help);
        for copy in copies {
            self.sample(name, &[("replica", &copy.name)], copy.gaps.len());
        }
        let name = "coffer_replica_buckets_left_out";
        let help = "Buckets that can't be opened, so that a sealed copy goes on without them.";
        self.family(name, "gauge", help);
        for copy in copies {
            self.sample(name, &[("replica", &copy.name)], copy.passed_count);
        }
        if copies.iter().any(|copy| copy.sync.is_some()) {
            self.synchronous_copies(copies);
        }
    }

    /// A server that no copy fences is not fenced off.
    pub(super) fn fence(&mut self, fence: Option<&FenceStatus>) {
        let is_off = fence.is_some_and(|fence| fence.state != FenceState::Alone);
        self.gauge(
            "coffer_fenced_off",
            "Whether nothing is changed here, as another server serves in its place, or may.",
            u8::from(is_off),
        );
    }

    fn synchronous_copies(&mut self, copies: &[CopyStatus]) {
        let all = || {
            let synchronous = |copy: &CopyStatus| Some((copy.name.clone(), copy.sync?));
            copies.iter().filter_map(synchronous).collect::<Vec<_>>()
        };
        let name = "coffer_replica_sync_armed";
        let help = "Whether a synchronous copy has been whole, so that all writes wait for it.";
        self.family(name, "gauge", help);
        for (copy, sync) in all() {
            self.sample(
                name,
                &[("replica", &copy)],
                u8::from(sync.since_ms.is_some()),
            );
        }
        let name = "coffer_replica_sync_waiting";
        self.family(name, "gauge", "Writes that wait for a synchronous copy.");
        for (copy, sync) in all() {
            self.sample(name, &[("replica", &copy)], sync.waiting_count);
        }
        let name = "coffer_replica_sync_in_doubt_total";
        let help = "Writes that a synchronous copy did not take in time: they were in doubt.";
        self.family(name, "counter", help);
        for (copy, sync) in all() {
            self.sample(name, &[("replica", &copy)], sync.in_doubt_count);
        }
    }

    pub(super) fn cache(&mut self, cache: Option<&CacheStatus>) {
        let Some(cache) = cache else {
            return;
        };
        self.counter(
            "coffer_cache_hits_total",
            "Blobs that were asked for and were in a gateway's cache.",
            cache.hits,
        );
        self.counter(
            "coffer_cache_misses_total",
            "Blobs that were asked for and were not there, or not yet.",
            cache.misses,
        );
        self.counter(
            "coffer_cache_fetched_bytes_total",
            "Bytes that a gateway's cache fetched from its store.",
            cache.fetched_bytes,
        );
        self.counter(
            "coffer_cache_failures_total",
            "Blobs that did not come from the store, or were not what they should be.",
            cache.failures,
        );
        self.counter(
            "coffer_cache_evictions_total",
            "Blobs that made room for others in a gateway's cache.",
            cache.evictions,
        );
        self.gauge(
            "coffer_cache_bytes",
            "How long the blobs in a gateway's cache are together, in bytes.",
            cache.bytes,
        );
        self.gauge(
            "coffer_cache_max_bytes",
            "How long they may be, but for those in use or not yet in the store.",
            cache.max_bytes,
        );
    }

    fn standby(&mut self, standby: Option<&StandbyStatus>) {
        let Some(standby) = standby else {
            return;
        };
        self.gauge(
            "coffer_standby_lag_seconds",
            "For how long what a standby serves has not been known to be all that the copy has.",
            standby.lag_seconds,
        );
        self.gauge(
            "coffer_standby_as_of_seconds",
            "As of when what a standby serves is, in seconds since 1970.",
            standby.as_of_ms as f64 / 1_000.0,
        );
        self.gauge(
            "coffer_standby_following",
            "Whether the last attempt of a standby to follow its copy succeeded.",
            u8::from(standby.state == StandbyState::Following),
        );
        self.gauge(
            "coffer_standby_missing_blobs",
            "How many blobs a standby could not fetch that the copy names.",
            standby.missing_count,
        );
        self.counter(
            "coffer_standby_fetched_bytes_total",
            "Bytes that a standby fetched of its copy.",
            standby.fetched_bytes,
        );
    }
}
