//! What a server asked of the kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The system calls of a server, observed from outside in a run that is not timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How many transfers.
    pub transfers: u64,
    /// Bytes that were delivered by all of them.
    pub bytes: u64,
    /// By the names of the calls.
    pub calls: BTreeMap<String, Tally>,
}

/// What calls of one name did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// Bytes that they said they moved, where they move bytes; else 0.
    pub bytes: u64,
}

impl Observed {
    /// System calls of one transfer.
    pub fn calls_of_a_transfer(&self) -> f64 {
        let counts = self.calls.values().map(|tally| tally.count as f64);
        counts.sum::<f64>() / self.transfers as f64
    }

    /// Bytes that the kernel copied into the program or out of it, for each byte delivered.
    pub fn copied(&self) -> f64 {
        self.share(crossing::COPYING)
    }

    /// Bytes that calls moved from one of the kernel's places to another, for each byte delivered.
    pub fn moved_within(&self) -> f64 {
        self.share(crossing::WITHIN)
    }

    fn share(&self, names: &[&str]) -> f64 {
        let tallies = names.iter().filter_map(|name| self.calls.get(*name));
        let bytes = tallies.map(|tally| tally.bytes as f64);
        bytes.sum::<f64>() / self.bytes as f64
    }
}

/// System calls that move bytes, by what that means (their manual pages, section 2).
pub mod crossing {
    /// The kernel copies between its memory and the program's.
    pub const COPYING: &[&str] = &[
        "read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg", "write",
        "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg",
    ];

    /// The program gives an order, and never sees the bytes.
    pub const WITHIN: &[&str] = &["sendfile", "splice", "tee", "copy_file_range"];
}
