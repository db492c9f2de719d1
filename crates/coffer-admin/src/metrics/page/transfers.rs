//! Metrics of sealed transfers.

use coffer_vault::{TransferCounters, TransferEnds};

use super::Page;

impl Page {
    pub(super) fn transfers(&mut self, transfers: &TransferCounters) {
        let name = "coffer_transfers_total";
        let help = "Sealed transfers, by direction and how they ended.";
        self.family(name, "counter", help);
        let directions = [("get", &transfers.sent), ("put", &transfers.received)];
        for (direction, ends) in directions {
            let TransferEnds {
                done_count,
                cut_count,
                refused_count,
                damaged_count,
            } = ends;
            let counts = [
                ("done", done_count),
                ("cut", cut_count),
                ("refused", refused_count),
                ("damaged", damaged_count),
            ];
            for (outcome, count) in counts {
                let labels = [("direction", direction), ("outcome", outcome)];
                self.sample(name, &labels, count);
            }
        }
        self.gauge(
            "coffer_transfers_open",
            "Sealed transfers that have begun and not ended, those that wait among them.",
            transfers.open_count,
        );
        self.counter(
            "coffer_transfer_sent_bytes_total",
            "Sealed bytes sent by the data port.",
            transfers.sent_bytes,
        );
        self.counter(
            "coffer_transfer_received_bytes_total",
            "Sealed bytes received by the data port.",
            transfers.received_bytes,
        );
        self.counter(
            "coffer_data_keys_released_total",
            "Data keys that clients were given for sealed transfers.",
            transfers.released_key_count,
        );
        self.counter(
            "coffer_stored_unverified_total",
            "Objects and parts that were stored as they came, to be opened later.",
            transfers.stored_unverified_count,
        );
        let name = "coffer_verified_later_total";
        let help = "Those of them that were opened since, by whether they are whole.";
        self.family(name, "counter", help);
        let counts = [
            ("whole", &transfers.verified_count),
            ("damaged", &transfers.verify_failed_count),
            ("gone", &transfers.verify_gone_count),
        ];
        for (outcome, count) in counts {
            self.sample(name, &[("outcome", outcome)], count);
        }
    }
}
