//! Clients whose threads wait for what they sent or asked for: sealed transfer moves its bytes so,
//! and what it is compared with does as well.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::error::Result;

/// Does pieces of work, by number, on so many threads: each takes the next when it has done its
/// last. `begin` makes what a thread uses, before the clock starts. The first error ends it.
pub fn share<T, W>(threads: usize, count: usize, begin: T) -> Result<Duration>
where
    T: Fn() -> Result<W> + Sync,
    W: FnMut(usize) -> Result<()>,
{
    let (next, start) = (AtomicUsize::new(0), Barrier::new(threads + 1));
    let work = || {
        let ready = begin();
        start.wait();
        let mut ready = ready?;
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return Ok(());
            }
            if let Err(error) = ready(number) {
                next.store(count, Relaxed);
                return Err(error);
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        start.wait();
        let begun = Instant::now();
        let mut outcome = Ok(());
        for worker in workers {
            let ended = worker.join();
            let ended = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            outcome = outcome.and(ended);
        }
        outcome.map(|()| begun.elapsed())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::BenchError;

    #[test]
    fn all_is_done_once_and_an_error_ends_it() {
        let done: Vec<_> = (0..50).map(|_| AtomicUsize::new(0)).collect();
        let count = |number: usize| {
            done[number].fetch_add(1, Relaxed);
            Ok(())
        };
        share(4, done.len(), || Ok(count)).unwrap();
        assert!(done.iter().all(|done| done.load(Relaxed) == 1));

        let fail = |number| {
            if number == 3 {
                Err(BenchError::Closed)
            } else {
                Ok(())
            }
        };
        assert!(share(4, 1_000_000, || Ok(fail)).is_err());
        let never = || -> Result<fn(usize) -> Result<()>> { Err(BenchError::Closed) };
        assert!(share(2, 10, never).is_err());
    }
}
