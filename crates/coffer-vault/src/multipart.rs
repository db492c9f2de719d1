//! Multipart uploads: parts are blobs of their own from the start, so completing one moves rows,
//! not bytes.

use std::collections::HashMap;

use coffer_store::limits::LIST_MAX;
use coffer_store::record::{
    Checksum, ChecksumAlgorithm, ChecksumKind, CompletedObject, Id, NewContent, ObjectName, Part,
    Upload, UploadsPage, UploadsQuery,
};

use crate::bucket::OpenBucket;
use crate::counters::add;
use crate::digest::{PartSum, combine};
use crate::error::{Result, VaultError};
use crate::ingest::{Ingested, Placing, ingest};
use crate::limits::{OBJECT_MAX_BYTES, PART_MIN_BYTES, PART_NUMBER_MAX};
use crate::name::BucketName;
use crate::request::{
    CompleteUpload, CompletedPart, CopyPart, CopySource, EtagStyle, NewUpload, PartsPage, PutPart,
    ReadOptions, StartedUpload, Stored,
};
use crate::subject::Subject;
use crate::vault::{Granted, Vault, now_ms};
use crate::write::{as_precondition, committed, hex, incoming_copy, reclaim, settle};

/// What the checksum of a multipart object is formed by when the client announced none.
const DEFAULT_CHECKSUM: (ChecksumAlgorithm, ChecksumKind) =
    (ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject);

impl Vault {
    /// Begins a multipart upload.
    pub async fn create_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        new: NewUpload,
    ) -> Result<StartedUpload> {
        let Granted { bucket, level } = self.writable(subject, bucket).await?;
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
        let _guard = bucket.commit_guard().await?;
        bucket.catalog.create_upload(upload).await?;
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
        let Granted { bucket, level } = self.writable(subject, bucket).await?;
        let upload = bucket.catalog.upload(&put.upload).await?;
        let upload = upload.filter(|upload| upload.name == put.name);
        let (announced, _) = upload
            .ok_or(VaultError::NoSuchUpload)?
            .checksum
            .unwrap_or(DEFAULT_CHECKSUM);

        let mut incoming = put.incoming;
        if incoming
            .digests
            .checksum
            .is_some_and(|algorithm| algorithm != announced)
        {
            return Err(VaultError::Invalid {
                what: "the part's checksum algorithm is not the one that its upload was begun with",
            });
        }
        incoming.digests.checksum = Some(announced);
        incoming.digests = self.plan(incoming.digests);
        let ingested = ingest(&bucket, incoming, Placing::Blob)
            .await
            .map_err(|error| self.count_full(error))?;
        let Ingested {
            content,
            blob,
            size_bytes,
            digests,
        } = ingested;
        let NewContent::Blob(reference) = content else {
            return Err(VaultError::Damaged);
        };
        let (etag, modified_ms) = (self.etag_of(&digests), now_ms());
        let part = Part {
            number: put.number,
            etag: etag.clone(),
            modified_ms,
            blob: reference,
        };

        let tally = self.inner.tally.clone();
        let upload = put.upload;
        committed(&tally, async move {
            let _guard = bucket.commit_guard().await?;
            let outcome = bucket.catalog.put_part(upload, part).await;
            let replaced = settle(blob, outcome)?;
            reclaim(&bucket, replaced.into_iter().collect());
            Ok(())
        })
        .await?;
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
        self.known(subject, bucket)?;
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
        let Granted { bucket, level } = self.readable(subject, bucket).await?;
        let found = bucket
            .catalog
            .upload(&upload)
            .await?
            .filter(|upload| upload.name == *name);
        let found = found.ok_or(VaultError::NoSuchUpload)?;
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
        let granted = self.readable(subject, bucket).await?;
        Ok(granted.bucket.catalog.uploads(query).await?)
    }

    /// Ends an upload and removes its parts.
    pub async fn abort_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: Id,
    ) -> Result<()> {
        let Granted { bucket, .. } = self.writable(subject, bucket).await?;
        let found = bucket.catalog.upload(&upload).await?;
        found
            .filter(|upload| upload.name == *name)
            .ok_or(VaultError::NoSuchUpload)?;
        let tally = self.inner.tally.clone();
        committed(&tally, async move {
            let _guard = bucket.commit_guard().await?;
            let freed = bucket.catalog.abort_upload(&upload).await?;
            reclaim(&bucket, freed);
            Ok(())
        })
        .await
    }

    /// Makes an object of an upload's parts.
    ///
    /// # Errors
    /// [`VaultError::InvalidPart`], [`VaultError::InvalidPartOrder`], [`VaultError::PartTooSmall`],
    /// [`VaultError::BadDigest`], [`VaultError::PreconditionFailed`]; the upload stays as it was.
    pub async fn complete_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        complete: CompleteUpload,
    ) -> Result<Stored> {
        let Granted { bucket, level } = self.writable(subject, bucket).await?;
        let upload = bucket.catalog.upload(&complete.upload).await?;
        let upload = upload
            .filter(|upload| upload.name == complete.name)
            .ok_or(VaultError::NoSuchUpload)?;
        let stored = all_parts(&bucket, upload.id).await?;
        let parts = match_parts(&complete.parts, &stored)?;
        let size_bytes = parts.iter().map(|part| part.blob.plaintext_bytes).sum();
        if size_bytes > OBJECT_MAX_BYTES {
            return Err(VaultError::TooLarge {
                limit_bytes: OBJECT_MAX_BYTES,
            });
        }
        if complete
            .size_bytes
            .is_some_and(|expected| expected != size_bytes)
        {
            return Err(VaultError::Invalid {
                what: "the object's size is not the one that the request gives",
            });
        }
        let checksum = whole_checksum(&upload, &parts);
        check_whole(complete.checksum.as_deref(), checksum.as_ref())?;
        let (etag, modified_ms) = (self.multipart_etag(&parts), now_ms());
        let mut details = upload.details;
        details.checksum = checksum.clone();
        let object = CompletedObject {
            name: upload.name,
            etag: etag.clone(),
            modified_ms,
            details,
            tags: upload.tags,
            parts: parts
                .iter()
                .map(|part| (part.number, part.blob.id))
                .collect(),
        };

        let tally = self.inner.tally.clone();
        let (id, precondition) = (upload.id, complete.precondition);
        committed(&tally, async move {
            let _guard = bucket.commit_guard().await?;
            let outcome = bucket
                .catalog
                .complete_upload(&id, object, precondition)
                .await?;
            reclaim(&bucket, outcome.replaced);
            Ok(())
        })
        .await?;
        Ok(Stored {
            etag,
            checksum,
            modified_ms,
            size_bytes,
            level,
        })
    }

    /// As S3 forms it: the MD5 of the parts' MD5s and their number; or random, with the number.
    fn multipart_etag(&self, parts: &[&Part]) -> String {
        let md5_of_parts = || {
            use md5::{Digest, Md5};
            let mut md5 = Md5::new();
            for part in parts {
                md5.update(unhex(&part.etag)?);
            }
            let digest: [u8; 16] = md5.finalize().into();
            Some(digest)
        };
        let digest = match self.inner.etag {
            EtagStyle::Md5 => md5_of_parts(),
            EtagStyle::Random => None,
        };
        let digest = digest.unwrap_or_else(coffer_seal::random_bytes);
        format!("{}-{}", hex(&digest), parts.len())
    }
}

/// All parts of an upload.
async fn all_parts(bucket: &OpenBucket, upload: Id) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    loop {
        let after = parts.last().map_or(0, |part: &Part| part.number);
        let page = bucket.catalog.parts(&upload, after, LIST_MAX).await?;
        if page.is_empty() {
            return Ok(parts);
        }
        parts.extend(page);
    }
}

/// The stored parts that a completion names, which must be in ascending order, unchanged, and
/// large enough.
fn match_parts<'a>(named: &[CompletedPart], stored: &'a [Part]) -> Result<Vec<&'a Part>> {
    if named.is_empty() {
        return Err(VaultError::Invalid {
            what: "a completion names at least one part",
        });
    }
    if !named.is_sorted_by(|a, b| a.number < b.number) {
        return Err(VaultError::InvalidPartOrder);
    }
    let by_number: HashMap<u32, &Part> = stored.iter().map(|part| (part.number, part)).collect();
    let mut parts = Vec::with_capacity(named.len());
    for part in named {
        let number = part.number;
        let found = by_number
            .get(&number)
            .ok_or(VaultError::InvalidPart { number })?;
        let sum = found
            .blob
            .checksum
            .as_ref()
            .map(|checksum| checksum.value.as_str());
        if found.etag != part.etag
            || part
                .checksum
                .as_deref()
                .is_some_and(|value| Some(value) != sum)
        {
            return Err(VaultError::InvalidPart { number });
        }
        parts.push(*found);
    }
    let small = parts[..parts.len() - 1]
        .iter()
        .find(|part| part.blob.plaintext_bytes < PART_MIN_BYTES);
    match small {
        Some(part) => Err(VaultError::PartTooSmall {
            number: part.number,
            size_bytes: part.blob.plaintext_bytes,
        }),
        None => Ok(parts),
    }
}

/// The object's checksum from those of its parts. None where they don't all have one, which
/// can't be combined then.
fn whole_checksum(upload: &Upload, parts: &[&Part]) -> Option<Checksum> {
    let (algorithm, kind) = upload.checksum.unwrap_or(DEFAULT_CHECKSUM);
    let sums = parts
        .iter()
        .map(|part| {
            let checksum = part.blob.checksum.as_ref()?;
            (checksum.algorithm == algorithm).then_some(PartSum {
                value: &checksum.value,
                size_bytes: part.blob.plaintext_bytes,
            })
        })
        .collect::<Option<Vec<_>>>()?;
    combine(algorithm, kind, sums)
}

/// Compares the client's checksum of the whole with ours; a composite one may lack its count.
fn check_whole(expected: Option<&str>, checksum: Option<&Checksum>) -> Result<()> {
    let Some(expected) = expected else {
        return Ok(());
    };
    let value = checksum.map_or("", |checksum| &checksum.value);
    let bare = match checksum.map(|checksum| checksum.kind) {
        Some(ChecksumKind::Composite) => value.rsplit_once('-').map_or(value, |(bare, _)| bare),
        _ => value,
    };
    match expected == value || expected == bare {
        true => Ok(()),
        false => Err(VaultError::BadDigest { what: "checksum" }),
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks_exact(2);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.map(pair).collect()
}
