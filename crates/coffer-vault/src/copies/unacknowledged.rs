//! What readers of an engine may see and no head has yet: they wait for it.
//!
//! A change shows here once it is durable here, before the log has it. On one machine that is what
//! synchronous copies allow. In an engine another gateway may go on without it, and then a reader
//! would have seen what never was. So while changes are under way, and while one is in doubt, an
//! answer to a read waits for a head that was begun after it was read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use coffer_seal::BucketId;
use parking_lot::Mutex;

use super::standing::Standing;
use crate::fence::ServingRight;

/// Changes that are not acknowledged yet.
#[derive(Default)]
pub(crate) struct Unacknowledged {
    /// Whether readers wait for them.
    is_waited_for: AtomicBool,
    under_way: AtomicUsize,
    /// How often a change ended in doubt; and how many of these are in a head by now.
    in_doubt: AtomicU64,
    settled: AtomicU64,
    /// What gateways that follow were told.
    standing: Mutex<Standing>,
}

/// A change that is under way: of a bucket, or of what is in none.
pub(crate) struct UnderWay {
    all: Arc<Unacknowledged>,
    pub(super) of: Option<BucketId>,
}

impl Unacknowledged {
    /// From now on readers wait.
    pub(crate) fn hold_readers(&self) {
        self.is_waited_for.store(true, Ordering::SeqCst);
    }

    /// Before a change of this bucket, or of what is in none, may show: it is counted until this is
    /// dropped.
    pub(crate) fn begin(self: &Arc<Self>, of: Option<BucketId>) -> Option<UnderWay> {
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return None;
        }
        self.under_way.fetch_add(1, Ordering::SeqCst);
        self.standing.lock().begin(of);
        let all = self.clone();
        Some(UnderWay { all, of })
    }

    /// What a reader that has read has to wait for: none, or all that was in doubt by now.
    pub(crate) fn seen(&self) -> Option<u64> {
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return None;
        }
        // First: one that ends in doubt is counted as such before it is counted no more.
        let is_under_way = self.under_way.load(Ordering::SeqCst) > 0;
        let in_doubt = self.in_doubt.load(Ordering::SeqCst);
        let is_any = is_under_way || in_doubt > self.settled();
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

    /// Whether something is in doubt that no reader has settled, and nothing is under way.
    pub(super) fn is_to_be_settled(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) == 0 && self.is_any_in_doubt()
    }

    /// Whether something is in doubt that no reader has settled.
    pub(super) fn is_any_in_doubt(&self) -> bool {
        self.in_doubt.load(Ordering::SeqCst) > self.settled()
    }

    /// Of these buckets, those of which what a gateway that follows is told stands: it was looked
    /// at after this time.
    pub(super) fn stand(
        &self,
        asked: impl Iterator<Item = BucketId>,
        looked_at: Duration,
    ) -> Option<Vec<BucketId>> {
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return None;
        }
        let mut standing = self.standing.lock();
        standing.stand(asked, looked_at, self.settled())
    }

    /// How long what was told of what is changed stands: of this bucket and what is in none, or of
    /// all.
    pub(super) fn stands_for(&self, of: Option<BucketId>) -> Duration {
        if !self.is_waited_for.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let over = self.standing.lock().over(of, self.settled());
        over.saturating_sub(ServingRight::now())
    }

    /// Whether this bucket, or what is in none, is being changed while what was told before stands.
    pub(super) fn is_bridled(&self, part: Option<BucketId>) -> bool {
        let standing = self.standing.lock();
        standing.is_bridled(part, ServingRight::now(), self.settled())
    }

    fn settled(&self) -> u64 {
        self.settled.load(Ordering::SeqCst)
    }
}

impl UnderWay {
    /// It shows, and no head is known to have it.
    pub(crate) fn is_in_doubt(&self) {
        let mut standing = self.all.standing.lock();
        let number = self.all.in_doubt.fetch_add(1, Ordering::SeqCst) + 1;
        standing.is_in_doubt(self.of, number);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let settled = self.all.settled();
        let mut standing = self.all.standing.lock();
        standing.end(self.of, ServingRight::now(), settled);
        drop(standing);
        self.all.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_wait_while_changes_are_under_way_or_in_doubt() {
        let all = Arc::<Unacknowledged>::default();
        assert!(
            all.begin(None).is_none() && all.seen().is_none(),
            "no engine"
        );
        all.hold_readers();
        assert!(all.seen().is_none());
        let change = all.begin(None).unwrap();
        assert_eq!(all.seen(), Some(0));
        change.is_in_doubt();
        drop(change);
        let seen = all.seen();
        assert_eq!(seen, Some(1));
        // Another that came into doubt meanwhile is not settled with it.
        all.begin(None).unwrap().is_in_doubt();
        all.settle(1);
        assert_eq!(all.seen(), Some(2));
        all.settle(2);
        assert!(all.seen().is_none());
    }
}
