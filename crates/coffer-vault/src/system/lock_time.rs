//! The time by which locks end. It never runs faster than the boot-time clock while the server
//! runs, so that no change of the wall clock ends a lock; across a stop it follows the wall clock,
//! for a bounded stretch. It never runs backwards.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::System;
use super::documents::{DocumentId, Kind};
use crate::error::Result;
use crate::limits::{LOCK_TIME_KEPT_EVERY_MS, LOCK_TIME_STOP_MAX_MS};

/// How far lock time had come, and the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    lock_ms: i64,
    wall_ms: i64,
}

/// The time by which locks end.
#[derive(Debug)]
pub(crate) struct LockTime {
    /// What it was when the server began, raised by what was confirmed since.
    begun_ms: AtomicI64,
    begun: Duration,
    /// What it was when it was kept last. One keeps it at a time: what is kept never goes back.
    kept_ms: Mutex<i64>,
}

/// What a start found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    /// By how much the wall clock moved while the server was stopped, in milliseconds.
    pub(crate) wall_ms: i64,
    /// By how much lock time follows.
    pub(crate) followed_ms: i64,
}

impl LockTime {
    /// Goes on from what was kept. Tells of a wall clock that lock time does not follow.
    pub(crate) fn open(system: &System, wall_ms: i64) -> Result<(Self, Option<Jump>)> {
        let kept: Option<Kept> = system.document(Kind::LockTime, DocumentId::ONLY)?;
        let (begun_ms, jump) = match kept {
            None => (wall_ms, None),
            Some(kept) => go_on(kept, wall_ms),
        };
        let time = Self {
            begun_ms: AtomicI64::new(begun_ms),
            begun: since_boot(),
            kept_ms: Mutex::new(0),
        };
        // On a full disk it is kept later: what was kept before is less, so locks end later.
        if let Err(error) = time.keep(system, wall_ms) {
            tracing::warn!(%error, "the time by which object locks end is kept later");
        }
        Ok((time, jump))
    }

    /// The time by which locks end, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> i64 {
        let begun_ms = self.begun_ms.load(Ordering::Acquire);
        begun_ms.saturating_add(self.elapsed_ms())
    }

    fn elapsed_ms(&self) -> i64 {
        let elapsed = since_boot().saturating_sub(self.begun);
        i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
    }

    /// Keeps how far it has come.
    pub(crate) fn keep(&self, system: &System, wall_ms: i64) -> Result<()> {
        let mut kept_ms = self.kept_ms.lock();
        let lock_ms = self.now_ms();
        keep_both(system, Kept { lock_ms, wall_ms })?;
        *kept_ms = lock_ms;
        Ok(())
    }

    /// Sets it forward to this time, durably; a time that it has passed changes nothing.
    pub(crate) fn advance(&self, system: &System, to_ms: i64, wall_ms: i64) -> Result<()> {
        let mut kept_ms = self.kept_ms.lock();
        let lock_ms = self.now_ms().max(to_ms);
        keep_both(system, Kept { lock_ms, wall_ms })?;
        *kept_ms = lock_ms;
        self.raise(to_ms);
        Ok(())
    }

    fn raise(&self, to_ms: i64) {
        let begun_ms = to_ms.saturating_sub(self.elapsed_ms());
        self.begun_ms.fetch_max(begun_ms, Ordering::AcqRel);
    }

    /// Keeps how far it has come, where that was last done long ago.
    pub(crate) fn keep_when_due(&self, system: &System, wall_ms: i64) -> Result<()> {
        let since_ms = self.now_ms() - *self.kept_ms.lock();
        if since_ms < LOCK_TIME_KEPT_EVERY_MS {
            return Ok(());
        }
        self.keep(system, wall_ms)
    }
}

fn keep_both(system: &System, kept: Kept) -> Result<()> {
    system.keep(Kind::LockTime, DocumentId::ONLY, &kept)
}

fn go_on(kept: Kept, wall_ms: i64) -> (i64, Option<Jump>) {
    let moved_ms = wall_ms.saturating_sub(kept.wall_ms);
    let followed_ms = moved_ms.clamp(0, LOCK_TIME_STOP_MAX_MS);
    let jump = Jump {
        wall_ms: moved_ms,
        followed_ms,
    };
    let begun_ms = kept.lock_ms.saturating_add(followed_ms);
    (begun_ms, (moved_ms != followed_ms).then_some(jump))
}

/// Since the machine started, also while it was suspended. No change of the wall clock moves it.
fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 24 * 3_600 * 1_000;

    #[test]
    fn across_a_stop_it_follows_the_wall_clock_for_a_week_at_most() {
        let kept = Kept {
            lock_ms: 1_000 * DAY_MS,
            wall_ms: 1_001 * DAY_MS,
        };
        let moved = |days: i64| {
            let (begun_ms, jump) = go_on(kept, kept.wall_ms + days * DAY_MS);
            (begun_ms / DAY_MS, jump.is_some())
        };
        assert_eq!(moved(0), (1_000, false));
        assert_eq!(moved(6), (1_006, false));
        assert_eq!(moved(7), (1_007, false));
        assert_eq!(moved(8), (1_007, true));
        assert_eq!(moved(40_000), (1_007, true));
        assert_eq!(moved(-5), (1_000, true), "never backwards");
    }

    #[test]
    fn it_goes_on_by_itself_and_forward_alone() {
        let time = LockTime {
            begun_ms: AtomicI64::new(5),
            begun: since_boot(),
            kept_ms: Mutex::new(0),
        };
        std::thread::sleep(Duration::from_millis(20));
        assert!((25..2_000).contains(&time.now_ms()));
        time.raise(1_000 * DAY_MS);
        let raised_ms = time.now_ms();
        assert!((1_000 * DAY_MS..1_000 * DAY_MS + 2_000).contains(&raised_ms));
        time.raise(999 * DAY_MS);
        assert!(time.now_ms() >= raised_ms);
    }
}
