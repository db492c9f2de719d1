//! How slow a peer may be.
//!
//! While the server waits for a peer, the peer must move a minimum of bytes in every period, or
//! it is cut off. The time that the server itself takes does not count.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::limits::Limits;

/// How many steps a period has.
const STEPS: u32 = 8;

/// What is asked of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MinimumRate {
    /// So many bytes…
    pub bytes: u64,
    /// …in this long.
    pub period: Duration,
}

impl MinimumRate {
    /// The slowest that a client may be.
    pub fn of(limits: &Limits) -> Self {
        Self {
            bytes: limits.progress_min_bytes,
            period: Duration::from_secs(limits.progress_timeout_seconds),
        }
    }
}

/// The peer moved too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client moved too few bytes in the time allowed and was cut off")]
pub struct TooSlow;

/// Watches one direction of a connection.
#[derive(Debug)]
pub struct RateWatch {
    minimum: MinimumRate,
    /// Since when the server waits, and what was moved since.
    waiting: Option<(Instant, u64)>,
    /// Made at the first wait. It is not set anew at every wait, which would cost a lock each
    /// time: when it rings it looks at `waiting` and sleeps on.
    alarm: Option<Pin<Box<Sleep>>>,
    /// As `alarm`, for steps of the period.
    step: Option<Pin<Box<Sleep>>>,
}

impl RateWatch {
    /// A watch for this minimum.
    pub fn new(minimum: MinimumRate) -> Self {
        Self {
            minimum,
            waiting: None,
            alarm: None,
            step: None,
        }
    }

    /// The server waits for the peer. Ready when it has waited for too long; else the task is
    /// woken when that may be so.
    pub fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        let (since, _) = *self.waiting.get_or_insert_with(|| (Instant::now(), 0));
        let deadline = since + self.minimum.period;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(alarm.as_mut().poll(cx));
            if deadline <= Instant::now() {
                return Poll::Ready(TooSlow);
            }
            alarm.as_mut().reset(deadline);
        }
    }

    /// Ready now and then while the server waits, some times in each period.
    pub fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let step = self.minimum.period / STEPS;
        let alarm = self.step.get_or_insert_with(|| Box::pin(sleep(step)));
        ready!(alarm.as_mut().poll(cx));
        alarm.as_mut().reset(Instant::now() + step);
        Poll::Ready(())
    }

    /// The peer moved bytes.
    pub fn moved(&mut self, bytes: u64) {
        if let Some((_, moved)) = &mut self.waiting {
            *moved += bytes;
            if *moved >= self.minimum.bytes {
                self.waiting = None;
            }
        }
    }

    /// The server does not wait for the peer: there is nothing that it should move.
    pub fn idle(&mut self) {
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::{advance, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    fn pace() -> RateWatch {
        RateWatch::new(MinimumRate {
            bytes: 100,
            period: SECOND * 10,
        })
    }

    async fn cut_off_after(pace: &mut RateWatch) -> Duration {
        let start = Instant::now();
        let cut_off = timeout(SECOND * 1000, poll_fn(|cx| pace.poll_waiting(cx))).await;
        cut_off.expect("cut off in the end");
        start.elapsed()
    }

    async fn not_yet(pace: &mut RateWatch) {
        let polled = poll_fn(|cx| Poll::Ready(pace.poll_waiting(cx))).await;
        assert!(polled.is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_cut_off_when_the_period_ends() {
        let elapsed = cut_off_after(&mut pace()).await;
        assert!((SECOND * 10..SECOND * 11).contains(&elapsed), "{elapsed:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_trickle_does_not_help() {
        let mut pace = pace();
        for _ in 0..9 {
            not_yet(&mut pace).await;
            advance(SECOND).await;
            pace.moved(11);
        }
        assert!(cut_off_after(&mut pace).await <= SECOND * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_minimum_opens_a_new_period() {
        let mut pace = pace();
        for _ in 0..50 {
            not_yet(&mut pace).await;
            advance(SECOND * 9).await;
            pace.moved(100);
        }
        assert!(cut_off_after(&mut pace).await >= SECOND * 10);
    }

    #[tokio::test(start_paused = true)]
    async fn time_that_the_server_takes_does_not_count() {
        let mut pace = pace();
        for _ in 0..50 {
            not_yet(&mut pace).await;
            advance(SECOND * 9).await;
            pace.idle();
            advance(SECOND * 90).await;
        }
        assert!(cut_off_after(&mut pace).await >= SECOND * 10);
    }
}
