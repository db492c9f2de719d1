//! What the S3 front door counts, for metrics.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// S3's names of the operations that are implemented; requests for others, and those refused
/// before their operation was known, count under the first.
pub const OPERATIONS: [&str; 36] = [
    "Other",
    "AbortMultipartUpload",
    "CompleteMultipartUpload",
    "CopyObject",
    "CreateBucket",
    "CreateMultipartUpload",
    "DeleteBucket",
    "DeleteBucketEncryption",
    "DeleteBucketTagging",
    "DeleteObject",
    "DeleteObjectTagging",
    "DeleteObjects",
    "GetBucketEncryption",
    "GetBucketLocation",
    "GetBucketTagging",
    "GetBucketVersioning",
    "GetObject",
    "GetObjectAttributes",
    "GetObjectTagging",
    "HeadBucket",
    "HeadObject",
    "ListBuckets",
    "ListMultipartUploads",
    "ListObjectVersions",
    "ListObjects",
    "ListObjectsV2",
    "ListParts",
    "PostObject",
    "PutBucketEncryption",
    "PutBucketTagging",
    "PutBucketVersioning",
    "PutObject",
    "PutObjectTagging",
    "RenameObject",
    "UploadPart",
    "UploadPartCopy",
];

/// Statuses that are counted one by one; others count under 0.
const STATUSES: [u16; 20] = [
    200, 201, 204, 206, 303, 304, 400, 403, 404, 405, 409, 411, 412, 416, 500, 501, 503, 507, 408,
    0,
];

/// Bounds between which the times of answers are counted.
pub const TIME_BOUNDS: [Duration; 9] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// How many requests of an operation were answered with a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCount {
    /// S3's name of the operation, or `Other`.
    pub operation: &'static str,
    /// The answer's status, or 0 for a rare one.
    pub status: u16,
    /// How many.
    pub count: u64,
}

/// How long the answers of an operation took until their headers were ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestTime {
    /// S3's name of the operation, or `Other`.
    pub operation: &'static str,
    /// All of them together.
    pub total: Duration,
    /// How many took at most each of [`TIME_BOUNDS`].
    pub within: [u64; TIME_BOUNDS.len()],
    /// How many there were.
    pub count: u64,
}

/// A snapshot of the counters; all since the front door was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct S3Counters {
    /// Requests answered; rows that are zero are left out.
    pub requests: Vec<RequestCount>,
    /// Time until the answers, by operation; rows that are zero are left out.
    pub times: Vec<RequestTime>,
    /// Requests under way, until the last byte of their answer.
    pub in_flight: u64,
    /// Bytes of request bodies.
    pub received_bytes: u64,
    /// Bytes of response bodies.
    pub sent_bytes: u64,
}

/// The counters themselves. They order nothing, so all access is relaxed.
#[derive(Debug)]
pub(crate) struct Tally {
    requests: [[AtomicU64; STATUSES.len()]; OPERATIONS.len()],
    time_us: [AtomicU64; OPERATIONS.len()],
    /// Between one bound and the next; the last is beyond all of them.
    times: [[AtomicU64; TIME_BOUNDS.len() + 1]; OPERATIONS.len()],
    pub(crate) in_flight: AtomicI64,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            requests: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            time_us: std::array::from_fn(|_| AtomicU64::new(0)),
            times: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            in_flight: AtomicI64::new(0),
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
        }
    }
}

/// An operation's place in [`OPERATIONS`].
pub(crate) fn operation_index(name: &str) -> usize {
    OPERATIONS
        .iter()
        .position(|operation| *operation == name)
        .unwrap_or(0)
}

impl Tally {
    pub(crate) fn answered(&self, operation: usize, status: u16, after: Duration) {
        let column = STATUSES
            .iter()
            .position(|counted| *counted == status)
            .unwrap_or(STATUSES.len() - 1);
        self.requests[operation][column].fetch_add(1, Ordering::Relaxed);
        let after_us = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
        self.time_us[operation].fetch_add(after_us, Ordering::Relaxed);
        let place = TIME_BOUNDS.partition_point(|bound| *bound < after);
        self.times[operation][place].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn time(&self, operation: usize) -> Option<RequestTime> {
        let mut count = 0;
        let within = std::array::from_fn(|bound| {
            count += self.times[operation][bound].load(Ordering::Relaxed);
            count
        });
        count += self.times[operation][TIME_BOUNDS.len()].load(Ordering::Relaxed);
        (count > 0).then(|| RequestTime {
            operation: OPERATIONS[operation],
            total: Duration::from_micros(self.time_us[operation].load(Ordering::Relaxed)),
            within,
            count,
        })
    }

    pub(crate) fn snapshot(&self) -> S3Counters {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut requests = Vec::new();
        let mut times = Vec::new();
        for (index, operation) in OPERATIONS.into_iter().enumerate() {
            for (status, counter) in STATUSES.into_iter().zip(&self.requests[index]) {
                let count = value(counter);
                if count > 0 {
                    requests.push(RequestCount {
                        operation,
                        status,
                        count,
                    });
                }
            }
            times.extend(self.time(index));
        }
        S3Counters {
            requests,
            times,
            in_flight: self.in_flight.load(Ordering::Relaxed).max(0).unsigned_abs(),
            received_bytes: value(&self.received_bytes),
            sent_bytes: value(&self.sent_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_by_operation_and_status() {
        let tally = Tally::default();
        let get = operation_index("GetObject");
        tally.answered(get, 206, Duration::from_millis(1));
        tally.answered(get, 206, Duration::from_secs(61));
        tally.answered(operation_index("GetBucketAcl"), 418, Duration::ZERO);
        let row = |operation, status, count| RequestCount {
            operation,
            status,
            count,
        };
        let counters = tally.snapshot();
        assert_eq!(
            counters.requests,
            [row("Other", 0, 1), row("GetObject", 206, 2)]
        );
        assert_eq!(
            counters.times,
            [
                RequestTime {
                    operation: "Other",
                    total: Duration::ZERO,
                    within: [1; TIME_BOUNDS.len()],
                    count: 1,
                },
                RequestTime {
                    operation: "GetObject",
                    total: Duration::from_millis(61_001),
                    within: [0, 1, 1, 1, 1, 1, 1, 1, 1],
                    count: 2,
                },
            ]
        );
    }
}
