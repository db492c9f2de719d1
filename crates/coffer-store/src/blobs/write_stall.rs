//! Whether writing to files makes the writer wait.
//!
//! A write to a file usually ends in the page cache, and handing it to another thread would cost as
//! much as the write. But when too many pages are dirty the kernel lets writers sleep, and with a
//! thread that serves connections would sleep all of these. So writes are made in place until one
//! of them takes long, and then handed over for a while: to one thread, for it is the disk that
//! they wait for, and while that thread is at work a further write costs no change of threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::limits::{STALL_MS, STALL_REMEMBERED_MS};

type Work = Box<dyn FnOnce() + Send>;

/// The thread that waits for the kernel in place of others. Its queue is bounded by those who
/// write: each waits for its last piece before it hands over the next.
static WAITER: LazyLock<mpsc::Sender<Work>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel::<Work>();
    // Without the thread every hand-over fails, and its caller says so.
    let _ = std::thread::Builder::new()
        .name("coffer-write".into())
        .spawn(move || {
            while let Ok(work) = receiver.recv() {
                work();
            }
        });
    sender
});

/// Lets the waiting thread do `work`. The receiver fails if it can't.
pub(crate) fn hand_over<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (done, outcome) = oneshot::channel();
    let _ = WAITER.send(Box::new(move || {
        let _ = done.send(work());
    }));
    outcome
}

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

    #[tokio::test]
    async fn work_is_done_in_order_by_one_other_thread() {
        let outcomes: Vec<_> = (0..3)
            .map(|n| hand_over(move || (n, std::thread::current().id())))
            .collect();
        for (n, outcome) in outcomes.into_iter().enumerate() {
            let (done, by) = outcome.await.unwrap();
            assert_eq!(done, n);
            assert_ne!(by, std::thread::current().id());
        }
    }

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
