//! What readers of an engine may see and no head has yet: they wait for it.
//!
//! A change shows here once it is durable here, before the log has it. On one machine that is what
//! synchronous copies allow. In an engine another gateway may go on without it, and then a reader
//! would have seen what never was. So while changes are under way, and while one is in doubt, an
//! answer to a read waits for a head that was begun after it was read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Changes that are not acknowledged yet.
#[derive(Default)]
pub(crate) struct Unacknowledged {
    /// Whether readers wait for them.
    is_waited_for: AtomicBool,
    under_way: AtomicUsize,
    /// How often a change ended in doubt; and how many of these are in a head by now.
    in_doubt: AtomicU64,
    settled: AtomicU64,
}

/// A change that is under way.
pub(crate) struct UnderWay(Arc<Unacknowledged>);

impl Unacknowledged {
    /// From now on readers wait.
    pub(crate) fn hold_readers(&self) {
        self.is_waited_for.store(true, Ordering::SeqCst);
    }

    /// Before a change may show: it is counted until this is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<UnderWay> {
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return None;
        }
        self.under_way.fetch_add(1, Ordering::SeqCst);
        Some(UnderWay(self.clone()))
    }

    /// What a reader that has read has to wait for: none, or all that was in doubt by now.
    pub(crate) fn seen(&self) -> Option<u64> {
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return None;
        }
        // First: one that ends in doubt is counted as such before it is counted no more.
        let is_under_way = self.under_way.load(Ordering::SeqCst) > 0;
        let in_doubt = self.in_doubt.load(Ordering::SeqCst);
        let is_any = is_under_way || in_doubt > self.settled.load(Ordering::SeqCst);
        is_any.then_some(in_doubt)
    }

    /// Whether readers wait at all.
    pub(crate) fn holds_readers(&self) -> bool {
        self.is_waited_for.load(Ordering::Relaxed)
    }

    /// A head has all that a reader had seen.
    pub(crate) fn settle(&self, seen: u64) {
        self.settled.fetch_max(seen, Ordering::SeqCst);
    }
}

impl UnderWay {
    /// It shows, and no head is known to have it.
    pub(crate) fn is_in_doubt(&self) {
        self.0.in_doubt.fetch_add(1, Ordering::SeqCst);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_wait_while_changes_are_under_way_or_in_doubt() {
        let all = Arc::<Unacknowledged>::default();
        assert!(all.begin().is_none() && all.seen().is_none(), "no engine");
        all.hold_readers();
        assert!(all.seen().is_none());
        let change = all.begin().unwrap();
        assert_eq!(all.seen(), Some(0));
        change.is_in_doubt();
        drop(change);
        let seen = all.seen();
        assert_eq!(seen, Some(1));
        // Another that came into doubt meanwhile is not settled with it.
        all.begin().unwrap().is_in_doubt();
        all.settle(1);
        assert_eq!(all.seen(), Some(2));
        all.settle(2);
        assert!(all.seen().is_none());
    }
}
