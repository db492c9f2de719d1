//! What gateways that follow were told and may go on answering by for a moment, and how what is
//! changed waits until that is over (`docs/decisions/0068-answers-that-stand.md`).
//!
//! Times are those of [`ServingRight::now`](crate::fence::ServingRight).

use std::collections::HashMap;
use std::time::Duration;

use coffer_seal::BucketId;

use crate::limits::{ANSWERS_STAND, ANSWERS_STAND_AFTER, ANSWERS_STAND_BUCKETS};

/// Until when what was told stands, of each bucket, and of what is in none.
#[derive(Default)]
pub(super) struct Standing {
    system: Part,
    buckets: HashMap<BucketId, Part>,
    /// At so many buckets those of which nothing is to be known are forgotten.
    forgets_at: usize,
}

/// A bucket, or what is in none.
#[derive(Default)]
struct Part {
    /// What was told of it stands until then.
    until: Duration,
    under_way_count: usize,
    /// The last change of it that ended in doubt, by number.
    in_doubt: u64,
    /// When a change of it ended last.
    changed_at: Option<Duration>,
}

impl Part {
    /// Whether it is changed now, or may have been, as no head has it up to what was settled.
    fn is_changing(&self, settled: u64) -> bool {
        self.under_way_count > 0 || self.in_doubt > settled
    }

    /// Whether it has been as it is for long enough to stand, from some time before this one on.
    fn is_quiet(&self, at: Duration, settled: u64) -> bool {
        let is_long_ago = |changed: Duration| at.saturating_sub(changed) >= ANSWERS_STAND_AFTER;
        !self.is_changing(settled) && self.changed_at.is_none_or(is_long_ago)
    }

    /// Whether nothing is lost by forgetting it.
    fn is_idle(&self, now: Duration, settled: u64) -> bool {
        self.until < now && self.is_quiet(now, settled)
    }
}

impl Standing {
    /// Before a change of this bucket, or of what is in none, may show.
    pub(super) fn begin(&mut self, of: Option<BucketId>) {
        self.part(of).under_way_count += 1;
    }

    /// It showed, and no head is known to have it; this is its number among such.
    pub(super) fn is_in_doubt(&mut self, of: Option<BucketId>, number: u64) {
        let part = self.part(of);
        part.in_doubt = part.in_doubt.max(number);
    }

    /// A change that was begun is under way no more.
    pub(super) fn end(&mut self, of: Option<BucketId>, now: Duration, settled: u64) {
        let part = self.part(of);
        part.under_way_count = part.under_way_count.saturating_sub(1);
        part.changed_at = Some(now);
        self.forget_idle(now, settled);
    }

    /// Twice as many have to come before it is looked again, so that it costs little.
    fn forget_idle(&mut self, now: Duration, settled: u64) {
        if self.buckets.len() > self.forgets_at.max(ANSWERS_STAND_BUCKETS) {
            self.buckets.retain(|_, part| !part.is_idle(now, settled));
            self.forgets_at = 2 * self.buckets.len();
        }
    }

    /// Of these buckets, those of which what was looked at after that time stands for
    /// [`ANSWERS_STAND`] from then; none, where not even what is in no bucket does.
    pub(super) fn stand(
        &mut self,
        asked: impl Iterator<Item = BucketId>,
        looked_at: Duration,
        settled: u64,
    ) -> Option<Vec<BucketId>> {
        let at = looked_at;
        if !self.system.is_quiet(at, settled) {
            return None;
        }
        self.forget_idle(at, settled);
        let until = at + ANSWERS_STAND;
        self.system.until = self.system.until.max(until);
        let mut standing = Vec::new();
        for id in asked {
            let part = self.buckets.entry(id).or_default();
            if part.is_quiet(at, settled) {
                part.until = part.until.max(until);
                standing.push(id);
            }
        }
        Some(standing)
    }

    /// When what was told before is over, of what is changed in this bucket and in none; of all
    /// that is changed, where no bucket is named.
    pub(super) fn over(&self, of: Option<BucketId>, settled: u64) -> Duration {
        let until = |part: &Part| {
            let until = part.is_changing(settled).then_some(part.until);
            until.unwrap_or_default()
        };
        let of_buckets = match of {
            Some(id) => self.buckets.get(&id).map(until),
            None => self.buckets.values().map(until).max(),
        };
        until(&self.system).max(of_buckets.unwrap_or_default())
    }

    /// Whether what was told of a part stands that is being changed.
    pub(super) fn is_bridled(&self, of: Option<BucketId>, now: Duration, settled: u64) -> bool {
        let part = match of {
            Some(id) => self.buckets.get(&id),
            None => Some(&self.system),
        };
        part.is_some_and(|part| part.is_changing(settled) && part.until > now)
    }

    fn part(&mut self, of: Option<BucketId>) -> &mut Part {
        match of {
            Some(id) => self.buckets.entry(id).or_default(),
            None => &mut self.system,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: BucketId = BucketId([1; 16]);
    const B: BucketId = BucketId([2; 16]);
    const START: Duration = Duration::from_secs(100);

    fn stand(all: &mut Standing, now: Duration) -> Option<Vec<BucketId>> {
        all.stand([A, B].into_iter(), now, 0)
    }

    #[test]
    fn what_is_changed_stands_no_more_and_waits_until_what_was_told_is_over() {
        let mut all = Standing::default();
        assert_eq!(stand(&mut all, START), Some(vec![A, B]));
        assert_eq!(all.over(Some(A), 0), Duration::ZERO, "nothing is changed");
        let now = START + Duration::from_millis(10);
        all.begin(Some(A));
        assert_eq!(stand(&mut all, now), Some(vec![B]));
        assert_eq!(all.over(Some(A), 0), START + ANSWERS_STAND);
        assert_eq!(all.over(None, 0), START + ANSWERS_STAND);
        assert_eq!(all.over(Some(B), 0), Duration::ZERO, "B is not changed");
        assert!(all.is_bridled(Some(A), now, 0) && !all.is_bridled(Some(B), now, 0));
        assert!(!all.is_bridled(Some(A), START + ANSWERS_STAND, 0));
        all.end(Some(A), now, 0);
        assert_eq!(all.over(Some(A), 0), Duration::ZERO);
        assert_eq!(stand(&mut all, now), Some(vec![B]), "A was just changed");
        let later = now + ANSWERS_STAND_AFTER;
        assert_eq!(stand(&mut all, later), Some(vec![A, B]));
    }

    #[test]
    fn what_is_in_no_bucket_waits_for_all_that_was_told() {
        let mut all = Standing::default();
        assert_eq!(stand(&mut all, START), Some(vec![A, B]));
        let again = START + Duration::from_millis(50);
        assert_eq!(all.stand([B].into_iter(), again, 0), Some(vec![B]));
        all.begin(None);
        assert_eq!(stand(&mut all, again), None);
        for of in [None, Some(A), Some(B)] {
            assert_eq!(all.over(of, 0), again + ANSWERS_STAND);
        }
    }

    #[test]
    fn nothing_stands_of_what_is_in_doubt_until_that_is_settled() {
        let mut all = Standing::default();
        assert_eq!(stand(&mut all, START), Some(vec![A, B]));
        all.begin(Some(A));
        all.is_in_doubt(Some(A), 7);
        all.end(Some(A), START, 7);
        let later = START + ANSWERS_STAND_AFTER * 2;
        assert_eq!(all.over(Some(A), 6), START + ANSWERS_STAND);
        assert_eq!(all.stand([A, B].into_iter(), later, 6), Some(vec![B]));
        assert_eq!(all.stand([A, B].into_iter(), later, 7), Some(vec![A, B]));
    }

    #[test]
    fn what_stands_no_more_and_is_not_changed_is_forgotten() {
        let many = ANSWERS_STAND_BUCKETS as u128 + 1;
        let ids = || (0..many).map(|n| BucketId(n.to_be_bytes()));
        let mut all = Standing::default();
        let told = all.stand(ids(), START, 0);
        assert_eq!(told.map(|ids| ids.len()), Some(all.buckets.len()));
        all.begin(Some(A));
        stand(&mut all, START + ANSWERS_STAND_AFTER);
        assert_eq!(all.buckets.len(), 2);
        // Where no gateway follows and asks, too.
        let mut all = Standing::default();
        for (number, id) in (0..10 * many).zip((0_u128..).map(|n| BucketId(n.to_be_bytes()))) {
            let now = START + ANSWERS_STAND_AFTER * u32::try_from(number / many).unwrap_or(0);
            all.begin(Some(id));
            all.end(Some(id), now, 0);
        }
        assert!(all.buckets.len() <= 4 * ANSWERS_STAND_BUCKETS);
    }
}
