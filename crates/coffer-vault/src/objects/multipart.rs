//! Multipart uploads: parts are blobs of their own from the start, so completing one moves rows,
//! not bytes.

use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_policy::Action;
use coffer_seal::UploadId;
use coffer_store::record::{
    ChecksumAlgorithm, ChecksumKind, Details, Encryption, NewContent, ObjectName, Part, Tags,
    Upload,
};
use coffer_store::version::VersionId;

use super::acl::of_list;
use super::asked::{AskedEncryption, check_key_of_part};
use super::conditions::RangeRequest;
use super::ingest::{Incoming, Ingested, Placing, keep_current};
use super::upload_ids::id_of_new;
use super::write::{CopySource, Source, Stored, incoming_copy, plan, settle};
use crate::access::{
    Act, AskedAcl, BucketName, ListAsSent, Right, Subject, kept_with_upload, maker,
};
use crate::acts::{ChangeGrant, Changed};
use crate::audit::On;
use crate::digest::DigestPlan;
use crate::error::{ChecksumError, Result, VaultError};
use crate::limits::PART_NUMBER_MAX;
use crate::locks::AskedLock;
use crate::open_buckets::{CustomerKey, UsedBucket};
use crate::transfers::ArrivedAs;
use crate::vault::Vault;

/// A part to be put.
#[derive(Debug)]
pub struct PutPart {
    /// The name that its upload was begun for.
    pub name: ObjectName,
    /// Its upload.
    pub upload: UploadId,
    /// Its number, 1 to 10,000.
    pub number: u32,
    /// The client's key that the upload was begun with, if it was.
    pub customer_key: Option<CustomerKey>,
    /// Its bytes.
    pub incoming: Incoming,
}

/// A part to be copied from an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPart {
    /// The name that the upload was begun for.
    pub name: ObjectName,
    /// The upload.
    pub upload: UploadId,
    /// The part's number, 1 to 10,000.
    pub number: u32,
    /// Which bytes of the source.
    pub range: RangeRequest,
    /// The client's key that the upload was begun with, if it was.
    pub customer_key: Option<CustomerKey>,
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
    /// How it is to be said to be encrypted.
    pub encryption: AskedEncryption,
    /// The checksum that the client announced; `None` becomes full-object CRC-64/NVME.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
    /// What is to keep the object from being deleted.
    pub lock: AskedLock,
    /// Who else may use the object.
    pub acl: AskedAcl,
    /// The same in the headers' own words, which its completion is asked by.
    pub acl_sent: ListAsSent,
}

/// A multipart upload that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedUpload {
    /// Its id.
    pub id: UploadId,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// Name of the level whose key will seal its parts.
    pub level: String,
    /// How the object will be said to be encrypted.
    pub encryption: Encryption,
}

/// What the checksum of a multipart object is formed by when the client announced none.
pub(crate) const DEFAULT_CHECKSUM: (ChecksumAlgorithm, ChecksumKind) =
    (ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject);

impl Vault {
    /// Begins a multipart upload.
    ///
    /// # Errors
    /// [`SubjectLimit::Uploads`](crate::SubjectLimit::Uploads).
    pub async fn create_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        new: NewUpload,
    ) -> Result<StartedUpload> {
        let grant = self.changeable(subject, bucket, Right::Write).await?;
        let NewUpload {
            name,
            mut details,
            tags,
            checksum,
            encryption,
            lock,
            acl,
            acl_sent,
        } = new;
        let access = grant.access_of_new(&acl).await?;
        let lock = self.asked_lock(&grant, lock)?;
        let encryption = encryption.of_object(grant.encryption()?)?;
        details.encryption = encryption.clone();
        let id = id_of_new();
        let (made_by, started_ms) = (maker(subject), now_ms());
        let upload = Upload {
            id,
            name: name.clone(),
            started_ms,
            details,
            tags,
            checksum,
            lock,
            acl: kept_with_upload(access.access(), &acl_sent),
            made_by: Some(made_by.clone()),
        };
        let told = of_list(&access.access().acl);
        let limit = self.inner.subject_limits.uploads;
        let ledger = &self.inner.open_buckets.uploads;
        let beginning = ledger.begin(grant.bucket(), &made_by, limit)?;
        let create = |bucket: UsedBucket| async move {
            access.to_commit()?;
            let created = bucket.catalog.create_upload(upload).await;
            beginning.settle(&created);
            created?;
            Ok(Changed::freeing((), Vec::new()))
        };
        let on = [On::Told(&name, &told)];
        grant.change(Act::CreateUpload, on, create).await?;
        Ok(StartedUpload {
            id,
            started_ms,
            level: grant.level(),
            encryption,
        })
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
        self.put_part_from(subject, bucket, put, None).await
    }

    /// Puts a part, which may be a copy of bytes in another bucket.
    async fn put_part_from(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        put: PutPart,
        from: Option<BucketName>,
    ) -> Result<Stored> {
        let mut grant = self.changeable(subject, bucket, Right::Write).await?;
        let is_copy = from.is_some();
        let source = Source::of(self, subject, from);
        let PutPart {
            name,
            upload: id,
            number,
            customer_key,
            mut incoming,
        } = put;
        let find = |bucket| find_upload(bucket, id, &name);
        let on = On::Part(&name, number);
        let upload = Arc::new(grant.find(Act::WritePart, on, find).await?);
        self.check_upload(subject, &mut grant, Action::PutObject, &upload)
            .await?;
        check_key_of_part(&upload.details.encryption, customer_key.as_ref())?;
        check_has_sum(&upload, incoming.digests, is_copy)?;
        Self::check_proven(&grant, upload.lock, incoming.may_be_locked())?;
        incoming.digests = plan(&grant, part_plan(&upload, incoming.digests)?);
        let becomes = ArrivedAs::part(&name, (id, number));
        let Ingested {
            content,
            blob,
            size_bytes,
            digests,
            wrapped_by,
            awaited,
        } = self
            .take_in(&grant, becomes, incoming, Placing::Blob, customer_key)
            .await?;
        let NewContent::Blob(reference) = content else {
            return Err(VaultError::Damaged);
        };
        let encryption = upload.details.encryption.clone();
        let (etag, modified_ms) = (self.etag_of(&digests, &encryption), now_ms());
        let mut part = Part {
            number,
            etag: etag.clone(),
            modified_ms,
            blob: reference,
        };

        let (tally, is_unverified) = (self.inner.tally.clone(), awaited.is_some());
        let put = move |bucket: UsedBucket| async move {
            let _awaited = awaited;
            source.still_readable().await?;
            keep_current(&bucket, &wrapped_by, &mut part.blob)?;
            let replaced = settle(blob, bucket.catalog.put_part(id, part).await)?;
            tally.stored(size_bytes);
            Ok(Changed::freeing((), replaced.into_iter().collect()))
        };
        grant.change(Act::WritePart, [on], put).await?;
        Ok(Stored {
            etag,
            checksum: digests.checksum,
            modified_ms,
            size_bytes,
            level: grant.level(),
            version: None,
            encryption,
            is_unverified,
        })
    }

    /// Puts a part that is copied from an object. Also tells which version was copied, where the
    /// source's bucket keeps versions or did.
    pub async fn copy_part(
        &self,
        subject: &Subject,
        source: CopySource,
        bucket: &BucketName,
        copy: CopyPart,
    ) -> Result<(Stored, Option<VersionId>)> {
        self.copyable(subject, &source.bucket, bucket).await?;
        let read = self.read_source(subject, &source, copy.range).await?;
        let copied = read.info.version;
        let CopyPart {
            name,
            upload,
            number,
            customer_key,
            ..
        } = copy;
        let put = PutPart {
            name,
            upload,
            number,
            customer_key,
            incoming: incoming_copy(read.body, None),
        };
        let put = self.put_part_from(subject, bucket, put, Some(source.bucket));
        Ok((put.await?, copied))
    }

    /// The checksum that an upload under way was begun with, for who completes it, or puts a part.
    pub async fn announced_checksum(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: UploadId,
        part: Option<u32>,
    ) -> Result<Option<(ChecksumAlgorithm, ChecksumKind)>> {
        let mut grant = self.changeable(subject, bucket, Right::Write).await?;
        let find = |bucket| find_upload(bucket, upload, name);
        let upload = match part.map(|number| On::Part(name, number)) {
            Some(on) => grant.find(Act::WritePart, on, find).await?,
            None => grant.prepare(find).await?,
        };
        let upload = Arc::new(upload);
        self.check_upload(subject, &mut grant, Action::PutObject, &upload)
            .await?;
        Ok(upload.checksum)
    }

    /// Ends an upload and removes its parts.
    pub async fn abort_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: UploadId,
    ) -> Result<()> {
        let mut grant = self.changeable(subject, bucket, Right::Write).await?;
        let on = On::Object(name);
        let find = |bucket| find_upload(bucket, upload, name);
        let found = Arc::new(grant.find(Act::AbortUpload, on, find).await?);
        self.check_upload(subject, &mut grant, Action::AbortMultipartUpload, &found)
            .await?;
        let changing = self.inner.open_buckets.uploads.change(grant.bucket());
        let abort = move |bucket: UsedBucket| async move {
            let aborted = bucket.catalog.abort_upload(&upload).await?;
            changing.ended(aborted.made_by.as_deref());
            Ok(Changed::freeing((), aborted.freed))
        };
        grant.change(Act::AbortUpload, [on], abort).await
    }

    /// Whether the subject may do this to an upload: to any, where grants or a policy let it, and
    /// only to what it began, where a list does. Asked again when the change is committed.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`].
    pub(super) async fn check_upload(
        &self,
        subject: &Subject,
        grant: &mut ChangeGrant,
        action: Action,
        upload: &Arc<Upload>,
    ) -> Result<()> {
        grant.about_upload(action, upload.clone());
        if !grant.is_shared() {
            return Ok(());
        }
        let row = grant.row();
        let judge = |bucket: UsedBucket| async move {
            self.judge_upload(subject, row, &bucket, (action, upload))
                .await
        };
        let judged = grant.prepare(judge).await;
        let judged = self.noting_refusal(subject, row, judged).await;
        judged.inspect_err(|error| self.note_refusal(error, subject, Right::Write, row))
    }
}

/// An upload under way, which must have been begun for this name.
pub(crate) async fn find_upload(
    bucket: UsedBucket,
    id: UploadId,
    name: &ObjectName,
) -> Result<Upload> {
    let found = bucket.catalog.upload(&id).await?;
    found
        .filter(|upload| upload.name == *name)
        .ok_or(VaultError::NoSuchUpload)
}

/// A checksum of the parts' checksums takes one that the client knows, of each part that it sends.
fn check_has_sum(upload: &Upload, asked: DigestPlan, is_copy: bool) -> Result<()> {
    match (upload.checksum, asked.checksum) {
        (Some((announced, ChecksumKind::Composite)), None) if !is_copy => {
            let sent = None;
            Err(ChecksumError::OtherAlgorithm { announced, sent }.into())
        }
        _ => Ok(()),
    }
}

/// The digests to form over a part: its checksum is of the upload's algorithm.
pub(super) fn part_plan(upload: &Upload, asked: DigestPlan) -> Result<DigestPlan> {
    let (announced, _) = upload.checksum.unwrap_or(DEFAULT_CHECKSUM);
    let sent = asked.checksum;
    if sent.is_some_and(|algorithm| algorithm != announced) {
        return Err(ChecksumError::OtherAlgorithm { announced, sent }.into());
    }
    Ok(DigestPlan {
        checksum: Some(announced),
        ..asked
    })
}
