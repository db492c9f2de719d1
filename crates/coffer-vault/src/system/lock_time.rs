//! The time by which locks end. It never runs faster than the boot-time clock while the server
//! runs, so that no change of the wall clock ends a lock; across a stop it follows the wall clock,
//! for a bounded stretch and never past it. It never runs backwards.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::System;
use super::documents::{DocumentId, Kind};
use crate::error::Result;
use crate::limits::{LOCK_TIME_JUMP_MS, LOCK_TIME_KEPT_EVERY_MS, LOCK_TIME_STOP_MAX_MS};

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
    /// What was kept last, if it was. One keeps it at a time: what is kept never goes back.
    kept: Mutex<Option<Kept>>,
    /// How far the wall clock was from the time since boot when that was looked at last.
    apart_ms: AtomicI64,
}

/// A wall clock that lock time does not follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    /// By how much the wall clock moved, in milliseconds.
    pub(crate) wall_ms: i64,
    /// By how much lock time follows.
    pub(crate) followed_ms: i64,
    /// Whether the server was running, rather than stopped.
    pub(crate) is_running: bool,
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
            kept: Mutex::new(None),
            apart_ms: AtomicI64::new(apart_ms(wall_ms)),
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
        let mut kept = self.kept.lock();
        let lock_ms = self.now_ms();
        *kept = Some(keep_both(system, Kept { lock_ms, wall_ms })?);
        Ok(())
    }

    /// Sets it forward to this time, durably; a time that it has passed changes nothing.
    pub(crate) fn advance(&self, system: &System, to_ms: i64, wall_ms: i64) -> Result<()> {
        let mut kept = self.kept.lock();
        let lock_ms = self.now_ms().max(to_ms);
        *kept = Some(keep_both(system, Kept { lock_ms, wall_ms })?);
        self.raise(to_ms);
        Ok(())
    }

    fn raise(&self, to_ms: i64) {
        let begun_ms = to_ms.saturating_sub(self.elapsed_ms());
        self.begun_ms.fetch_max(begun_ms, Ordering::AcqRel);
    }

    /// Keeps how far it has come, where that was last done long ago, or by another wall clock: one
    /// that is put right while the server runs moves nothing at the next start.
    pub(crate) fn keep_when_due(&self, system: &System, wall_ms: i64) -> Result<()> {
        let is_due = match *self.kept.lock() {
            None => true,
            Some(kept) => {
                let since_ms = self.now_ms().saturating_sub(kept.lock_ms);
                let moved_ms = wall_ms.saturating_sub(kept.wall_ms);
                since_ms >= LOCK_TIME_KEPT_EVERY_MS || is_jump(moved_ms, since_ms)
            }
        };
        if is_due {
            self.keep(system, wall_ms)
        } else {
            Ok(())
        }
    }

    /// Whether the wall clock was set since this was looked at last, while the server ran.
    pub(crate) fn look(&self, wall_ms: i64) -> Option<Jump> {
        let apart_ms = apart_ms(wall_ms);
        let before_ms = self.apart_ms.load(Ordering::Acquire);
        if !is_jump(apart_ms, before_ms) {
            return None;
        }
        // Of two that look at once, one tells.
        let swapped = self.apart_ms.compare_exchange(
            before_ms,
            apart_ms,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        swapped.ok().map(|_| Jump {
            wall_ms: apart_ms.saturating_sub(before_ms),
            followed_ms: 0,
            is_running: true,
        })
    }
}

fn keep_both(system: &System, kept: Kept) -> Result<Kept> {
    system.keep(Kind::LockTime, DocumentId::ONLY, &kept)?;
    Ok(kept)
}

fn go_on(kept: Kept, wall_ms: i64) -> (i64, Option<Jump>) {
    let moved_ms = wall_ms.saturating_sub(kept.wall_ms);
    let bounded_ms = moved_ms.clamp(0, LOCK_TIME_STOP_MAX_MS);
    // What the wall clock showed may have been behind, and is right now: a stop carries lock time
    // up to the wall clock, and not past it.
    let behind_ms = wall_ms.saturating_sub(kept.lock_ms).max(0);
    let followed_ms = bounded_ms.min(behind_ms);
    let jump = Jump {
        wall_ms: moved_ms,
        followed_ms,
        is_running: false,
    };
    let begun_ms = kept.lock_ms.saturating_add(followed_ms);
    (begun_ms, is_jump(moved_ms, followed_ms).then_some(jump))
}

/// Whether two clocks went so far apart that one of them was set.
fn is_jump(one_ms: i64, other_ms: i64) -> bool {
    one_ms.abs_diff(other_ms) >= LOCK_TIME_JUMP_MS
}

/// How far the wall clock is from the time since boot.
fn apart_ms(wall_ms: i64) -> i64 {
    let since_boot_ms = i64::try_from(since_boot().as_millis()).unwrap_or(i64::MAX);
    wall_ms.saturating_sub(since_boot_ms)
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
    fn no_stop_carries_it_past_the_wall_clock() {
        let now_ms = 1_000 * DAY_MS;
        // Kept while the wall clock was five days behind, which is right again.
        let kept = Kept {
            lock_ms: now_ms,
            wall_ms: now_ms - 5 * DAY_MS,
        };
        let (begun_ms, jump) = go_on(kept, now_ms + 1_000);
        assert_eq!(begun_ms, now_ms + 1_000);
        assert_eq!(jump.unwrap().followed_ms, 1_000);
        // Over and over.
        let mut kept = kept;
        for _ in 0..10 {
            let (lock_ms, _) = go_on(kept, now_ms - 5 * DAY_MS);
            let wall_ms = now_ms - 5 * DAY_MS;
            (kept.lock_ms, _) = go_on(Kept { lock_ms, wall_ms }, now_ms);
        }
        assert_eq!(kept.lock_ms, now_ms);
        // One that is ahead, for the wall clock was, waits for it.
        let ahead = Kept {
            lock_ms: now_ms + 9 * DAY_MS,
            wall_ms: now_ms,
        };
        assert_eq!(go_on(ahead, now_ms + 3 * DAY_MS).0, ahead.lock_ms);
    }

    #[test]
    fn a_clock_that_is_set_back_and_right_again_gains_a_week_a_restart_up_to_the_day_it_is() {
        let now_ms = 1_000 * DAY_MS;
        // Behind by twenty days, after a long stop.
        let mut kept = Kept {
            lock_ms: now_ms - 20 * DAY_MS,
            wall_ms: now_ms,
        };
        let mut behind_days = Vec::new();
        for _ in 0..4 {
            for wall_ms in [now_ms - 30 * DAY_MS, now_ms] {
                let (lock_ms, jump) = go_on(kept, wall_ms);
                let is_back = wall_ms < now_ms;
                assert!(jump.is_some(), "that a clock moved by a month is told");
                assert!(!is_back || lock_ms == kept.lock_ms);
                kept = Kept { lock_ms, wall_ms };
            }
            behind_days.push((now_ms - kept.lock_ms) / DAY_MS);
        }
        assert_eq!(behind_days, [13, 6, 0, 0]);
        // By a week at most, it looks like a stop once it is set right.
        let back = Kept {
            lock_ms: now_ms - 20 * DAY_MS,
            wall_ms: now_ms - 7 * DAY_MS,
        };
        assert_eq!(go_on(back, now_ms), (now_ms - 13 * DAY_MS, None));
        // One that is set ahead is followed for a week, whatever day it is.
        let right = Kept {
            lock_ms: now_ms,
            wall_ms: now_ms,
        };
        assert_eq!(go_on(right, now_ms + 7 * DAY_MS).0, now_ms + 7 * DAY_MS);
        assert_eq!(go_on(right, now_ms + 90 * DAY_MS).0, now_ms + 7 * DAY_MS);
    }

    fn running_from(begun_ms: i64, wall_ms: i64) -> LockTime {
        LockTime {
            begun_ms: AtomicI64::new(begun_ms),
            begun: since_boot(),
            kept: Mutex::new(None),
            apart_ms: AtomicI64::new(apart_ms(wall_ms)),
        }
    }

    #[test]
    fn a_clock_that_is_set_while_it_runs_is_told_once() {
        let wall_ms = 1_000 * DAY_MS;
        let time = running_from(wall_ms, wall_ms);
        assert_eq!(time.look(wall_ms + 5_000), None, "a clock may drift");
        for days in [30, -5] {
            let jump = time.look(wall_ms + days * DAY_MS).unwrap();
            assert!(jump.is_running && jump.followed_ms == 0);
            let before_days = if days == 30 { 0 } else { 30 };
            let moved_ms = (days - before_days) * DAY_MS;
            assert!(jump.wall_ms.abs_diff(moved_ms) < 5_000, "{jump:?}");
            assert_eq!(time.look(wall_ms + days * DAY_MS), None);
        }
    }

    #[test]
    fn it_goes_on_by_itself_and_forward_alone() {
        let time = running_from(5, 5);
        std::thread::sleep(Duration::from_millis(20));
        assert!((25..2_000).contains(&time.now_ms()));
        time.raise(1_000 * DAY_MS);
        let raised_ms = time.now_ms();
        assert!((1_000 * DAY_MS..1_000 * DAY_MS + 2_000).contains(&raised_ms));
        time.raise(999 * DAY_MS);
        assert!(time.now_ms() >= raised_ms);
    }
}
