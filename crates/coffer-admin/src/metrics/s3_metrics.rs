//! What the S3 front door counts, in the words of metrics. The program hands it over: front doors
//! stand side by side and do not know each other.

use std::time::Duration;

/// The counters of the S3 front door at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Metrics {
    /// Operation, status of the answer (0 for a rare one), how many.
    pub answered: Vec<(&'static str, u16, u64)>,
    /// How long answers took.
    pub times: Vec<S3Time>,
    /// S3Metrics under way.
    pub in_flight_count: u64,
    /// Bytes of request bodies.
    pub received_bytes: u64,
    /// Bytes of response bodies.
    pub sent_bytes: u64,
}

/// How long the answers of an operation took, until their heads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Time {
    /// The operation.
    pub operation: &'static str,
    /// All of them together.
    pub total: Duration,
    /// Bounds, and how many took at most so long.
    pub within: Vec<(Duration, u64)>,
    /// How many there were.
    pub count: u64,
}
