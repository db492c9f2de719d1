//! Reading: conditions, ranges, listings.

use std::ops::Range;

use coffer_store::record::{ListPage, ListQuery, ObjectHead, ObjectName, ObjectPart, Tags};

use super::body::ObjectBody;
use super::conditions::{RangeRequest, ReadOptions, choose};
use crate::access::{Act, BucketName, Right, Subject};
use crate::audit::On;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::open_buckets::UsedBucket;
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
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let (level, tally) = (grant.level(), self.inner.tally.clone());
        let look = |bucket: UsedBucket| async move {
            let part = part_range(&bucket.catalog, name, options.range).await?;
            let pin = bucket.blobs.pin();
            let before = bucket.key();
            let choose = |head: &ObjectHead| choose(head, &options, part.clone());
            let read = bucket.catalog.read(name, choose).await?;
            let (head, range, content) = read.ok_or(VaultError::NoSuchObject)??;
            add(&tally.read_count, 1);
            let body = ObjectBody::new(bucket, before, pin, content, range.clone(), tally).await?;
            Ok((ObjectInfo { head, range, level }, body))
        };
        let ((info, body), reading) = grant.read(Act::ReadObject, On::Object(name), look).await?;
        let body = body.while_allowed(subject.cutoff.clone(), reading);
        Ok(ObjectRead { info, body })
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
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let level = grant.level();
        let look = |bucket: UsedBucket| async move {
            let part = part_range(&bucket.catalog, name, options.range).await?;
            let head = bucket.catalog.head(name).await?;
            let head = head.ok_or(VaultError::NoSuchObject)?;
            let range = choose(&head, &options, part)?;
            Ok(ObjectInfo { head, range, level })
        };
        let (info, _reading) = grant.read(Act::HeadObject, On::Object(name), look).await?;
        Ok(info)
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
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let look = |bucket: UsedBucket| async move {
            let found = bucket.catalog.object_parts(name, after, limit).await?;
            found.ok_or(VaultError::NoSuchObject)
        };
        let (found, _reading) = grant.read(Act::HeadObject, On::Object(name), look).await?;
        Ok(found)
    }

    /// A page of the bucket's objects.
    pub async fn list_objects(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        query: ListQuery,
    ) -> Result<ListPage> {
        let grant = self.readable(subject, bucket, Right::List).await?;
        let prefix = query.prefix.clone();
        let look = |bucket: UsedBucket| async move { Ok(bucket.catalog.list(query).await?) };
        let (page, _reading) = grant
            .read(Act::ListObjects, On::Prefix(&prefix), look)
            .await?;
        Ok(page)
    }

    /// An object's tags.
    pub async fn object_tags(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
    ) -> Result<Tags> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let look = |bucket: UsedBucket| async move {
            let tags = bucket.catalog.object_tags(name).await?;
            tags.ok_or(VaultError::NoSuchObject)
        };
        let (tags, _reading) = grant.read(Act::ReadTags, On::Object(name), look).await?;
        Ok(tags)
    }
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
