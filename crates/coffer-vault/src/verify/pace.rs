//! How fast a verification goes.

use std::time::{Duration, Instant};

/// Sleeps as needed to stay below a rate.
pub(super) struct Pace {
    rate_bytes_per_second: Option<u64>,
    began: Instant,
}

impl Pace {
    pub(super) fn new(rate_bytes_per_second: Option<u64>) -> Self {
        Self {
            rate_bytes_per_second,
            began: Instant::now(),
        }
    }

    pub(super) async fn keep(&self, done_bytes: u64) {
        let Some(rate) = self.rate_bytes_per_second.filter(|rate| *rate > 0) else {
            return;
        };
        let due = Duration::from_secs_f64(done_bytes as f64 / rate as f64);
        tokio::time::sleep(due.saturating_sub(self.began.elapsed())).await;
    }
}
