//! Whether the clock was set while the server ran.

use std::time::{Duration, Instant, SystemTime};

use crate::limits::CLOCK_JUMP;

/// The time as it was at one moment, by the clock that can be set and by the one that can't.
#[derive(Debug, Clone, Copy)]
pub struct ClockWatch {
    shown: SystemTime,
    at: Instant,
}

impl ClockWatch {
    /// As it is now.
    pub fn now() -> Self {
        Self {
            shown: SystemTime::now(),
            at: Instant::now(),
        }
    }

    /// How long ago that was.
    pub fn since(&self) -> Duration {
        self.at.elapsed()
    }

    /// Whether the clock was set since.
    pub fn was_set(&self) -> bool {
        self.shows_otherwise(SystemTime::now(), self.since())
    }

    fn shows_otherwise(&self, shown: SystemTime, since: Duration) -> bool {
        let expected = self.shown + since;
        let off = shown.duration_since(expected);
        off.unwrap_or_else(|behind| behind.duration()) > CLOCK_JUMP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_and_one_that_runs_is_not() {
        let watch = ClockWatch::now();
        let day = Duration::from_hours(24);
        let shows_otherwise = |shown| watch.shows_otherwise(shown, day);
        assert!(!watch.was_set());
        assert!(!shows_otherwise(watch.shown + day));
        assert!(!shows_otherwise(watch.shown + day + Duration::from_secs(2)));
        assert!(shows_otherwise(watch.shown + day * 2));
        assert!(shows_otherwise(watch.shown));
        assert!(shows_otherwise(SystemTime::UNIX_EPOCH));
    }
}
