//! What all buckets hold, counted as it is committed.
//!
//! A bucket's numbers are read from its catalog, which keeps them in each transaction, when it is
//! opened; after that they follow its commits. What a write adds counts before it is committed, and
//! what it frees afterwards: so the sum is never less than what is stored, and no limit is passed.
//! Where it is in doubt whether a commit stands, what it added counts, and what it freed, until the
//! catalog is read again when that is known, and while nothing is being committed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_seal::{BucketId, LevelId, SubjectId};
use coffer_store::{Admission, Change, OverQuota, Settled};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Quota, QuotaOf, QuotaUsage};

/// All of it. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct QuotaLedger(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Whether there is any quota: looked at by each write.
    has_quotas: AtomicBool,
    ledger: Mutex<Ledger>,
    /// Told when a commit has ended in doubt.
    doubted: Notify,
}

#[derive(Default)]
struct Ledger {
    buckets: HashMap<BucketId, OfBucket>,
    /// What buckets hold together, by level and by subject.
    sums: HashMap<QuotaOf, Sum>,
    quotas: HashMap<QuotaOf, Quota>,
    /// The buckets that were not read since a commit ended in doubt.
    in_doubt: HashSet<BucketId>,
}

#[derive(Default)]
struct OfBucket {
    held: Change,
    /// Whether that was read from its catalog.
    is_known: bool,
    /// Whether the catalog can't be read: then it counts nothing.
    is_unreadable: bool,
    /// Writes that were admitted and are not settled, and how many have been settled.
    under_way: usize,
    settled: u64,
    /// Its level, and who made it.
    place: Option<(LevelId, Option<SubjectId>)>,
}

#[derive(Default)]
struct Sum {
    held: Change,
    buckets: u64,
}

/// A look at a bucket that has begun.
pub(crate) struct Look(u64);

/// Counts what a bucket's catalog commits.
struct OfCatalog {
    ledger: QuotaLedger,
    bucket: BucketId,
}

impl QuotaLedger {
    /// Whether no quota is set.
    pub(crate) fn is_empty(&self) -> bool {
        !self.0.has_quotas.load(Ordering::Acquire)
    }

    /// Sets a quota, or removes it.
    pub(crate) fn set(&self, of: QuotaOf, quota: Option<Quota>) {
        let mut ledger = self.0.ledger.lock();
        match quota {
            Some(quota) => ledger.quotas.insert(of, quota),
            None => ledger.quotas.remove(&of),
        };
        let has_quotas = !ledger.quotas.is_empty();
        self.0.has_quotas.store(has_quotas, Ordering::Release);
    }

    /// All quotas.
    pub(crate) fn all(&self) -> Vec<(QuotaOf, Quota)> {
        let ledger = self.0.ledger.lock();
        ledger.quotas.iter().map(|(of, one)| (*of, *one)).collect()
    }

    /// What there is, as far as buckets were opened.
    pub(crate) fn usage(&self, of: QuotaOf) -> QuotaUsage {
        let ledger = self.0.ledger.lock();
        let (held, buckets) = match of {
            QuotaOf::Bucket(id) => (ledger.buckets.get(&id).map(|it| it.held), 1),
            sum => {
                let sum = ledger.sums.get(&sum);
                (sum.map(|it| it.held), sum.map_or(0, |it| it.buckets))
            }
        };
        let held = held.unwrap_or_default();
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        QuotaUsage {
            bytes: count(held.bytes),
            objects: count(held.objects),
            uploads: count(held.uploads),
            buckets,
        }
    }

    /// Says of which level a bucket is, and who made it.
    pub(crate) fn place(&self, id: BucketId, level: LevelId, made_by: Option<&str>) {
        let mut ledger = self.0.ledger.lock();
        let ledger = &mut *ledger;
        let bucket = ledger.buckets.entry(id).or_default();
        if bucket.place.is_some() {
            return;
        }
        bucket.place = Some((level, made_by.and_then(SubjectId::from_hex)));
        for of in sums_of(bucket.place) {
            let sum = ledger.sums.entry(of).or_default();
            sum.buckets += 1;
            add(&mut sum.held, bucket.held);
        }
    }

    /// Forgets a bucket that is gone.
    pub(crate) fn forget(&self, id: BucketId) {
        let mut ledger = self.0.ledger.lock();
        ledger.in_doubt.remove(&id);
        let Some(bucket) = ledger.buckets.remove(&id) else {
            return;
        };
        for of in sums_of(bucket.place) {
            if let Some(sum) = ledger.sums.get_mut(&of) {
                sum.buckets -= 1;
                add(&mut sum.held, negative(bucket.held));
            }
        }
    }

    /// Begins to look at what a bucket holds.
    pub(crate) fn begin_look(&self, id: BucketId) -> Look {
        Look(self.0.ledger.lock().buckets.entry(id).or_default().settled)
    }

    /// Takes what was found, unless something was committed meanwhile.
    pub(crate) fn end_look(&self, id: BucketId, look: &Look, found: Change) {
        let mut ledger = self.0.ledger.lock();
        let ledger = &mut *ledger;
        let bucket = ledger.buckets.entry(id).or_default();
        if bucket.under_way > 0 || bucket.settled != look.0 {
            return;
        }
        bucket.is_known = true;
        ledger.in_doubt.remove(&id);
        let more = Change {
            objects: found.objects - bucket.held.objects,
            bytes: found.bytes - bucket.held.bytes,
            uploads: found.uploads - bucket.held.uploads,
        };
        ledger.change(id, more);
    }

    /// Waits until it is in doubt of some bucket what it holds.
    pub(crate) async fn doubted(&self) {
        while self.0.ledger.lock().in_doubt.is_empty() {
            self.0.doubted.notified().await;
        }
    }

    /// The buckets of which that was not found out since.
    pub(crate) fn in_doubt(&self) -> Vec<BucketId> {
        let ledger = self.0.ledger.lock();
        ledger.in_doubt.iter().copied().collect()
    }

    /// The catalog of a bucket can't be read.
    pub(crate) fn give_up(&self, id: BucketId) {
        let mut ledger = self.0.ledger.lock();
        ledger.buckets.entry(id).or_default().is_unreadable = true;
    }

    /// The buckets that have to be read before one of these quotas is judged.
    pub(crate) fn unread(&self, of: &[QuotaOf]) -> Vec<BucketId> {
        let ledger = self.0.ledger.lock();
        let counts = |id: BucketId, bucket: &OfBucket| {
            let mut counted_in = sums_of(bucket.place).chain([QuotaOf::Bucket(id)]);
            counted_in.any(|one| of.contains(&one))
        };
        let is_unread = |bucket: &OfBucket| !bucket.is_known && !bucket.is_unreadable;
        let unread = ledger.buckets.iter();
        let unread = unread.filter(|(id, bucket)| is_unread(bucket) && counts(**id, bucket));
        unread.map(|(id, _)| *id).collect()
    }

    /// The quotas of level and subject that a bucket's writes are judged by.
    pub(crate) fn sums_that_limit(&self, id: BucketId) -> Vec<QuotaOf> {
        let ledger = self.0.ledger.lock();
        let place = ledger.buckets.get(&id).and_then(|bucket| bucket.place);
        sums_of(place)
            .filter(|of| ledger.quotas.contains_key(of))
            .collect()
    }

    /// Whether one more bucket may be made, of so many that there are.
    ///
    /// # Errors
    /// [`OverQuota`].
    pub(crate) fn admit_bucket(&self, of: QuotaOf, used: u64) -> Result<(), OverQuota> {
        let ledger = self.0.ledger.lock();
        let limit = ledger.quotas.get(&of).and_then(|quota| quota.buckets);
        refuse_above(of, "buckets", limit, (used, 1))
    }

    /// Whether a bucket may hold one object more.
    pub(crate) fn has_room_in(&self, id: BucketId) -> bool {
        let ledger = self.0.ledger.lock();
        let adds = Change {
            objects: 1,
            ..Change::default()
        };
        let Some(bucket) = ledger.buckets.get(&id) else {
            return true;
        };
        let held = |of| ledger.sums.get(&of).map(|sum| sum.held).unwrap_or_default();
        let mut sums = sums_of(bucket.place).map(|of| (of, held(of)));
        let of_bucket = ledger.judge(QuotaOf::Bucket(id), bucket.held, adds);
        of_bucket.is_ok() && sums.all(|(of, held)| ledger.judge(of, held, adds).is_ok())
    }

    /// Counts what a catalog commits.
    pub(crate) fn admission(&self, bucket: BucketId) -> Arc<dyn Admission> {
        Arc::new(OfCatalog {
            ledger: self.clone(),
            bucket,
        })
    }
}

impl Ledger {
    /// Counts a change of what a bucket holds.
    fn change(&mut self, id: BucketId, change: Change) {
        if change == Change::default() {
            return;
        }
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return;
        };
        add(&mut bucket.held, change);
        for of in sums_of(bucket.place) {
            add(&mut self.sums.entry(of).or_default().held, change);
        }
    }

    /// Refuses what would pass a limit.
    fn judge(&self, of: QuotaOf, held: Change, adds: Change) -> Result<(), OverQuota> {
        let Some(quota) = self.quotas.get(&of) else {
            return Ok(());
        };
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let pair = |held, adds| (count(held), count(adds));
        refuse_above(of, "bytes", quota.bytes, pair(held.bytes, adds.bytes))?;
        let objects = pair(held.objects, adds.objects);
        refuse_above(of, "objects", quota.objects, objects)?;
        let uploads = pair(held.uploads, adds.uploads);
        refuse_above(of, "uploads under way", quota.uploads, uploads)
    }
}

impl Admission for OfCatalog {
    fn admit(&self, change: Change) -> Result<(), OverQuota> {
        let mut ledger = self.ledger.0.ledger.lock();
        let ledger = &mut *ledger;
        let adds = positive(change);
        let bucket = ledger.buckets.entry(self.bucket).or_default();
        let (held, place) = (bucket.held, bucket.place);
        if !ledger.quotas.is_empty() && adds != Change::default() {
            ledger.judge(QuotaOf::Bucket(self.bucket), held, adds)?;
            for of in sums_of(place) {
                let held = ledger.sums.get(&of).map(|sum| sum.held);
                ledger.judge(of, held.unwrap_or_default(), adds)?;
            }
        }
        ledger.change(self.bucket, adds);
        if let Some(bucket) = ledger.buckets.get_mut(&self.bucket) {
            bucket.under_way += 1;
        }
        Ok(())
    }

    fn settle(&self, change: Change, settled: Settled) {
        let mut ledger = self.ledger.0.ledger.lock();
        let adds = positive(change);
        match settled {
            Settled::Done => {
                let mut frees = change;
                add(&mut frees, negative(adds));
                ledger.change(self.bucket, frees);
            }
            Settled::Undone => ledger.change(self.bucket, negative(adds)),
            Settled::InDoubt => {
                ledger.in_doubt.insert(self.bucket);
                self.ledger.0.doubted.notify_one();
            }
        }
        if let Some(bucket) = ledger.buckets.get_mut(&self.bucket) {
            bucket.under_way = bucket.under_way.saturating_sub(1);
            bucket.settled += 1;
        }
    }

    fn doubted(&self) {
        let mut ledger = self.ledger.0.ledger.lock();
        ledger.in_doubt.insert(self.bucket);
        self.ledger.0.doubted.notify_one();
        // A look that has begun says nothing of it.
        if let Some(bucket) = ledger.buckets.get_mut(&self.bucket) {
            bucket.settled += 1;
        }
    }
}

fn refuse_above(
    of: QuotaOf,
    what: &'static str,
    limit: Option<u64>,
    (used, adds): (u64, u64),
) -> Result<(), OverQuota> {
    match limit {
        Some(limit) if adds > 0 && used.saturating_add(adds) > limit => Err(OverQuota {
            of: of.kind(),
            what,
            limit,
            // A subject may have buckets of several labels, and each is written by others, too.
            used: (!matches!(of, QuotaOf::Subject(_))).then_some(used),
            adds,
        }),
        _ => Ok(()),
    }
}

/// The sums that a bucket counts in.
fn sums_of(place: Option<(LevelId, Option<SubjectId>)>) -> impl Iterator<Item = QuotaOf> {
    let level = place.map(|(level, _)| QuotaOf::Level(level));
    let subject = place.and_then(|(_, made_by)| made_by).map(QuotaOf::Subject);
    level.into_iter().chain(subject)
}

fn add(to: &mut Change, more: Change) {
    to.objects += more.objects;
    to.bytes += more.bytes;
    to.uploads += more.uploads;
}

fn negative(change: Change) -> Change {
    Change {
        objects: -change.objects,
        bytes: -change.bytes,
        uploads: -change.uploads,
    }
}

/// What a change adds, without what it frees.
fn positive(change: Change) -> Change {
    Change {
        objects: change.objects.max(0),
        bytes: change.bytes.max(0),
        uploads: change.uploads.max(0),
    }
}

#[cfg(test)]
mod tests;
