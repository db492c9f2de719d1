//! Deleting empty buckets: row, key and folder go, in this order.
//!
//! A request that looked the row up before may reach the bucket only now. So it stays among the
//! open ones, deleted, until its folder is gone: a latecomer finds it there and commits nothing,
//! and does not open the catalog anew. After that there is no key any more. Without its row the
//! bucket is deleted: what can't be removed then is left to the next start.

use std::sync::Arc;

use coffer_seal::BucketId;

use super::folder::remove_doomed_folder;
use crate::access::{Act, Actor, BucketName, Right, Role, Subject};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

const ACT: Act = Act::DeleteBucket;

impl Vault {
    /// Deletes a bucket without objects, its key included, for a data user. Multipart uploads under
    /// way end with it, as on S3.
    ///
    /// # Errors
    /// [`VaultError::BucketNotEmpty`] while it holds objects or delete markers.
    pub async fn delete_bucket(&self, subject: &Arc<Subject>, name: &BucketName) -> Result<()> {
        let row = self.usable(subject, name, Right::Delete).await?;
        // Whether it works tells whether anything is in there.
        self.note_read(subject, &row).await?;
        let actor = Actor::Subject(subject.clone());
        self.delete_bucket_as(&actor, Role::DataUser, row).await
    }

    /// Deletes an empty bucket, its key included. A system administrator's act.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::BucketNotEmpty`].
    pub async fn withdraw_bucket(&self, actor: &Actor, name: &BucketName) -> Result<()> {
        let row = self.looked_after(actor, name)?;
        if let Actor::Subject(subject) = actor
            && actor.has(Role::SystemAdministrator)
        {
            let label = self.inner.label(&row)?;
            self.check_mark(subject, label, Act::DeleteBucket, name)?;
        }
        self.delete_bucket_as(actor, Role::SystemAdministrator, row)
            .await
    }

    async fn delete_bucket_as(&self, actor: &Actor, role: Role, row: Arc<BucketRow>) -> Result<()> {
        let facts = Facts::from([("bucket", row.name.to_string())]);
        self.refuse_without(actor, role, ACT, &facts)?;
        // Looked at again when nothing can come any more.
        let bucket = self.grant(&row).await?.bucket;
        if !bucket.is_empty(role == Role::DataUser).await? {
            return Err(self.failed(ACT, actor, &facts, VaultError::BucketNotEmpty));
        }
        drop(bucket);
        let (this, who) = (self.clone(), actor.clone());
        let work = async move {
            // First: an erase that is under way waits for all that hold the bucket.
            let _changing = this.inner.changing_buckets.lock().await;
            let granted = this.grant(&row).await?;
            this.remove_row((&who, role), &row, &granted.bucket).await?;
            this.inner.at("row removed");
            granted.bucket.catalog.close().await;
            this.inner.at("catalog closed");
            if let Err(error) = this.remove_bucket_remains(row.id).await {
                let bucket = row.id;
                tracing::warn!(%bucket, %error, "what a deletion left waits for the next start");
            }
            this.inner.open_buckets.forget(row.id);
            Ok(())
        };
        self.act(actor, role, ACT, facts, work).await
    }

    /// Removes a bucket's row if the bucket is empty, and sees that it is not used any more. Should
    /// that fail, it is as it was; but while it is in doubt, it stays out of use.
    async fn remove_row(
        &self,
        (actor, role): (&Actor, Role),
        row: &Arc<BucketRow>,
        bucket: &UsedBucket,
    ) -> Result<()> {
        bucket.delete_if_empty(role == Role::DataUser).await?;
        self.inner.at("takes no commits");
        if let (Actor::Subject(subject), Role::DataUser) = (actor, role) {
            // The right may have been taken back until nothing was committed any more.
            let may_still = subject.cutoff.check();
            let may_still = may_still
                .and_then(|()| self.usable_row(subject, &row.name, Right::Delete).map(drop));
            may_still.inspect_err(|_| bucket.undelete())?;
        }
        let (inner, row, kept) = (self.inner.clone(), row.clone(), bucket.downgrade());
        let undelete = move || {
            if let Some(bucket) = kept.upgrade() {
                bucket.undelete();
            }
        };
        blocking(move || inner.system.remove_bucket(&row, undelete)).await
    }

    /// Destroys the key and the folder of a bucket that has no row any more. Nothing else tells of
    /// a folder whose key is gone, so that is noted first.
    pub(crate) async fn remove_bucket_remains(&self, id: BucketId) -> Result<()> {
        let inner = self.inner.clone();
        blocking(move || {
            inner.system.doom(id)?;
            inner.keystore.destroy_bucket(id)?;
            inner.at("key destroyed");
            remove_doomed_folder(&inner, id)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
