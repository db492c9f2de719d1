//! Locks of objects: those that are asked for with an object, and those that come later.

use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_store::lock::{ChangedLock, Lock, LockChange, LockTest, Retention};
use coffer_store::record::ObjectName;
use coffer_store::version::{VersionId, Which};

use super::configuration::ObjectLock;
use super::recorded::{asked_to_bypass, of_change, of_version, overridden};
use crate::access::{Act, BucketName, Right, Subject};
use crate::acts::{ChangeGrant, Changed};
use crate::audit::On;
use crate::blocking::blocking;
use crate::error::{AdministrationError, ChecksumError, Result, VaultError};
use crate::open_buckets::UsedBucket;
use crate::system::{BucketConfiguration, BucketRow, CoveredLock};
use crate::vault::Vault;

const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// The lock that a writer asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedLock {
    /// A retention; without one, the bucket's default.
    pub retention: Option<Retention>,
    /// Whether there is to be a hold.
    pub hold: Option<bool>,
}

impl Vault {
    /// The time by which locks end, in milliseconds since 1970.
    pub fn lock_now_ms(&self) -> i64 {
        self.inner.lock_time.now_ms()
    }

    /// When a lock begins that is made now: where the time by which locks end is behind, after a
    /// long stop, a custodian may have it catch up, and what was locked for days must not end by
    /// that.
    fn lock_begins_ms(&self) -> i64 {
        self.lock_now_ms().max(now_ms())
    }

    /// Changes what keeps a version from being deleted. Tells what the version is called.
    ///
    /// # Errors
    /// [`AdministrationError::NoObjectLock`], [`AdministrationError::Locked`] where what keeps it
    /// now does not allow that, [`AdministrationError::LockTooLong`],
    /// [`AdministrationError::LockInPast`], [`AdministrationError::LockNotRecorded`].
    pub async fn change_lock(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        (name, which): (&ObjectName, Which),
        change: LockChange,
        bypasses_governance: bool,
    ) -> Result<VersionId> {
        // What keeps from deleting is set and taken off by those who may delete.
        let grant = self
            .changeable_by(subject, bucket, &[Right::Delete])
            .await?;
        if lock_of(grant.row())?.is_none() {
            return Err(AdministrationError::NoObjectLock.into());
        }
        let lock = match change {
            LockChange::Retention(retention) => Lock {
                retention,
                ..Lock::default()
            },
            LockChange::Hold(has_hold) => Lock::default().with_hold(has_hold),
        };
        self.check_lock(lock)?;
        // The answer tells whether there is such an object.
        grant.note_read().await?;
        let covered = self.cover(&grant, lock).await?;
        let test = LockTest {
            now_ms: self.lock_now_ms(),
            bypasses_governance,
        };
        let object = name.clone();
        let set = move |bucket: UsedBucket| async move {
            let _covered = covered;
            let changed = bucket.catalog.change_lock(&object, which, change, test);
            let ChangedLock {
                version,
                overridden: passed_over,
            } = changed.await??;
            // Which version was the newest is known only now.
            let mut told = of_version(Which::Version(version));
            told.extend(passed_over.into_iter().flat_map(overridden));
            Ok(Changed {
                told: vec![(0, told)],
                ..Changed::freeing(version, Vec::new())
            })
        };
        let mut facts = of_version(which);
        facts.extend(of_change(change));
        if bypasses_governance {
            facts.extend(asked_to_bypass());
        }
        let on = [On::Told(name, &facts)];
        grant.change(Act::WriteLock, on, set).await
    }

    /// Whether a new object in a bucket may be locked as its writer asks for.
    ///
    /// # Errors
    /// Those of [`change_lock`](Self::change_lock).
    pub(crate) fn asked_lock(&self, grant: &ChangeGrant, asked: AskedLock) -> Result<Lock> {
        let mut lock = Lock {
            retention: asked.retention,
            ..Lock::default()
        };
        if let Some(has_hold) = asked.hold {
            lock = lock.with_hold(has_hold);
        }
        if lock_of(grant.row())?.is_none() {
            if lock.is_none() {
                return Ok(Lock::default());
            }
            return Err(AdministrationError::NoObjectLock.into());
        }
        self.check_lock(lock)?;
        Ok(lock)
    }

    /// Refuses bytes that nothing proves to have arrived as they were sent, where they are to be
    /// locked: as was asked for, or by the bucket's default.
    ///
    /// # Errors
    /// [`ChecksumError::MissingForLock`].
    pub(crate) fn check_proven(grant: &ChangeGrant, asked: Lock, is_proven: bool) -> Result<()> {
        if is_proven {
            return Ok(());
        }
        let is_asked = asked != Lock::default();
        if is_asked || lock_of(grant.row())?.is_some_and(|lock| lock.default.is_some()) {
            return Err(ChecksumError::MissingForLock.into());
        }
        Ok(())
    }

    /// The lock of an object that is about to be made: what was asked for, with the bucket's
    /// default. It is covered when this returns.
    pub(crate) async fn lock_of_new(
        &self,
        grant: &ChangeGrant,
        asked: Lock,
    ) -> Result<(Lock, Option<CoveredLock>)> {
        let Some(settings) = lock_of(grant.row())? else {
            return Ok((asked, None));
        };
        let by_default = settings
            .default
            .map(|default| default.from(self.lock_begins_ms()));
        let lock = Lock {
            retention: asked.retention.or(by_default),
            ..asked
        };
        // The bound may be lower than when a default was set, or an upload begun.
        self.check_bound(lock)?;
        let covered = self.cover(grant, lock).await?;
        Ok((lock, covered))
    }

    /// Has the bucket's bound cover a lock that is about to be made. What is returned is held until
    /// it is known whether it was.
    async fn cover(&self, grant: &ChangeGrant, lock: Lock) -> Result<Option<CoveredLock>> {
        if lock.is_none() {
            return Ok(None);
        }
        let (inner, row) = (self.inner.clone(), grant.row().clone());
        let cover = move || match inner.system.cover_lock(&row, lock) {
            // The bound may be higher than it need be. The lock is not made in any case.
            Err(VaultError::SystemInDoubt) => Err(AdministrationError::LockNotRecorded.into()),
            covered => covered.map(Some),
        };
        blocking(cover).await
    }

    /// Whether a lock ends within the days that the server allows.
    fn check_bound(&self, lock: Lock) -> Result<()> {
        let until_ms = lock.retention.map(|retention| retention.until_ms);
        let begins_ms = self.lock_begins_ms();
        let ahead_ms = until_ms.map_or(0, |until_ms| until_ms.saturating_sub(begins_ms));
        self.check_days(u64::try_from(ahead_ms).unwrap_or(0).div_ceil(DAY_MS))
    }

    fn check_lock(&self, lock: Lock) -> Result<()> {
        let Some(Retention { until_ms, .. }) = lock.retention else {
            return Ok(());
        };
        if until_ms <= self.lock_now_ms() {
            return Err(AdministrationError::LockInPast.into());
        }
        let ahead_ms = until_ms.saturating_sub(self.lock_begins_ms());
        self.check_days(u64::try_from(ahead_ms).unwrap_or(0).div_ceil(DAY_MS))
    }
}

/// How objects of a bucket are locked, if they can be.
pub(super) fn lock_of(row: &Arc<BucketRow>) -> Result<Option<ObjectLock>> {
    let document = row.documents.get(BucketConfiguration::ObjectLock);
    ObjectLock::of_document(document.as_deref())
}
