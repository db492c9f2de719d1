//! What locks a bucket may hold, known without its catalog: a bound that is durable before a lock
//! is acknowledged, and higher than what there is, so that few locks raise it.

use std::sync::Arc;

use coffer_store::lock::{Lock, Locked, Retention, RetentionMode};
use serde::{Deserialize, Serialize};

use super::System;
use super::buckets::BucketRow;
use super::configuration::BucketConfiguration;
use crate::error::{Result, VaultError};
use crate::limits::{LOCK_BOUND_COUNT_STEP, LOCK_BOUND_STEP_MS};

mod doubts;

pub(crate) use self::doubts::Doubts;

/// No bucket holds more locks than this, nor any that ends later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LockBound {
    /// How many versions have one, at most.
    pub(crate) count: u64,
    /// Until when retention for compliance is, at the latest, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compliance_until_ms: Option<i64>,
    /// Until when retention for governance is, at the latest, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) governance_until_ms: Option<i64>,
    /// Whether there may be a hold.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_hold: bool,
    /// Whether it is of when an erase of the bucket was ordered, in a copy that had left out the
    /// catalog and was gone on from. It counts as long as there is no catalog.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_left_to_erase: bool,
    /// Whether the keystore, which was the later one, had no key for the bucket when an older copy
    /// was gone on from that brought the bucket back: it had been destroyed, unless the keystore
    /// came from a copy that leaves the level out. It counts as long as it has none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_key_destroyed: bool,
}

impl LockBound {
    /// Until locks are counted there may be a hold.
    pub(crate) const UNKNOWN: Self = Self {
        count: 1,
        compliance_until_ms: None,
        governance_until_ms: None,
        has_hold: true,
        is_left_to_erase: false,
        is_key_destroyed: false,
    };

    /// Of locks that were counted.
    pub(crate) fn of(locked: Locked) -> Self {
        Self {
            count: locked.count,
            compliance_until_ms: locked.compliance_until_ms,
            governance_until_ms: locked.governance_until_ms,
            has_hold: locked.has_hold,
            is_left_to_erase: false,
            is_key_destroyed: false,
        }
    }

    pub(crate) fn of_document(document: Option<&str>) -> Result<Self> {
        match document {
            Some(document) => serde_json::from_str(document).map_err(|_| VaultError::Damaged),
            None => Ok(Self::default()),
        }
    }

    /// The document that says so; none where there is nothing to say.
    pub(crate) fn to_document(self) -> Option<String> {
        let says = self != Self::default();
        says.then(|| serde_json::to_string(&self).expect("a struct of numbers is JSON"))
    }

    /// A bound that this lock is under as well, where it is the one of this number.
    fn raised(self, lock: Lock, number: u64) -> Self {
        let mut raised = if self.is_left_to_erase || self.is_key_destroyed {
            Self::UNKNOWN
        } else {
            self
        };
        if number > self.count {
            raised.count = number + LOCK_BOUND_COUNT_STEP.max(number / 2);
        }
        raised.has_hold |= lock.has_hold;
        if let Some(Retention { mode, until_ms }) = lock.retention {
            let until = match mode {
                RetentionMode::Compliance => &mut raised.compliance_until_ms,
                RetentionMode::Governance => &mut raised.governance_until_ms,
            };
            if *until < Some(until_ms) {
                *until = Some(until_ms.saturating_add(LOCK_BOUND_STEP_MS));
            }
        }
        raised
    }
}

impl System {
    /// What locks a bucket may hold.
    pub(crate) fn lock_bound(&self, row: &BucketRow) -> Result<LockBound> {
        let document = row.documents.get(BucketConfiguration::LockBound);
        LockBound::of_document(document.as_deref())
    }

    /// Has the bucket's bound cover one lock more, durably. What is returned is held until it is
    /// known whether the lock was made.
    ///
    /// # Errors
    /// Then the lock must not be made.
    pub(crate) fn cover_lock(&self, row: &Arc<BucketRow>, lock: Lock) -> Result<CoveredLock> {
        let mut made = row.documents.locks_made();
        let bound = self.lock_bound(row)?;
        // After a start, as many as the bound says.
        let before = if made.number == 0 {
            bound.count
        } else {
            made.number
        };
        let raised = bound.raised(lock, before + 1);
        made.changes += 1;
        // Whether a lowering that failed has happened is not known: what is told may be too high.
        if raised != bound || made.may_be_lowered {
            self.configure(row, BucketConfiguration::LockBound, raised.to_document())?;
            made.may_be_lowered = false;
        }
        made.number = before + 1;
        made.under_way += 1;
        Ok(CoveredLock(row.clone()))
    }

    /// What is to be compared after locks were counted; none while any is being made.
    pub(crate) fn locks_made(&self, row: &BucketRow) -> Option<u64> {
        let made = *row.documents.locks_made();
        (made.under_way == 0).then_some(made.changes)
    }

    /// Lowers a bucket's bound to what was counted, if no lock was made since `locks_made` was
    /// told.
    pub(crate) fn lower_lock_bound(
        &self,
        row: &Arc<BucketRow>,
        locked: Locked,
        changes_before: u64,
    ) -> Result<()> {
        let mut made = row.documents.locks_made();
        if made.under_way > 0 || made.changes != changes_before {
            return Ok(());
        }
        let bound = LockBound::of(locked);
        made.changes += 1;
        if bound != self.lock_bound(row)? || made.may_be_lowered {
            made.may_be_lowered = true;
            self.configure(row, BucketConfiguration::LockBound, bound.to_document())?;
            made.may_be_lowered = false;
        }
        made.number = bound.count;
        Ok(())
    }
}

/// A lock that is about to be made, under its bucket's bound.
pub(crate) struct CoveredLock(Arc<BucketRow>);

impl Drop for CoveredLock {
    fn drop(&mut self) {
        self.0.documents.locks_made().under_way -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_locks_raise_the_bound_and_none_is_above_it() {
        let mut bound = LockBound::default();
        let mut raised_count = 0;
        for number in 1..=10_000_u64 {
            let until_ms = i64::try_from(number).unwrap() * 60_000;
            let lock = Lock {
                retention: Some(Retention {
                    mode: RetentionMode::Compliance,
                    until_ms,
                }),
                ..Lock::default()
            };
            let raised = bound.raised(lock, number);
            raised_count += u32::from(raised != bound);
            bound = raised;
            assert!(bound.count >= number && bound.compliance_until_ms >= Some(until_ms));
        }
        assert!(raised_count < 40, "{raised_count}");
        assert_eq!((bound.governance_until_ms, bound.has_hold), (None, false));
        let document = bound.to_document();
        assert_eq!(LockBound::of_document(document.as_deref()).unwrap(), bound);
        assert_eq!(LockBound::default().to_document(), None);
    }
}
