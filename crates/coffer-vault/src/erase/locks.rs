//! The rule where locks and an erase meet: what is held, or locked for compliance, is not erased
//! before that ends; what is locked for governance is, by two people; and in a level that was made
//! with `--erase-breaks-locks` an erase wins.
//!
//! No catalog is opened to know what is locked, but where a bound stands against an erase, which
//! may be higher than what there is: then that is counted, of a few buckets.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use coffer_durable::rfc3339;
use coffer_keys::LevelEntry;
use coffer_seal::BucketId;
use coffer_store::lock::StandingLocks;

use crate::blocking::blocking;
use crate::error::{AdministrationError, EraseLocked, Result};
use crate::limits::LOCKS_COUNTED_AT_ERASE;
use crate::system::{BucketRow, LockBound};
use crate::vault::Vault;

/// How many people an erase takes that passes over locks for governance.
pub(crate) const GOVERNANCE_PEOPLE: u8 = 2;

const HOLDS: &str = "legal holds";

/// The locks of buckets that are to be erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocksMet {
    /// The one that stands longest, of the strictest kind.
    strictest: Option<EraseLocked>,
    /// Until when the last of them is, but for holds.
    last_ms: Option<i64>,
    count: u64,
    kinds: BTreeSet<&'static str>,
    /// Whether there is a bucket of which they can't be read any more, for its key is destroyed.
    is_unread: bool,
}

/// What was counted of some buckets: how many locks stand there, kind by kind.
type Counted = HashMap<BucketId, StandingLocks>;

impl LocksMet {
    fn add(&mut self, row: &BucketRow, bound: LockBound, counted: &Counted, now_ms: i64) {
        let stands = |until: Option<i64>| until.filter(|until_ms| *until_ms > now_ms);
        let compliance = stands(bound.compliance_until_ms);
        let governance = stands(bound.governance_until_ms);
        let is_strict = bound.has_hold || compliance.is_some();
        if !is_strict && governance.is_none() {
            return;
        }
        self.count += bound.count;
        self.last_ms = self.last_ms.max(compliance).max(governance);
        let kinds = [
            ("compliance", compliance.is_some()),
            ("governance", governance.is_some()),
            (HOLDS, bound.has_hold),
        ];
        let stand = kinds.into_iter().filter(|(_, stands)| *stands);
        self.kinds.extend(stand.map(|(kind, _)| kind));
        let met = EraseLocked {
            bucket: row.name.to_string(),
            count: bound.count,
            counted: counted.get(&row.id).copied(),
            compliance_until_ms: compliance,
            governance_until_ms: governance,
            has_hold: bound.has_hold,
        };
        let rank = |met: &EraseLocked| (!met.takes_two(), met.has_hold, last(met));
        if self
            .strictest
            .as_ref()
            .is_none_or(|before| rank(before) < rank(&met))
        {
            self.strictest = Some(met);
        }
    }

    /// How many people an erase takes at least.
    pub(crate) fn people(&self) -> u8 {
        self.strictest.as_ref().map_or(1, |_| GOVERNANCE_PEOPLE)
    }

    /// Whether so many people may erase it, in this level.
    ///
    /// # Errors
    /// [`AdministrationError::EraseLocked`].
    pub(crate) fn check(&self, level: &LevelEntry, people: usize) -> Result<()> {
        match &self.strictest {
            Some(met) if !level.options.erase_breaks_locks => {
                if met.takes_two() && people >= usize::from(GOVERNANCE_PEOPLE) {
                    return Ok(());
                }
                Err(AdministrationError::EraseLocked(met.clone()).into())
            }
            _ => Ok(()),
        }
    }

    /// What a receipt says of locks.
    pub(crate) fn told(&self, level: &LevelEntry) -> String {
        let rule = if level.options.erase_breaks_locks {
            "the level was made so that an erase wins over object locks"
        } else {
            "object locks for compliance and legal holds keep from an erase in this level"
        };
        if self.strictest.is_none() {
            let known = if self.is_unread {
                "is known to have stood"
            } else {
                "stood"
            };
            return format!("{rule}; no lock {known}");
        }
        let kinds: Vec<&str> = self.kinds.iter().copied().collect();
        let kinds = kinds.join(", ");
        let until = self.last_ms.map(rfc3339);
        let mut until = until.map_or(String::new(), |until| {
            format!(", until {until} at the latest")
        });
        if self.kinds.contains(HOLDS) {
            until.push_str("; a legal hold has no end");
        }
        let count = self.count;
        format!("{rule}; locks were overridden: of {count} objects at most, by {kinds}{until}")
    }
}

/// Until when the strictest locks are.
fn last(met: &EraseLocked) -> Option<i64> {
    if met.takes_two() {
        met.governance_until_ms
    } else {
        met.compliance_until_ms
    }
}

impl Vault {
    /// The locks that are known of in these buckets.
    pub(crate) fn locks_met(&self, rows: &[Arc<BucketRow>], counted: &Counted) -> Result<LocksMet> {
        let now_ms = self.lock_now_ms();
        let mut met = LocksMet::default();
        for row in rows {
            met.add(row, self.inner.lock_bound(row)?, counted, now_ms);
            met.is_unread |= self.inner.is_key_destroyed(row);
        }
        Ok(met)
    }

    /// Looks once more, when no lock is made any more, and says what a receipt says of locks.
    pub(super) fn locks_at_last(
        &self,
        level: &LevelEntry,
        rows: &[Arc<BucketRow>],
        people: usize,
    ) -> Result<String> {
        let met = self.locks_met(rows, &Counted::new())?;
        met.check(level, people)?;
        Ok(met.told(level))
    }

    /// The buckets of a level.
    pub(crate) fn rows_of_level(&self, level: &LevelEntry) -> Vec<Arc<BucketRow>> {
        let mut rows = self.inner.system.buckets();
        rows.retain(|row| row.level_id == level.id);
        rows
    }

    /// Whether locks let a level be erased, by two people if need be.
    ///
    /// # Errors
    /// [`AdministrationError::EraseLocked`], [`AdministrationError::StrayLocked`].
    pub(crate) async fn check_locks_of_level(&self, level: &LevelEntry) -> Result<()> {
        let rows = self.rows_of_level(level);
        Box::pin(self.check_locks(level, &rows)).await?;
        Box::pin(self.check_strays_before(level)).await
    }

    /// Whether locks let these buckets be erased, by two people if need be. Of buckets whose bound
    /// says that something is locked, some are counted first.
    ///
    /// # Errors
    /// [`AdministrationError::EraseLocked`].
    pub(crate) async fn check_locks(
        &self,
        level: &LevelEntry,
        rows: &[Arc<BucketRow>],
    ) -> Result<()> {
        let now_ms = self.lock_now_ms();
        let stands = |row: &&Arc<BucketRow>| {
            let mut met = LocksMet::default();
            let bound = self.inner.lock_bound(row).unwrap_or_default();
            met.add(row, bound, &Counted::new(), now_ms);
            met.strictest.is_some()
        };
        let mut counted = Counted::new();
        for row in rows.iter().filter(stands).take(LOCKS_COUNTED_AT_ERASE) {
            // Where that can't be done, the bound stands.
            match self.count_locks(row).await {
                Ok(standing) => counted.extend(standing.map(|standing| (row.id, standing))),
                Err(error) => {
                    tracing::warn!(bucket = %row.id, %error, "its locks can't be counted");
                }
            }
        }
        let enough = usize::from(GOVERNANCE_PEOPLE);
        self.locks_met(rows, &counted)?.check(level, enough)
    }

    /// Counts what is locked in a bucket, and lowers its bound to that. None: locks are being made.
    async fn count_locks(&self, row: &Arc<BucketRow>) -> Result<Option<StandingLocks>> {
        let Some(made) = self.inner.system.locks_made(row) else {
            return Ok(None);
        };
        let inner = &self.inner;
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, row.id);
        let bucket = opened.await?;
        // A lock that was answered as in doubt may stand, and is made no more.
        bucket.settle().await?;
        let (locked, standing) = bucket.catalog.locked_at(self.lock_now_ms()).await?;
        let (inner, row) = (self.inner.clone(), row.clone());
        let lower = move || {
            inner.system.lower_lock_bound(&row, locked, made)?;
            // Others may have been made meanwhile: then what was counted is too few.
            let is_all = inner.system.lock_bound(&row)? == LockBound::of(locked);
            Ok(is_all.then_some(standing))
        };
        blocking(lower).await
    }

    /// How many people an erase of these takes at least, for the locks there.
    pub(crate) fn people_for_locks(&self, level: &LevelEntry, bucket: Option<BucketId>) -> u8 {
        if level.options.erase_breaks_locks {
            return 1;
        }
        let mut rows = self.rows_of_level(level);
        rows.retain(|row| bucket.is_none_or(|id| row.id == id));
        self.locks_met(&rows, &Counted::new())
            .map_or(GOVERNANCE_PEOPLE, |met| met.people())
    }
}
