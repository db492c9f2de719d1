//! Tags of buckets.

use coffer_store::record::Tags;

use crate::access::{Act, BucketName, Right, Subject};
use crate::acts::Changed;
use crate::audit::On;
use crate::error::Result;
use crate::open_buckets::UsedBucket;
use crate::vault::Vault;

impl Vault {
    /// The bucket's tags, if it has any.
    ///
    /// # Errors
    /// [`BucketInDoubt`](crate::VaultError::BucketInDoubt) while it is in doubt whether they were
    /// changed.
    pub async fn bucket_tags(&self, subject: &Subject, name: &BucketName) -> Result<Option<Tags>> {
        let grant = self.readable(subject, name, Right::Read).await?;
        let look = |bucket: UsedBucket| async move {
            bucket.settle().await?;
            Ok(bucket.catalog.bucket_tags().await?)
        };
        let (tags, _reading) = grant.read(Act::ReadTags, On::Bucket, look).await?;
        Ok(tags)
    }

    /// Sets or removes the bucket's tags.
    pub async fn set_bucket_tags(
        &self,
        subject: &Subject,
        name: &BucketName,
        tags: Option<Tags>,
    ) -> Result<()> {
        let grant = self.changeable(subject, name, Right::Write).await?;
        let set = |bucket: UsedBucket| async move {
            bucket.catalog.set_bucket_tags(tags).await?;
            Ok(Changed::freeing((), Vec::new()))
        };
        grant.change(Act::WriteTags, [On::Bucket], set).await
    }
}
