//! Several works at once.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Does all `works`, at most `at_once` at a time, and gives what came of them in their order. After
/// the first error no more is begun; what runs comes to its end.
pub(super) fn side_by_side<W: Sync, T: Send, E: Send>(
    works: &[W],
    at_once: usize,
    done: impl Fn(&W) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let take = || {
        let mut results = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(work) = works.get(number) else {
                break;
            };
            let result = done(work);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.push((number, result));
        }
        results
    };
    let mut results: Vec<_> = thread::scope(|scope| {
        let count = at_once.clamp(1, works.len().max(1));
        let workers: Vec<_> = (0..count).map(|_| scope.spawn(take)).collect();
        let joined = workers.into_iter().map(|worker| {
            let results = worker.join();
            results.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.flatten().collect()
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::time::Duration;

    #[test]
    fn results_come_in_order_and_no_more_run_than_may() {
        let running = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        let works: Vec<u64> = (0..9).collect();
        let squares = side_by_side(&works, 3, |work| {
            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            thread::sleep(Duration::from_millis(10 - work));
            running.fetch_sub(1, Ordering::SeqCst);
            Ok::<u64, ()>(work * work)
        });
        let expected: Vec<u64> = works.iter().map(|work| work * work).collect();
        assert_eq!(squares, Ok(expected));
        assert_eq!(most.load(Ordering::SeqCst), 3);
    }

    #[test]
    fn after_an_error_nothing_more_begins() {
        let begun = Mutex::new(Vec::new());
        let works: Vec<u64> = (0..9).collect();
        let result = side_by_side(&works, 1, |work| {
            begun.lock().push(*work);
            if *work == 2 { Err("planted") } else { Ok(()) }
        });
        assert_eq!(result, Err("planted"));
        assert_eq!(*begun.lock(), [0, 1, 2]);
        assert_eq!(side_by_side(&[], 4, |(): &()| Ok::<(), ()>(())), Ok(vec![]));
    }
}
