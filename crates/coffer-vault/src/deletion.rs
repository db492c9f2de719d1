//! Deleting empty buckets: row, key and folder go, in this order.
//!
//! Whoever looked the row up before may reach the bucket only now. So it stays among the open ones,
//! deleted, until its folder is gone: a latecomer finds it there and commits nothing, and does not
//! open the catalog anew. After that there is no key any more. Without its row the bucket is
//! deleted: what can't be removed then is left to the next start.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_store::record::Id;

use crate::actor::Actor;
use crate::bucket::OpenBucket;
use crate::error::{Result, VaultError};
use crate::manage::{blocking, remove_doomed_folder};
use crate::name::BucketName;
use crate::recording::Facts;
use crate::rights::Right;
use crate::roles::Role;
use crate::subject::Subject;
use crate::system::BucketRow;
use crate::vault::Vault;

impl Vault {
    /// Deletes an empty bucket, its key included, for a data user.
    ///
    /// # Errors
    /// [`VaultError::BucketNotEmpty`] while it holds objects or multipart uploads.
    pub async fn delete_bucket(&self, subject: &Arc<Subject>, name: &BucketName) -> Result<()> {
        let row = self.usable_row(subject, name, Right::Delete)?;
        let actor = Actor::Subject(subject.clone());
        self.delete_bucket_as(&actor, Role::DataUser, row).await
    }

    /// Deletes an empty bucket, its key included. A system administrator's act.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::BucketNotEmpty`].
    pub async fn withdraw_bucket(&self, actor: &Actor, name: &BucketName) -> Result<()> {
        let found = self.inner.system.bucket(name);
        let row = found.filter(|row| self.may_look_after(actor, row));
        let row = row.ok_or(VaultError::NoSuchBucket)?;
        self.delete_bucket_as(actor, Role::SystemAdministrator, row)
            .await
    }

    async fn delete_bucket_as(&self, actor: &Actor, role: Role, row: Arc<BucketRow>) -> Result<()> {
        let facts = Facts::from([("bucket", row.name.to_string())]);
        let this = self.clone();
        let work = async move {
            // First: an erase that is under way waits for whoever holds the bucket.
            let _changing = this.inner.changing_buckets.lock().await;
            let granted = this.grant(&row).await?;
            this.remove_row(&row, &granted.bucket).await?;
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
        self.act(actor, role, "bucket.delete", facts, work).await
    }

    /// Removes a bucket's row if the bucket is empty, and sees that nobody uses it any more. Should
    /// that fail, it is as it was.
    async fn remove_row(&self, row: &Arc<BucketRow>, bucket: &OpenBucket) -> Result<()> {
        bucket.delete_if_empty().await?;
        row.is_hidden.store(true, Ordering::SeqCst);
        let (inner, doomed) = (self.inner.clone(), row.clone());
        let removed = blocking(move || inner.system.remove_bucket(&doomed.name)).await;
        if removed.is_err() {
            row.is_hidden.store(false, Ordering::SeqCst);
            bucket.undelete().await;
        }
        removed
    }

    /// Destroys the key and the folder of a bucket that has no row any more. Nothing else tells of
    /// a folder whose key is gone, so that is noted first.
    pub(crate) async fn remove_bucket_remains(&self, id: Id) -> Result<()> {
        let inner = self.inner.clone();
        blocking(move || {
            inner.system.doom(id)?;
            inner.keystore.destroy_bucket(&id.0)?;
            inner.at("key destroyed");
            remove_doomed_folder(&inner, id)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
