//! Whether writing to files makes the writer wait.
//!
//! A write to a file usually ends in the page cache, and handing it to another thread would cost as
//! much as the write. But when too many pages are dirty the kernel lets writers sleep, and with a
//! thread that serves connections would sleep all of these. So writes are made in place until one
//! of them takes long, and then handed over for a while.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::limits::{STALL_MS, STALL_REMEMBERED_MS};

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Until when writes are handed over, in milliseconds since `BEGAN`.
static UNTIL_MS: AtomicU64 = AtomicU64::new(0);

fn now_ms() -> u64 {
    u64::try_from(BEGAN.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Whether a write would probably wait.
pub(crate) fn are_likely() -> bool {
    let until_ms = UNTIL_MS.load(Ordering::Relaxed);
    until_ms != 0 && now_ms() < until_ms
}

/// Takes note of how long a write took.
pub(crate) fn note(took: Duration) {
    if took >= Duration::from_millis(STALL_MS) {
        UNTIL_MS.store(now_ms() + STALL_REMEMBERED_MS, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_write_is_remembered_and_a_short_one_is_not() {
        note(Duration::from_millis(STALL_MS - 1));
        assert!(!are_likely());
        note(Duration::from_millis(STALL_MS));
        assert!(are_likely());
        UNTIL_MS.store(now_ms(), Ordering::Relaxed);
        assert!(!are_likely(), "the memory fades");
    }
}
