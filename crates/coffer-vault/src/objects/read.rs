//! Reading: conditions, ranges, listings.

use std::ops::Range;

use coffer_store::record::{
    Content, ListPage, ListQuery, ObjectHead, ObjectName, ObjectPart, Tags,
};

use super::body::ObjectBody;
use super::conditions::{RangeRequest, ReadOptions, choose};
use crate::access::{BucketName, Right, Subject};
use crate::acts::Readable;
use crate::audit::{HEAD, LIST, ObjectAudit, On, READ, READ_TAGS, absent, tell};
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::vault::Vault;

/// An object that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its description.
    pub head: ObjectHead,
    /// The bytes that the request selected.
    pub range: Range<u64>,
    /// Name of the level whose key seals it.
    pub level: String,
}

/// An object about to be read.
pub struct ObjectRead {
    /// What is known of it.
    pub info: ObjectInfo,
    /// The bytes that were selected.
    pub body: ObjectBody,
}

impl Vault {
    /// Opens an object for reading.
    ///
    /// # Errors
    /// [`VaultError::NoSuchObject`], [`VaultError::NotModified`],
    /// [`VaultError::PreconditionFailed`], [`VaultError::InvalidRange`],
    /// [`VaultError::NoSuchPart`], [`VaultError::Damaged`].
    pub async fn read_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        options: ReadOptions,
    ) -> Result<ObjectRead> {
        let Readable {
            bucket,
            level,
            watch,
            reading,
        } = self.readable(subject, bucket, Right::Read).await?;
        let part = part_range(&bucket.catalog, name, options.range).await?;
        let pin = bucket.blobs.pin();
        let before = bucket.key();
        let choose = |head: &ObjectHead| choose(head, &options, part.clone());
        let Some(read) = bucket.catalog.read(name, choose).await? else {
            return Err(no_object(watch.as_ref(), READ, name).await);
        };
        let (head, range, content): (ObjectHead, Range<u64>, Content) = match read {
            Ok(chosen) => chosen,
            Err(refused) => {
                // A condition or a range that is not met tells of the object what a HEAD does.
                tell(watch.as_ref(), HEAD, On::Object(name)).await?;
                return Err(refused);
            }
        };
        tell(watch.as_ref(), READ, On::Object(name)).await?;
        add(&self.inner.tally.read_count, 1);
        let tally = self.inner.tally.clone();
        let body = ObjectBody::new(bucket, before, pin, content, range.clone(), tally).await?;
        let body = body.while_allowed(subject.cutoff.clone(), reading);
        Ok(ObjectRead {
            info: ObjectInfo { head, range, level },
            body,
        })
    }

    /// What is known of an object, under the same conditions and ranges as
    /// [`read_object`](Self::read_object).
    pub async fn head_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        options: ReadOptions,
    ) -> Result<ObjectInfo> {
        let Readable {
            bucket,
            level,
            watch,
            reading: _reading,
        } = self.readable(subject, bucket, Right::Read).await?;
        let part = part_range(&bucket.catalog, name, options.range).await?;
        let Some(head) = bucket.catalog.head(name).await? else {
            return Err(no_object(watch.as_ref(), HEAD, name).await);
        };
        tell(watch.as_ref(), HEAD, On::Object(name)).await?;
        let range = choose(&head, &options, part)?;
        Ok(ObjectInfo { head, range, level })
    }

    /// What is known of an object, and its parts with numbers above `after`, ascending: none where
    /// it came in one piece.
    pub async fn object_parts(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        after: u32,
        limit: usize,
    ) -> Result<(ObjectHead, Vec<ObjectPart>)> {
        let Readable {
            bucket,
            watch,
            reading: _reading,
            ..
        } = self.readable(subject, bucket, Right::Read).await?;
        let found = bucket.catalog.object_parts(name, after, limit).await?;
        let Some(found) = found else {
            return Err(no_object(watch.as_ref(), HEAD, name).await);
        };
        tell(watch.as_ref(), HEAD, On::Object(name)).await?;
        Ok(found)
    }

    /// A page of the bucket's objects.
    pub async fn list_objects(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        query: ListQuery,
    ) -> Result<ListPage> {
        let Readable {
            bucket,
            watch,
            reading: _reading,
            ..
        } = self.readable(subject, bucket, Right::List).await?;
        tell(watch.as_ref(), LIST, On::Prefix(&query.prefix)).await?;
        Ok(bucket.catalog.list(query).await?)
    }

    /// An object's tags.
    pub async fn object_tags(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
    ) -> Result<Tags> {
        let Readable {
            bucket,
            watch,
            reading: _reading,
            ..
        } = self.readable(subject, bucket, Right::Read).await?;
        let tags = bucket.catalog.object_tags(name).await?;
        let Some(tags) = tags else {
            return Err(no_object(watch.as_ref(), READ_TAGS, name).await);
        };
        tell(watch.as_ref(), READ_TAGS, On::Object(name)).await?;
        Ok(tags)
    }
}

async fn no_object(
    watch: Option<&ObjectAudit>,
    act: &'static str,
    name: &ObjectName,
) -> VaultError {
    absent(watch, act, On::Object(name), VaultError::NoSuchObject).await
}

/// Where the part that was asked for lies. Read before the object itself: should the object be
/// replaced in between, the range is checked against the new one like any other.
async fn part_range(
    catalog: &coffer_store::Catalog,
    name: &ObjectName,
    range: RangeRequest,
) -> Result<Option<Range<u64>>> {
    match range {
        RangeRequest::Part(number) => Ok(catalog.part_range(name, number).await?),
        _ => Ok(None),
    }
}
