//! Who is told of locks and tags. Where a bucket has a policy or lists, to read an object is one
//! thing, and to be told what keeps it from being deleted, or how many tags it has, another (Amazon
//! S3 API Reference, `GetObject`).

use std::sync::Arc;

use coffer_policy::Action;
use coffer_store::lock::Lock;
use coffer_store::record::{ObjectHead, ObjectName};
use coffer_store::version::Which;

use crate::access::{Act, BucketName, Right, Single, Subject};
use crate::acts::ReadGrant;
use crate::audit::On;
use crate::error::Result;
use crate::open_buckets::{OpenBucket, UsedBucket};
use crate::system::BucketRow;
use crate::vault::{JudgedObject, Vault};

/// A reader of objects, who may not be told of all their locks, or of their tags.
pub(crate) struct LockReader<'s> {
    /// Who it is, where the bucket has a policy.
    shared: Option<(Vault, &'s Subject)>,
    row: Arc<BucketRow>,
}

impl<'s> LockReader<'s> {
    pub(crate) fn of(grant: &ReadGrant<'s>) -> Self {
        Self {
            shared: grant.shared(),
            row: grant.row().clone(),
        }
    }

    /// What of an object's lock is told.
    ///
    /// # Errors
    /// Those of looking at the object's tags, where the policy asks for them.
    pub(crate) async fn told(
        &self,
        bucket: &OpenBucket,
        (name, which): (&ObjectName, Which),
        lock: Lock,
    ) -> Result<Lock> {
        if lock == Lock::default() {
            return Ok(lock);
        }
        let lets = async |action| self.lets(bucket, (action, name, which)).await;
        let says_hold = lock.has_hold || lock.hold_is_off;
        let tells_hold = says_hold && lets(Action::GetObjectLegalHold).await?;
        Ok(Lock {
            retention: match lock.retention {
                Some(retention) if lets(Action::GetObjectRetention).await? => Some(retention),
                _ => None,
            },
            has_hold: lock.has_hold && tells_hold,
            hold_is_off: lock.hold_is_off && tells_hold,
        })
    }

    /// How many tags an object is said to have.
    ///
    /// # Errors
    /// As [`told`](Self::told).
    pub(crate) async fn tag_count(
        &self,
        bucket: &OpenBucket,
        (name, which): (&ObjectName, Which),
        head: &ObjectHead,
    ) -> Result<u32> {
        let reading = match which {
            Which::Current => Action::GetObjectTagging,
            Which::Version(_) => Action::GetObjectVersionTagging,
        };
        // Of the version that was read, whatever took the name since.
        let what = (reading, name, Which::Version(head.version));
        if head.tag_count == 0 || self.lets(bucket, what).await? {
            return Ok(head.tag_count);
        }
        Ok(0)
    }

    async fn lets(&self, bucket: &OpenBucket, what: (Action, &ObjectName, Which)) -> Result<bool> {
        let Some((vault, subject)) = &self.shared else {
            return Ok(true);
        };
        let Some(sharing) = vault.sharing(&self.row)? else {
            return Ok(true);
        };
        let (action, name, which) = what;
        let what = Single {
            action,
            name,
            which,
            own: None,
        };
        let lets = vault.lets_object(subject, &self.row, &sharing, what, bucket);
        let (is_let, _) = lets.await?;
        Ok(is_let)
    }
}

impl Vault {
    /// What keeps a version from being deleted.
    ///
    /// # Errors
    /// [`VaultError::BucketInDoubt`](crate::VaultError::BucketInDoubt) while it is in doubt whether
    /// that was changed.
    pub async fn lock_of_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        (name, which): (&ObjectName, Which),
    ) -> Result<Lock> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let judged = grant.judged_objects();
        let look = |bucket: UsedBucket| async move {
            bucket.settle().await?;
            let head = bucket.catalog.head(name, which).await??;
            JudgedObject::check(&judged, (name, which), (&head).into())?;
            Ok(head.lock)
        };
        let read = grant.read(Act::HeadObject, On::Object(name), look).await?;
        Ok(read.0)
    }
}
