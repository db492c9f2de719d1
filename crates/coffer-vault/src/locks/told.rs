//! Who is told of locks. Where a bucket has a policy, to read an object is one thing, and to be
//! told what keeps it from being deleted another (Amazon S3 API Reference, `GetObject`).

use std::sync::Arc;

use coffer_policy::Action;
use coffer_store::lock::Lock;
use coffer_store::record::ObjectName;
use coffer_store::version::Which;

use crate::access::Subject;
use crate::acts::ReadGrant;
use crate::error::{Result, VaultError};
use crate::open_buckets::OpenBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

/// A reader of objects, who may not be told of all their locks.
pub(crate) struct LockReader {
    /// Who it is, where the bucket has a policy.
    shared: Option<(Vault, Subject)>,
    row: Arc<BucketRow>,
}

impl LockReader {
    pub(crate) fn of(grant: &ReadGrant) -> Self {
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
        let Some((vault, subject)) = self.shared.as_ref().filter(|_| !lock.is_none()) else {
            return Ok(lock);
        };
        let Some(sharing) = vault.sharing(&self.row)? else {
            return Ok(lock);
        };
        let lets = async |action| {
            let what = (action, name, which);
            let lets = vault.lets_object(subject, &self.row, &sharing, what, bucket);
            let (is_let, _) = lets.await?;
            Ok::<_, VaultError>(is_let)
        };
        Ok(Lock {
            retention: match lock.retention {
                Some(retention) if lets(Action::GetObjectRetention).await? => Some(retention),
                _ => None,
            },
            has_hold: lock.has_hold && lets(Action::GetObjectLegalHold).await?,
        })
    }
}
