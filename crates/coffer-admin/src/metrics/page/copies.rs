//! Metrics of sealed copies.

use coffer_vault::{CopyState, CopyStatus};

use super::Page;

impl Page {
    pub(super) fn copies(&mut self, copies: &[CopyStatus]) {
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
    }
}
