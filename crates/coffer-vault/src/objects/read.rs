//! Reading: conditions, ranges, listings.

mod waiting;

use std::ops::Range;

use coffer_store::record::{
    Checksum, ChecksumKind, Content, ListPage, ListQuery, ObjectHead, ObjectName, ObjectPart, Tags,
    Verification,
};
use coffer_store::version::{VersionId, Which};
use coffer_store::{VersionsPage, VersionsQuery};

use super::body::ObjectBody;
use super::conditions::{RangeRequest, ReadOptions, choose};
use crate::access::{Act, BucketName, Right, Subject};
use crate::audit::On;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::locks::LockReader;
use crate::open_buckets::UsedBucket;
use crate::vault::{Found, JudgedObject, Vault};

pub(crate) use self::waiting::look_through;

use self::waiting::check_waiting;

/// An object that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its description.
    pub head: ObjectHead,
    /// How many tags it has, for those who may be told; for others it has none.
    pub tag_count: u32,
    /// The bytes that the request selected.
    pub range: Range<u64>,
    /// Where a part was asked for by its number: the checksum of its bytes, where they have one
    /// that the object's is made of or is.
    pub part_checksum: Option<Checksum>,
    /// Name of the level whose key seals it.
    pub level: String,
    /// What this version is called, where the bucket keeps versions or did.
    pub version: Option<VersionId>,
    /// Whether it was stored as it came, and what is known of it since.
    pub verification: Verification,
}

/// An object about to be read.
pub struct ObjectRead {
    /// What is known of it.
    pub info: ObjectInfo,
    /// The bytes that were selected.
    pub body: ObjectBody,
}

/// What an object is read for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// For who asked.
    ToTell,
    /// To be stored again: what waits to be verified is, before.
    ToCopy,
}

/// An object's head and some of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectParts {
    /// Its description.
    pub head: ObjectHead,
    /// Its parts: none where it came in one piece.
    pub parts: Vec<ObjectPart>,
    /// What this version is called, where the bucket keeps versions or did.
    pub version: Option<VersionId>,
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
        self.read_as(subject, bucket, name, options, Reads::ToTell)
            .await
    }

    /// Opens an object for reading, for this.
    pub(super) async fn read_as(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        options: ReadOptions,
        reads: Reads,
    ) -> Result<ObjectRead> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let (level, tally) = (grant.level(), self.inner.tally.clone());
        let locks = LockReader::of(&grant);
        let judged = grant.judged_objects();
        let look = |bucket: UsedBucket| async move {
            let pin = bucket.blobs.pin();
            let keys = (bucket.key(), options.customer_key.clone());
            let told = (level, locks, &judged[..]);
            let (info, content) = look_up(&bucket, name, &options, told).await?;
            if reads == Reads::ToCopy {
                check_waiting(&bucket, keys.0.clone(), &content).await?;
            }
            add(&tally.read_count, 1);
            let range = info.range.clone();
            let body = ObjectBody::new(bucket, keys, pin, content, range, tally).await?;
            Ok((info, body))
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
        let (level, locks) = (grant.level(), LockReader::of(&grant));
        let judged = grant.judged_objects();
        let look = |bucket: UsedBucket| async move {
            let which = options.which;
            let number = part_number(options.range);
            let found = bucket.catalog.head_and_part(name, which, number);
            let (mut head, part) = found.await??;
            JudgedObject::check(&judged, (name, which), (&head).into())?;
            // Of this version, whatever took the name since.
            let version = (name, Which::Version(head.version));
            head.lock = locks.told(&bucket, version, head.lock).await?;
            let tag_count = locks.tag_count(&bucket, (name, which), &head).await?;
            let range = choose(&head, &options, part)?;
            let asked = (options.range, &range);
            let part_checksum = part_checksum(&bucket, name, &head, asked).await?;
            let verification = bucket.catalog.verification(name, version.1).await?;
            let version = told_version(&bucket, head.version);
            Ok(ObjectInfo {
                head,
                tag_count,
                range,
                part_checksum,
                level,
                version,
                verification,
            })
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
        (name, which): (&ObjectName, Which),
        after: u32,
        limit: usize,
    ) -> Result<ObjectParts> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let judged = grant.judged_objects();
        let look = |bucket: UsedBucket| async move {
            let found = bucket.catalog.object_parts(name, which, after, limit);
            let (head, parts) = found.await??;
            JudgedObject::check(&judged, (name, which), (&head).into())?;
            Ok(ObjectParts {
                version: told_version(&bucket, head.version),
                head,
                parts,
            })
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
        let row = grant.row().clone();
        let (mut page, _reading) = grant
            .read(Act::ListObjects, On::Prefix(&prefix), look)
            .await?;
        let owners = page.objects.iter_mut().map(|listed| &mut listed.owner);
        self.tell_owners(&row, owners)?;
        Ok(page)
    }

    /// A page of the bucket's versions and delete markers.
    pub async fn list_versions(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        query: VersionsQuery,
    ) -> Result<VersionsPage> {
        let grant = self.readable(subject, bucket, Right::List).await?;
        let prefix = query.prefix.clone();
        let look = |bucket: UsedBucket| async move { Ok(bucket.catalog.versions(query).await?) };
        let on = On::Prefix(&prefix);
        let row = grant.row().clone();
        let (mut page, _reading) = grant.read(Act::ListObjects, on, look).await?;
        let owners = page.versions.iter_mut().map(|listed| &mut listed.owner);
        self.tell_owners(&row, owners)?;
        Ok(page)
    }

    /// An object's tags, and what the version is called that has them, where the bucket keeps
    /// versions or did.
    ///
    /// # Errors
    /// [`VaultError::BucketInDoubt`] while it is in doubt whether they were changed.
    pub async fn object_tags(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        which: Which,
    ) -> Result<(Tags, Option<VersionId>)> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let judged = grant.judged_objects();
        let look = |bucket: UsedBucket| async move {
            bucket.settle().await?;
            let (tags, version) = bucket.catalog.object_tags(name, which).await??;
            let found = Found {
                access: None,
                tags: Some(&tags),
            };
            JudgedObject::check(&judged, (name, which), found)?;
            Ok((tags, told_version(&bucket, version)))
        };
        let (tags, _reading) = grant.read(Act::ReadTags, On::Object(name), look).await?;
        Ok(tags)
    }

    /// Whether the subject may be told the tags of an object that was read: recorded as if they
    /// were read by themselves.
    pub(super) async fn judge_tags(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        (name, which): (&ObjectName, Which),
        head: &ObjectHead,
    ) -> Result<()> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let judged = grant.judged_objects();
        let look = |_: UsedBucket| async move {
            let found = Found {
                access: None,
                tags: Some(&head.tags),
            };
            JudgedObject::check(&judged, (name, which), found)
        };
        let ((), _reading) = grant.read(Act::ReadTags, On::Object(name), look).await?;
        Ok(())
    }
}

/// Looks an object up, judges conditions and range, and finds what holds the range. The caller
/// has pinned the blobs, and taken the bucket's key, before.
pub(super) async fn look_up(
    bucket: &UsedBucket,
    name: &ObjectName,
    options: &ReadOptions,
    (level, locks, judged): (String, LockReader<'_>, &[JudgedObject]),
) -> Result<(ObjectInfo, Content)> {
    let which = options.which;
    let number = part_number(options.range);
    let choose = |head: &ObjectHead, part: Option<Range<u64>>| {
        JudgedObject::check(judged, (name, which), head.into())?;
        choose(head, options, part)
    };
    let read = bucket.catalog.read_part(name, which, number, choose);
    let read = read.await?;
    let (mut head, range, content) = read??;
    // Of this version, whatever took the name since.
    let version = (name, Which::Version(head.version));
    head.lock = locks.told(bucket, version, head.lock).await?;
    let tag_count = locks.tag_count(bucket, (name, which), &head).await?;
    let verification = bucket.catalog.verification(name, version.1).await?;
    if verification == Verification::Failed {
        // It was counted and told when it was found.
        return Err(VaultError::Damaged);
    }
    let part_checksum = part_checksum(bucket, name, &head, (options.range, &range)).await?;
    let info = ObjectInfo {
        part_checksum,
        verification,
        version: told_version(bucket, head.version),
        head,
        tag_count,
        range,
        level,
    };
    Ok((info, content))
}

/// The number of the part that is asked for, if one is.
fn part_number(range: RangeRequest) -> Option<u32> {
    match range {
        RangeRequest::Part(number) => Some(number),
        _ => None,
    }
}

/// The checksum of the bytes of a part that was asked for, as clients compare it: of a part whose
/// checksum the object's is made of, its own; of one that is all of the object, the object's.
async fn part_checksum(
    bucket: &UsedBucket,
    name: &ObjectName,
    head: &ObjectHead,
    (asked, range): (RangeRequest, &Range<u64>),
) -> Result<Option<Checksum>> {
    let (RangeRequest::Part(number), Some(whole)) = (asked, &head.details.checksum) else {
        return Ok(None);
    };
    if whole.kind == ChecksumKind::FullObject {
        let is_all = *range == (0..head.size_bytes);
        return Ok(is_all.then(|| whole.clone()));
    }
    let which = Which::Version(head.version);
    let found = bucket.catalog.object_parts(name, which, number - 1, 1);
    // Apart, so that no other request pays for it.
    let Ok((now, parts)) = Box::pin(found).await? else {
        return Ok(None);
    };
    let is_it = |part: &ObjectPart| {
        // Another null version may have come meanwhile.
        now.etag == head.etag && part.number == number && part.size_bytes == range.end - range.start
    };
    let part = parts.into_iter().find(is_it);
    Ok(part
        .and_then(|part| part.checksum)
        .map(|checksum| Checksum {
            kind: ChecksumKind::Composite,
            ..checksum
        }))
}

/// What is told of a version: where a bucket never kept any, nothing.
pub(super) fn told_version(bucket: &UsedBucket, version: VersionId) -> Option<VersionId> {
    bucket.catalog.has_versions().then_some(version)
}
