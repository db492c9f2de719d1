//! Object lock: what keeps a version from being deleted, and until when (Amazon S3 User Guide,
//! "Locking objects with Object Lock").

use crate::error::{Result, StoreError};
use crate::version::VersionId;

/// How strict a retention is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetentionMode {
    /// Who is permitted to may shorten it or delete all the same.
    Governance,
    /// It stands until it ends.
    Compliance,
}

/// That a version is kept until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How strictly.
    pub mode: RetentionMode,
    /// Until when, in milliseconds since 1970.
    pub until_ms: i64,
}

/// What keeps a version from being deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// It is kept until a time, which may have passed.
    pub retention: Option<Retention>,
    /// It is kept until this is taken off.
    pub has_hold: bool,
    /// A hold was taken off, or a writer asked for none by name: nothing keeps it for that, and
    /// clients are told so. Never beside a hold.
    pub hold_is_off: bool,
}

/// Who asks for what a lock may refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTest {
    /// The time by which locks end, in milliseconds since 1970.
    pub now_ms: i64,
    /// Whether retention for governance is passed over.
    pub bypasses_governance: bool,
}

impl LockTest {
    /// As it is for who passes nothing over.
    fn strict(self) -> Self {
        Self {
            bypasses_governance: false,
            ..self
        }
    }
}

/// What became of a change of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedLock {
    /// What the version is called.
    pub version: VersionId,
    /// The retention for governance that stood against it and was passed over.
    pub overridden: Option<Retention>,
}

/// A change of what keeps a version from being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockChange {
    /// Another retention, or none.
    Retention(Option<Retention>),
    /// Whether there is a hold.
    Hold(bool),
}

const GOVERNANCE: i64 = 1;
const COMPLIANCE: i64 = 2;
const HOLD: i64 = 4;
const HOLD_OFF: i64 = 8;

impl Lock {
    /// Whether there is none, ended or not.
    pub fn is_none(&self) -> bool {
        self.retention.is_none() && !self.has_hold
    }

    /// This lock with a hold, or with one that is off.
    #[must_use]
    pub fn with_hold(self, has_hold: bool) -> Self {
        Self {
            has_hold,
            hold_is_off: !has_hold,
            ..self
        }
    }

    /// Whether it keeps the version from being deleted.
    pub fn keeps_from(&self, test: LockTest) -> bool {
        let keeps = |retention: Retention| {
            let gives_way = retention.mode == RetentionMode::Governance && test.bypasses_governance;
            retention.until_ms > test.now_ms && !gives_way
        };
        self.has_hold || self.retention.is_some_and(keeps)
    }

    /// The retention that would keep the version from being deleted, were it not passed over.
    pub(crate) fn overridden(&self, test: LockTest) -> Option<Retention> {
        let is_overridden = self.keeps_from(test.strict()) && !self.keeps_from(test);
        self.retention.filter(|_| is_overridden)
    }

    /// The retention that would keep from this change, were it not passed over.
    pub(crate) fn overridden_by(&self, change: LockChange, test: LockTest) -> Option<Retention> {
        let is_allowed = |test| self.changed(change, test).is_ok();
        let is_overridden = is_allowed(test) && !is_allowed(test.strict());
        self.retention.filter(|_| is_overridden)
    }

    /// This lock with a change, if that may be made: a retention that has not ended may become
    /// longer or stricter; for governance, it may also be shortened by who may pass it over.
    pub(crate) fn changed(self, change: LockChange, test: LockTest) -> Result<Self> {
        let to = match change {
            LockChange::Hold(has_hold) => return Ok(self.with_hold(has_hold)),
            LockChange::Retention(to) => to,
        };
        let without_hold = Self {
            has_hold: false,
            ..self
        };
        let is_stronger = |now: Retention| {
            to.is_some_and(|to| to.mode >= now.mode && to.until_ms >= now.until_ms)
        };
        if without_hold.keeps_from(test) && !self.retention.is_none_or(is_stronger) {
            return Err(StoreError::Locked);
        }
        Ok(Self {
            retention: to,
            ..self
        })
    }

    /// The columns `lock` and `retain_until_ms`.
    pub(crate) fn to_columns(self) -> (Option<i64>, Option<i64>) {
        let mode = match self.retention.map(|retention| retention.mode) {
            None => 0,
            Some(RetentionMode::Governance) => GOVERNANCE,
            Some(RetentionMode::Compliance) => COMPLIANCE,
        };
        let hold = if self.has_hold { HOLD } else { 0 };
        let off = if self.hold_is_off { HOLD_OFF } else { 0 };
        let bits = mode | hold | off;
        let until_ms = self.retention.map(|retention| retention.until_ms);
        ((bits != 0).then_some(bits), until_ms)
    }

    pub(crate) fn of_columns(bits: Option<i64>, until_ms: Option<i64>) -> Result<Self> {
        let bits = bits.unwrap_or(0);
        let (has_hold, hold_is_off) = (bits & HOLD != 0, bits & HOLD_OFF != 0);
        let mode = match bits & !(HOLD | HOLD_OFF) {
            _ if has_hold && hold_is_off => return Err(StoreError::damaged_catalog()),
            0 => None,
            GOVERNANCE => Some(RetentionMode::Governance),
            COMPLIANCE => Some(RetentionMode::Compliance),
            _ => return Err(StoreError::damaged_catalog()),
        };
        let retention = match (mode, until_ms) {
            (Some(mode), Some(until_ms)) => Some(Retention { mode, until_ms }),
            (None, None) => None,
            _ => return Err(StoreError::damaged_catalog()),
        };
        Ok(Self {
            retention,
            has_hold,
            hold_is_off,
        })
    }
}

/// What keeps versions of a bucket from being deleted, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locked {
    /// How many versions have a lock, ended or not.
    pub count: u64,
    /// Until when the last retention for compliance is, in milliseconds since 1970.
    pub compliance_until_ms: Option<i64>,
    /// Until when the last retention for governance is, in milliseconds since 1970.
    pub governance_until_ms: Option<i64>,
    /// Whether any has a hold.
    pub has_hold: bool,
}

/// What keeps versions of a bucket from being deleted now, kind by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandingLocks {
    /// How many versions are kept for compliance.
    pub compliance: u64,
    /// How many are kept for governance.
    pub governance: u64,
    /// How many have a hold.
    pub held: u64,
    /// How many are kept for compliance, have a hold, or both.
    pub strict: u64,
}

impl StandingLocks {
    /// With as many locks more of this kind, of which so many have not ended.
    pub(crate) fn add(&mut self, count: u64, lock: Lock, standing: u64) {
        let strict = match lock.retention.map(|retention| retention.mode) {
            Some(RetentionMode::Compliance) => {
                self.compliance += standing;
                standing
            }
            Some(RetentionMode::Governance) => {
                self.governance += standing;
                0
            }
            None => 0,
        };
        if lock.has_hold {
            self.held += count;
        }
        self.strict += if lock.has_hold { count } else { strict };
    }
}

impl Locked {
    /// With one lock more, or as many as another has.
    pub(crate) fn add(&mut self, count: u64, lock: Lock) {
        self.count += count;
        self.has_hold |= lock.has_hold;
        if let Some(Retention { mode, until_ms }) = lock.retention {
            let last = match mode {
                RetentionMode::Compliance => &mut self.compliance_until_ms,
                RetentionMode::Governance => &mut self.governance_until_ms,
            };
            *last = (*last).max(Some(until_ms));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(mode: RetentionMode, until_ms: i64) -> Lock {
        Lock {
            retention: Some(Retention { mode, until_ms }),
            ..Lock::default()
        }
    }

    fn at(now_ms: i64, bypasses_governance: bool) -> LockTest {
        LockTest {
            now_ms,
            bypasses_governance,
        }
    }

    #[test]
    fn retention_ends_by_itself_and_a_hold_does_not() {
        use RetentionMode::{Compliance, Governance};
        for mode in [Governance, Compliance] {
            assert!(kept(mode, 10).keeps_from(at(9, false)));
            assert!(!kept(mode, 10).keeps_from(at(10, false)));
        }
        assert!(kept(Compliance, 10).keeps_from(at(9, true)));
        assert!(!kept(Governance, 10).keeps_from(at(9, true)));
        let held = Lock {
            has_hold: true,
            ..kept(Governance, 10)
        };
        assert!(held.keeps_from(at(9, true)) && held.keeps_from(at(99, true)));
        assert!(!Lock::default().keeps_from(at(0, false)));
    }

    #[test]
    fn retention_is_made_longer_by_all_and_shorter_by_few() {
        use RetentionMode::{Compliance, Governance};
        let to = |mode, until_ms| LockChange::Retention(Some(Retention { mode, until_ms }));
        let none = LockChange::Retention(None);
        let may = |lock: Lock, change, test| lock.changed(change, test).is_ok();
        let compliance = kept(Compliance, 10);
        assert!(may(compliance, to(Compliance, 10), at(1, false)));
        assert!(may(compliance, to(Compliance, 11), at(1, false)));
        for refused in [none, to(Compliance, 9), to(Governance, 99)] {
            assert!(!may(compliance, refused, at(1, true)));
            assert!(may(compliance, refused, at(10, false)), "it has ended");
        }
        let governance = kept(Governance, 10);
        assert!(may(governance, to(Governance, 11), at(1, false)));
        assert!(may(governance, to(Compliance, 10), at(1, false)));
        for shorter in [none, to(Governance, 9), to(Compliance, 9)] {
            assert!(!may(governance, shorter, at(1, false)));
            assert!(may(governance, shorter, at(1, true)));
        }
        // A hold stands beside it and keeps no one from changing the retention.
        let held = compliance
            .changed(LockChange::Hold(true), at(1, false))
            .unwrap();
        assert!(held.has_hold && held.retention == compliance.retention);
        assert!(may(held, to(Compliance, 11), at(1, false)));
        let freed = Lock {
            has_hold: true,
            ..Lock::default()
        };
        assert!(may(freed, to(Governance, 1), at(1, false)));
    }

    #[test]
    fn a_hold_that_is_off_keeps_nothing_and_is_known() {
        let held = Lock::default().with_hold(true);
        let off = held.changed(LockChange::Hold(false), at(0, false)).unwrap();
        assert!(off.is_none() && off.hold_is_off && !off.keeps_from(at(0, false)));
        assert_eq!(off.with_hold(true), held);
        let kept = kept(RetentionMode::Governance, 9);
        let change = LockChange::Retention(kept.retention);
        let both = off.changed(change, at(0, false)).unwrap();
        assert_eq!(both, kept.with_hold(false));
    }

    #[test]
    fn columns_and_back() {
        use RetentionMode::{Compliance, Governance};
        for lock in [Lock::default(), kept(Governance, 5), kept(Compliance, -1)] {
            for lock in [lock, lock.with_hold(true), lock.with_hold(false)] {
                let (bits, until_ms) = lock.to_columns();
                assert_eq!(Lock::of_columns(bits, until_ms).unwrap(), lock);
            }
        }
        assert_eq!(Lock::default().to_columns(), (None, None));
        for damaged in [
            (Some(3), Some(1)),
            (Some(1), None),
            (None, Some(1)),
            (Some(12), None),
            (Some(16), None),
        ] {
            assert!(Lock::of_columns(damaged.0, damaged.1).is_err());
        }
    }
}
