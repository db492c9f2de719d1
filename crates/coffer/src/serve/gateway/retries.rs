//! How often a gateway tries again what failed, and how often it says so.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use crate::limits::{GATEWAY_FAILURES_TOLD_EVERY, GATEWAY_RETRY, GATEWAY_RETRY_MAX};
use crate::serve::signals::Signals;

/// Attempts at one thing that may fail for long.
pub struct Retries {
    wait: Duration,
    told: Option<Instant>,
    has_succeeded: bool,
}

impl Default for Retries {
    /// Nothing has failed yet, nor gone well.
    fn default() -> Self {
        Self {
            wait: GATEWAY_RETRY,
            told: None,
            has_succeeded: false,
        }
    }
}

impl Retries {
    /// It went well: the next failure is followed by a short wait.
    pub fn succeeded(&mut self) {
        self.wait = GATEWAY_RETRY;
        self.has_succeeded = true;
    }

    /// Whether it has never gone well.
    pub fn are_none_yet(&self) -> bool {
        !self.has_succeeded
    }

    /// Whether it failed the last time.
    pub fn are_under_way(&self) -> bool {
        self.wait > GATEWAY_RETRY
    }

    /// Whether a failure is to be told now: the first is, and then one a minute.
    pub fn are_told(&mut self) -> bool {
        let told = self.told.map(|told| told.elapsed());
        let is_due = told.is_none_or(|since| since >= GATEWAY_FAILURES_TOLD_EVERY);
        if is_due {
            self.told = Some(Instant::now());
        }
        is_due
    }

    /// How long to wait before the next attempt: twice as long each time.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.wait;
        self.wait = (wait * 2).min(GATEWAY_RETRY_MAX);
        wait
    }

    /// Waits for the next attempt; whether a signal has asked for the end meanwhile.
    pub async fn are_ended_by(&mut self, signals: &mut Signals) -> bool {
        timeout(self.next_wait(), signals.next()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_it_goes_well_and_failures_are_told_once_a_minute() {
        let mut retries = Retries::default();
        let tells = [retries.are_told(), retries.are_told(), retries.are_told()];
        assert_eq!(tells, [true, false, false]);
        let waits: Vec<_> = (0..8).map(|_| retries.next_wait()).collect();
        assert_eq!(waits[..2], [GATEWAY_RETRY, GATEWAY_RETRY * 2]);
        assert_eq!(waits[7], GATEWAY_RETRY_MAX);
        assert!(retries.are_under_way() && retries.are_none_yet());
        retries.succeeded();
        assert!(!retries.are_under_way() && !retries.are_none_yet());
        assert_eq!(retries.next_wait(), GATEWAY_RETRY);
        assert!(!retries.are_told(), "it was told a moment ago");
    }
}
