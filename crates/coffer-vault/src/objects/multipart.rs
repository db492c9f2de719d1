//! Multipart uploads: parts are blobs of their own from the start, so completing one moves rows,
//! not bytes.

use coffer_durable::now_ms;
use coffer_store::limits::LIST_MAX;
use coffer_store::record::{
    ChecksumAlgorithm, ChecksumKind, Details, Id, NewContent, ObjectName, Part, Tags, Upload,
    UploadsPage, UploadsQuery,
};

use super::conditions::{RangeRequest, ReadOptions};
use super::digest::DigestPlan;
use super::ingest::{Incoming, Ingested, Placing, ingest, keep_current};
use super::write::{
    CopySource, Stored, as_precondition, committed, incoming_copy, reclaim, settle,
};
use crate::access::{BucketName, Right, Subject};
use crate::acts::{Changeable, Readable};
use crate::audit::{
    ABORT_UPLOAD, CREATE_UPLOAD, LIST_PARTS, LIST_UPLOADS, On, WRITE_PART, absent, begin, failed,
    tell,
};
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::PART_NUMBER_MAX;
use crate::open_buckets::OpenBucket;
use crate::vault::Vault;

/// A part to be put.
#[derive(Debug)]
pub struct PutPart {
    /// The name that its upload was begun for.
    pub name: ObjectName,
    /// Its upload.
    pub upload: Id,
    /// Its number, 1 to 10,000.
    pub number: u32,
    /// Its bytes.
    pub incoming: Incoming,
}

/// A part to be copied from an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPart {
    /// The name that the upload was begun for.
    pub name: ObjectName,
    /// The upload.
    pub upload: Id,
    /// The part's number, 1 to 10,000.
    pub number: u32,
    /// Which bytes of the source.
    pub range: RangeRequest,
}

/// A multipart upload to be begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUpload {
    /// The name that the object will have.
    pub name: ObjectName,
    /// Description of the object to be.
    pub details: Details,
    /// Tags of the object to be.
    pub tags: Tags,
    /// The checksum that the client announced; `None` becomes full-object CRC-64/NVME.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
}

/// A multipart upload that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedUpload {
    /// Its id.
    pub id: Id,
    /// Name of the level whose key will seal its parts.
    pub level: String,
}

/// A page of an upload's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsPage {
    /// The upload.
    pub upload: Upload,
    /// Its parts, by number.
    pub parts: Vec<Part>,
    /// The last number of this page, when there are more.
    pub next: Option<u32>,
    /// Name of the level whose key seals them.
    pub level: String,
}

/// What the checksum of a multipart object is formed by when the client announced none.
pub(crate) const DEFAULT_CHECKSUM: (ChecksumAlgorithm, ChecksumKind) =
    (ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject);

impl Vault {
    /// Begins a multipart upload.
    pub async fn create_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        new: NewUpload,
    ) -> Result<StartedUpload> {
        let Changeable {
            bucket,
            level,
            watch,
            permit,
        } = self.changeable(subject, bucket, Right::Write).await?;
        let NewUpload {
            name,
            details,
            tags,
            checksum,
        } = new;
        let id = Id(coffer_seal::random_bytes());
        let started_ms = now_ms();
        let upload = Upload {
            id,
            name,
            started_ms,
            details,
            tags,
            checksum,
        };
        let begun = begin(watch.as_ref(), CREATE_UPLOAD, [On::Object(&upload.name)]).await?;
        let create = async {
            let _guard = permit.to_commit(&bucket).await?;
            let created = bucket.catalog.create_upload(upload).await;
            created.map_err(VaultError::from)
        };
        create.await.inspect_err(|error| failed(&begun, error))?;
        Ok(StartedUpload { id, level })
    }

    /// Puts a part; it replaces an earlier one of its number.
    pub async fn put_part(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        put: PutPart,
    ) -> Result<Stored> {
        if !(1..=PART_NUMBER_MAX).contains(&put.number) {
            return Err(VaultError::Invalid {
                what: "a part number is from 1 to 10,000",
            });
        }
        let Changeable {
            bucket,
            level,
            watch,
            permit,
        } = self.changeable(subject, bucket, Right::Write).await?;
        let upload = find_upload(&bucket, put.upload, &put.name).await;
        let upload = permit.telling(upload).await?;
        let mut incoming = put.incoming;
        incoming.digests = self.plan(part_plan(&upload, incoming.digests)?);
        let ingested = ingest(&bucket, &subject.cutoff, incoming, Placing::Blob)
            .await
            .map_err(|error| self.count_full(error))?;
        let Ingested {
            content,
            blob,
            size_bytes,
            digests,
            wrapped_by,
        } = ingested;
        let NewContent::Blob(reference) = content else {
            return Err(VaultError::Damaged);
        };
        let (etag, modified_ms) = (self.etag_of(&digests), now_ms());
        let mut part = Part {
            number: put.number,
            etag: etag.clone(),
            modified_ms,
            blob: reference,
        };

        let tally = self.inner.tally.clone();
        let part_of = On::Part(&put.name, put.number);
        let begun = begin(watch.as_ref(), WRITE_PART, [part_of]).await?;
        let upload = put.upload;
        committed(&tally, async move {
            let _guard = permit.to_commit(&bucket).await?;
            keep_current(&bucket, &wrapped_by, &mut part.blob)?;
            let outcome = bucket.catalog.put_part(upload, part).await;
            let replaced = settle(blob, outcome)?;
            reclaim(&bucket, replaced.into_iter().collect());
            Ok(())
        })
        .await
        .inspect_err(|error| failed(&begun, error))?;
        add(&tally.stored_count, 1);
        add(&tally.stored_bytes, size_bytes);
        Ok(Stored {
            etag,
            checksum: digests.checksum,
            modified_ms,
            size_bytes,
            level,
        })
    }

    /// Puts a part that is copied from an object.
    pub async fn copy_part(
        &self,
        subject: &Subject,
        source: CopySource,
        bucket: &BucketName,
        copy: CopyPart,
    ) -> Result<Stored> {
        self.copyable(subject, &source.bucket, bucket)?;
        let CopySource {
            bucket: from,
            name,
            conditions,
        } = source;
        let options = ReadOptions {
            conditions,
            range: copy.range,
        };
        let read = self
            .read_object(subject, &from, &name, options)
            .await
            .map_err(as_precondition)?;
        let CopyPart {
            name,
            upload,
            number,
            ..
        } = copy;
        let put = PutPart {
            name,
            upload,
            number,
            incoming: incoming_copy(read.body, None),
        };
        self.put_part(subject, bucket, put).await
    }

    /// The checksum that an upload under way was begun with, for who puts its parts.
    pub async fn announced_checksum(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: Id,
    ) -> Result<Option<(ChecksumAlgorithm, ChecksumKind)>> {
        let Changeable { bucket, permit, .. } =
            self.changeable(subject, bucket, Right::Write).await?;
        let found = find_upload(&bucket, upload, name).await;
        Ok(permit.telling(found).await?.checksum)
    }

    /// A page of an upload's parts, after a part number.
    pub async fn list_parts(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: Id,
        after: u32,
        limit: usize,
    ) -> Result<PartsPage> {
        let Readable {
            bucket,
            level,
            watch,
            reading: _reading,
        } = self.readable(subject, bucket, Right::List).await?;
        let found = match find_upload(&bucket, upload, name).await {
            Ok(found) => found,
            Err(error) => {
                return Err(absent(watch.as_ref(), LIST_PARTS, On::Object(name), error).await);
            }
        };
        tell(watch.as_ref(), LIST_PARTS, On::Object(name)).await?;
        let limit = limit.min(LIST_MAX);
        let mut parts = bucket.catalog.parts(&upload, after, limit + 1).await?;
        let more = parts.len() > limit;
        parts.truncate(limit);
        let next = parts.last().filter(|_| more).map(|part| part.number);
        Ok(PartsPage {
            upload: found,
            parts,
            next,
            level,
        })
    }

    /// A page of the bucket's uploads.
    pub async fn list_uploads(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        query: UploadsQuery,
    ) -> Result<UploadsPage> {
        let Readable {
            bucket,
            watch,
            reading: _reading,
            ..
        } = self.readable(subject, bucket, Right::List).await?;
        tell(watch.as_ref(), LIST_UPLOADS, On::Prefix(&query.prefix)).await?;
        Ok(bucket.catalog.uploads(query).await?)
    }

    /// Ends an upload and removes its parts.
    pub async fn abort_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: Id,
    ) -> Result<()> {
        let Changeable {
            bucket,
            watch,
            permit,
            ..
        } = self.changeable(subject, bucket, Right::Write).await?;
        let found = find_upload(&bucket, upload, name).await;
        if let Err(error) = permit.telling(found).await {
            return Err(absent(watch.as_ref(), ABORT_UPLOAD, On::Object(name), error).await);
        }
        let begun = begin(watch.as_ref(), ABORT_UPLOAD, [On::Object(name)]).await?;
        let tally = self.inner.tally.clone();
        committed(&tally, async move {
            let _guard = permit.to_commit(&bucket).await?;
            let freed = bucket.catalog.abort_upload(&upload).await?;
            reclaim(&bucket, freed);
            Ok(())
        })
        .await
        .inspect_err(|error| failed(&begun, error))
    }
}

/// An upload under way, which must have been begun for this name.
pub(crate) async fn find_upload(bucket: &OpenBucket, id: Id, name: &ObjectName) -> Result<Upload> {
    let found = bucket.catalog.upload(&id).await?;
    found
        .filter(|upload| upload.name == *name)
        .ok_or(VaultError::NoSuchUpload)
}

/// The digests to form over a part: its checksum is of the upload's algorithm.
fn part_plan(upload: &Upload, asked: DigestPlan) -> Result<DigestPlan> {
    let (announced, _) = upload.checksum.unwrap_or(DEFAULT_CHECKSUM);
    if asked
        .checksum
        .is_some_and(|algorithm| algorithm != announced)
    {
        return Err(VaultError::Invalid {
            what: "the part's checksum algorithm is not the one that its upload was begun with",
        });
    }
    Ok(DigestPlan {
        checksum: Some(announced),
        ..asked
    })
}
