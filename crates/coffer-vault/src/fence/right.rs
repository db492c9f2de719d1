//! The right of a gateway of an engine to serve, for as long as its lease holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::error::{CopyError, Result};

/// Until when a gateway may serve. Clones are the same. One that was ended never holds again: each
/// time that the lease is taken has a right of its own.
///
/// Time is that of the clock that runs on while the machine sleeps: a gateway that was paused, or
/// whose machine was, finds that its right has ended.
#[derive(Clone, Debug, Default)]
pub struct ServingRight(Arc<AtomicU64>);

/// In place of a time, of a right that was ended.
const ENDED: u64 = u64::MAX;

impl ServingRight {
    /// It holds until then, by [`ServingRight::now`].
    pub(crate) fn extend(&self, until: Duration) {
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        let until = until.min(ENDED - 1);
        self.0.fetch_max(until, Ordering::SeqCst);
    }

    /// It holds no more.
    pub(crate) fn end(&self) {
        self.0.store(ENDED, Ordering::SeqCst);
    }

    /// Whether it holds.
    pub fn holds(&self) -> bool {
        let until = self.0.load(Ordering::SeqCst);
        let now = u64::try_from(Self::now().as_millis()).unwrap_or(u64::MAX);
        until != ENDED && until > now
    }

    /// Refuses what is begun without it.
    ///
    /// # Errors
    /// [`CopyError::LeaseEnded`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.holds() {
            Ok(())
        } else {
            Err(CopyError::LeaseEnded.into())
        }
    }

    /// Since the machine was started.
    pub(crate) fn now() -> Duration {
        #[cfg(test)]
        if let Some(now) = BOOT_TIME.get() {
            return now;
        }
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    }
}

#[cfg(test)]
thread_local! {
    /// What this thread takes for the time since the machine was started: several machines are
    /// simulated in it, each with a clock of its own.
    pub(crate) static BOOT_TIME: std::cell::Cell<Option<Duration>> = const {
        std::cell::Cell::new(None)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_for_as_long_as_was_said_and_not_before() {
        let right = ServingRight::default();
        assert!(!right.holds());
        right.extend(ServingRight::now() + Duration::from_millis(40));
        assert!(right.holds() && right.clone().holds());
        // An answer that comes late takes nothing back.
        right.extend(ServingRight::now() - Duration::from_millis(1));
        assert!(right.holds());
        std::thread::sleep(Duration::from_millis(60));
        assert!(!right.holds());
        right.extend(ServingRight::now() + Duration::from_secs(60));
        right.end();
        assert!(!right.holds());
        // Nor does a renewal that was under way have it hold again.
        right.extend(ServingRight::now() + Duration::from_secs(60));
        assert!(!right.holds());
    }
}
