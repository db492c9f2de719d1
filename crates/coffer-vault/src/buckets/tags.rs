//! Tags of buckets.

use coffer_store::record::Tags;

use crate::access::{BucketName, Right, Subject};
use crate::acts::{Changeable, Readable};
use crate::audit::{On, READ_TAGS, WRITE_TAGS, begin, failed, tell};
use crate::error::Result;
use crate::vault::Vault;

impl Vault {
    /// The bucket's tags, if it has any.
    pub async fn bucket_tags(&self, subject: &Subject, name: &BucketName) -> Result<Option<Tags>> {
        let Readable {
            bucket,
            watch,
            reading: _reading,
            ..
        } = self.readable(subject, name, Right::Read).await?;
        tell(watch.as_ref(), READ_TAGS, On::Bucket).await?;
        Ok(bucket.catalog.bucket_tags().await?)
    }

    /// Sets or removes the bucket's tags.
    pub async fn set_bucket_tags(
        &self,
        subject: &Subject,
        name: &BucketName,
        tags: Option<Tags>,
    ) -> Result<()> {
        let Changeable {
            bucket,
            watch,
            permit,
            ..
        } = self.changeable(subject, name, Right::Write).await?;
        let begun = begin(watch.as_ref(), WRITE_TAGS, [On::Bucket]).await?;
        let set = async {
            let _guard = permit.to_commit(&bucket).await?;
            Ok(bucket.catalog.set_bucket_tags(tags).await?)
        };
        set.await.inspect_err(|error| failed(&begun, error))
    }
}
