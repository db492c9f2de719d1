//! Ending unfinished multipart uploads.

use std::sync::Arc;
use std::time::Duration;

use coffer_durable::now_ms;

use crate::access::{Act, Actor, BucketName, Right, Role};
use crate::audit::Facts;
use crate::error::Result;
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

const ACT: Act = Act::EndUploads;

/// Uploads that were ended, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadsEnded {
    /// How many.
    pub count: u64,
    /// Bytes that their parts have together.
    pub bytes: u64,
}

impl Vault {
    /// How much [`Vault::end_uploads`] would end now.
    ///
    /// # Errors
    /// As that.
    pub async fn count_uploads(
        &self,
        actor: &Actor,
        name: &BucketName,
        older_than: Duration,
    ) -> Result<UploadsEnded> {
        let (row, _) = self.may_end_uploads(actor, name).await?;
        let bucket = self.grant(&row).await?.bucket;
        let old = bucket.catalog.open_uploads(Some(before_ms(older_than)));
        let old = old.await?;
        Ok(UploadsEnded {
            count: old.count,
            bytes: old.bytes,
        })
    }

    /// Ends the uploads of a bucket that were begun longer ago than this, with all their parts: a
    /// key custodian's act, as erasing the bucket is, or of a data user who may write there. If it
    /// fails half-way, what was ended stays so.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`](crate::VaultError::NoSuchBucket),
    /// [`VaultError::AccessDenied`](crate::VaultError::AccessDenied); those of administrative acts.
    pub async fn end_uploads(
        &self,
        actor: &Actor,
        name: &BucketName,
        older_than: Duration,
    ) -> Result<UploadsEnded> {
        let (row, role) = self.may_end_uploads(actor, name).await?;
        let facts = facts(name, older_than);
        let (this, told) = (self.clone(), facts.clone());
        let work = async move {
            let bucket = this.grant(&row).await?.bucket;
            let ended = this.end_in(&bucket, before_ms(older_than)).await?;
            let mut facts = told;
            facts.insert("count", ended.count.to_string());
            facts.insert("bytes", ended.bytes.to_string());
            Ok((ended, vec![facts]))
        };
        self.act_telling(actor, role, ACT, vec![facts], work).await
    }

    /// The bucket, and as what the actor may end uploads there. How many there are tells of what
    /// the bucket holds: a data user has read there, then.
    async fn may_end_uploads(
        &self,
        actor: &Actor,
        name: &BucketName,
    ) -> Result<(Arc<BucketRow>, Role)> {
        let Actor::Subject(subject) = actor else {
            return Ok((self.looked_after(actor, name)?, Role::KeyCustodian));
        };
        let (row, role) = if actor.has(Role::KeyCustodian) {
            let row = self.looked_after(actor, name)?;
            self.check_mark(subject, self.inner.label(&row)?, ACT, name)?;
            (row, Role::KeyCustodian)
        } else {
            let row = self.usable_as_owner(subject, name, Right::Write)?;
            (row, Role::DataUser)
        };
        if actor.has(Role::DataUser) {
            self.note_read(subject, &row).await?;
        }
        Ok((row, role))
    }

    pub(crate) async fn end_in(&self, bucket: &UsedBucket, before_ms: i64) -> Result<UploadsEnded> {
        let mut all = UploadsEnded::default();
        loop {
            let changing = self.inner.open_buckets.uploads.change(bucket.id);
            let guard = bucket.commit_guard().await?;
            let ended = bucket.catalog.end_uploads(before_ms).await?;
            drop(guard);
            let mut known = ended.made_by.into_iter();
            for _ in 0..ended.count {
                changing.ended(known.next().as_deref());
            }
            drop(changing);
            bucket.blobs.remove(ended.freed).await;
            if ended.count == 0 {
                return Ok(all);
            }
            all.count += ended.count;
            all.bytes += ended.bytes;
        }
    }
}

fn facts(name: &BucketName, older_than: Duration) -> Facts {
    Facts::from([
        ("bucket", name.to_string()),
        ("older-than-seconds", older_than.as_secs().to_string()),
    ])
}

/// The time before which uploads were begun that are as old. At none: also those of this moment.
fn before_ms(older_than: Duration) -> i64 {
    let age_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX);
    now_ms().saturating_sub(age_ms).saturating_add(1)
}
