//! Completing multipart uploads: which parts, in which order, with which checksum.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest;
use coffer_durable::now_ms;
use coffer_policy::Action;
use coffer_seal::UploadId;
use coffer_store::limits::LIST_MAX;
use coffer_store::record::{
    ChecksumAlgorithm, CompletedObject, ObjectName, Part, Precondition, Upload,
};
use coffer_store::version::Which;

use self::sums::{check_sums_of_parts, check_whole, whole_checksum};
use super::multipart::find_upload;
use super::write::{Stored, kept, note_condition, of_new};
use crate::access::{
    Act, AskedEach, BucketName, OwnValues, Subject, access_of_upload, list_sent_with_upload, maker,
};
use crate::acts::{ChangeGrant, Changed};
use crate::audit::On;
use crate::error::{Result, VaultError};
use crate::limits::{OBJECT_MAX_BYTES, PART_MIN_BYTES};
use crate::open_buckets::{OpenBucket, UsedBucket};
use crate::vault::Vault;
use coffer_store::FinishedUpload;

mod sums;

/// A part as the completion names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedPart {
    /// Its number.
    pub number: u32,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// Its checksum's algorithm and value, where the client sent one.
    pub checksum: Option<(ChecksumAlgorithm, String)>,
}

/// A multipart upload to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteUpload {
    /// The name that it was begun for.
    pub name: ObjectName,
    /// The upload.
    pub upload: UploadId,
    /// Its parts.
    pub parts: Vec<CompletedPart>,
    /// The whole object's checksum as the client has it (composite: with or without `-PARTS`).
    pub checksum: Option<String>,
    /// The whole object's length as the client has it.
    pub size_bytes: Option<u64>,
    /// What must be true of the object that is there now.
    pub precondition: Precondition,
}

impl Vault {
    /// Makes an object of an upload's parts.
    ///
    /// # Errors
    /// [`VaultError::InvalidPart`], [`VaultError::InvalidPartOrder`], [`VaultError::PartTooSmall`],
    /// [`VaultError::BadDigest`], [`VaultError::PreconditionFailed`],
    /// [`VaultError::NothingToMatch`]; the upload stays as it was.
    ///
    /// The same request of the same subject again within a day has the same answer, whatever became
    /// of the object since, and changes nothing.
    pub async fn complete_upload(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        complete: CompleteUpload,
    ) -> Result<Stored> {
        let condition = &complete.precondition;
        let mut grant = self.writable(subject, bucket, condition).await?;
        let (id, request) = (complete.upload, request_digest(&complete, subject));
        let find = |bucket: UsedBucket| async {
            match under_way(bucket.clone(), &complete).await {
                Err(error) => finished(bucket, id, request, error).await,
                found => found,
            }
        };
        let on = On::Object(&complete.name);
        let (upload, parts) = match grant.find(Act::WriteObject, on, find).await? {
            Found::UnderWay(upload, parts) => (upload, parts),
            Found::Finished(finished) => return self.told_again(&grant, finished).await,
        };
        self.check_upload(subject, &mut grant, Action::PutObject, &upload)
            .await?;
        self.ask_again(&mut grant, &upload).await?;
        let completed = self.complete(&grant, complete, Upload::clone(&upload), parts, request);
        match completed.await {
            // Completed while we looked: the parts are the object's then.
            Err(error) => {
                let finished = |bucket| finished(bucket, id, request, error);
                match grant.prepare(finished).await? {
                    Found::Finished(finished) => self.told_again(&grant, finished).await,
                    Found::UnderWay(..) => Err(VaultError::NoSuchUpload),
                }
            }
            done => done,
        }
    }

    /// What was answered, or that it is in doubt: as it may have been at first.
    async fn told_again(&self, grant: &ChangeGrant, finished: FinishedUpload) -> Result<Stored> {
        let waited_for = &self.inner.copies.waited_for;
        waited_for.acknowledge(Some(grant.bucket())).await?;
        Ok(Stored {
            etag: finished.etag,
            checksum: finished.checksum,
            modified_ms: finished.finished_ms,
            size_bytes: finished.size_bytes,
            level: grant.level(),
            encryption: finished.encryption,
            version: kept(finished.version),
            is_unverified: false,
        })
    }

    /// Asks for all that the upload's object gets besides its bytes, as when it was begun: who
    /// completes it gives that, and it may have been taken back since. Asked again at the commit.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`].
    async fn ask_again(&self, grant: &mut ChangeGrant, upload: &Upload) -> Result<()> {
        if !grant.is_shared() {
            return Ok(());
        }
        let mut own = OwnValues::of_tags(upload.tags.clone());
        own = own.locked(upload.lock, self.lock_now_ms());
        let access = access_of_upload(upload.acl.as_deref())?;
        let sent = list_sent_with_upload(upload.acl.as_deref())?;
        let has_list = access.acl.is_some() || !sent.is_empty();
        if !sent.is_empty() {
            own = own.with_list_sent(sent);
        } else if has_list {
            let acl = self.object_list(grant.row(), &access)?;
            own = own.shared(&acl, &self.owner_id(grant.row()));
        }
        let own = Arc::new(own);
        let carried = [
            (!upload.tags.is_empty(), Action::PutObjectTagging),
            (has_list, Action::PutObjectAcl),
            (upload.lock.retention.is_some(), Action::PutObjectRetention),
            (
                upload.lock.has_hold || upload.lock.hold_is_off,
                Action::PutObjectLegalHold,
            ),
        ];
        let carried = carried.into_iter().filter(|(is_carried, _)| *is_carried);
        let asked = carried.map(|(_, action)| AskedEach {
            action,
            name: upload.name.clone(),
            which: Which::Current,
            own: Some(own.clone()),
        });
        let lets = grant.lets_each(asked.collect()).await?;
        if lets.contains(&false) {
            return Err(VaultError::AccessDenied);
        }
        Ok(())
    }

    async fn complete(
        &self,
        grant: &ChangeGrant,
        complete: CompleteUpload,
        upload: Upload,
        parts: Vec<Part>,
        request: [u8; 32],
    ) -> Result<Stored> {
        let size_bytes = whole_size(&parts, complete.size_bytes)?;
        let checksum = whole_checksum(&upload, &parts);
        check_whole(complete.checksum.as_deref(), checksum.as_ref())?;
        let (etag, modified_ms) = (multipart_etag(&parts), now_ms());
        let mut details = upload.details;
        details.checksum = checksum.clone();
        let encryption = details.encryption.clone();
        let (lock, covered) = self.lock_of_new(grant, upload.lock).await?;
        let access = access_of_upload(upload.acl.as_deref())?;
        let told = of_new(lock, &access.acl);
        let object = CompletedObject {
            name: upload.name,
            etag: etag.clone(),
            modified_ms,
            details,
            tags: upload.tags,
            lock,
            access,
            parts: parts
                .iter()
                .map(|part| (part.number, part.blob.id))
                .collect(),
            request,
        };

        let (id, precondition) = (upload.id, complete.precondition);
        note_condition(grant, &precondition).await?;
        let changing = self.inner.open_buckets.uploads.change(grant.bucket());
        let (this, row) = (self.clone(), grant.row().clone());
        let commit = move |bucket: UsedBucket| async move {
            let _covered = covered;
            this.check_list_of_upload(&row, &object.access)?;
            let completed = bucket.catalog.complete_upload(&id, object, precondition);
            let completed = completed.await?;
            changing.ended(completed.made_by.as_deref());
            Ok(Changed::freeing(completed.version, completed.replaced))
        };
        let on = [On::Told(&complete.name, &told)];
        let version = grant.change(Act::WriteObject, on, commit).await?;
        Ok(Stored {
            etag,
            checksum,
            modified_ms,
            size_bytes,
            level: grant.level(),
            encryption,
            version: kept(version),
            is_unverified: false,
        })
    }
}

/// An upload to be completed, or what became of one that was.
enum Found {
    UnderWay(Arc<Upload>, Vec<Part>),
    Finished(FinishedUpload),
}

async fn under_way(bucket: UsedBucket, complete: &CompleteUpload) -> Result<Found> {
    let upload = find_upload(bucket.clone(), complete.upload, &complete.name).await?;
    check_order(&complete.parts, upload.checksum.is_some())?;
    let stored = all_parts(&bucket, upload.id).await?;
    let parts = match_parts(&complete.parts, stored)?;
    check_sums_of_parts(upload.checksum, &complete.parts, &parts)?;
    Ok(Found::UnderWay(Arc::new(upload), parts))
}

/// What became of an upload that the same request has completed already: its parts are the
/// object's then, and looking for them came to `error`.
async fn finished(
    bucket: UsedBucket,
    id: UploadId,
    request: [u8; 32],
    error: VaultError,
) -> Result<Found> {
    if !matches!(
        error,
        VaultError::NoSuchUpload | VaultError::InvalidPart { .. }
    ) {
        return Err(error);
    }
    let finished = bucket.catalog.finished_upload(&id, &request, now_ms());
    finished.await?.map(Found::Finished).ok_or(error)
}

/// Tells one completion from another: the object's name, the parts, each by number and tag, and who
/// completes. So what was answered is told again to whom it was told, and to no other, who might
/// complete this upload less than that one.
fn request_digest(complete: &CompleteUpload, subject: &Subject) -> [u8; 32] {
    let mut sha = digest::Context::new(&digest::SHA256);
    let mut text = |text: &str| {
        sha.update(&(text.len() as u64).to_be_bytes());
        sha.update(text.as_bytes());
    };
    text(complete.name.expose());
    for part in &complete.parts {
        text(&part.number.to_string());
        text(&part.etag);
    }
    text(&maker(subject));
    let mut request = [0; 32];
    request.copy_from_slice(sha.finish().as_ref());
    request
}

/// As S3 forms it, the MD5 of the parts' MD5s and their number, where all parts have theirs;
/// otherwise random, with the number.
fn multipart_etag(parts: &[Part]) -> String {
    let md5_of_parts = || {
        use md5::{Digest, Md5};
        let mut md5 = Md5::new();
        for part in parts {
            md5.update(hex::decode(&part.etag).ok()?);
        }
        let digest: [u8; 16] = md5.finalize().into();
        Some(digest)
    };
    let digest = md5_of_parts().unwrap_or_else(coffer_seal::random_bytes);
    format!("{}-{}", hex::encode(digest), parts.len())
}

/// All parts of an upload.
async fn all_parts(bucket: &OpenBucket, upload: UploadId) -> Result<Vec<Part>> {
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

/// Parts are named in ascending order; and from the first on without gaps, where the upload was
/// begun with a checksum (Amazon S3 API Reference, `CompletedPart`).
fn check_order(named: &[CompletedPart], has_checksum: bool) -> Result<()> {
    let ascends = named.is_sorted_by(|a, b| a.number < b.number);
    let has_gaps = || {
        named
            .iter()
            .zip(1..)
            .any(|(part, place)| part.number != place)
    };
    if !ascends || (has_checksum && has_gaps()) {
        return Err(VaultError::InvalidPartOrder);
    }
    Ok(())
}

/// The stored parts that a completion names, which must be unchanged, and large enough.
fn match_parts(named: &[CompletedPart], stored: Vec<Part>) -> Result<Vec<Part>> {
    if named.is_empty() {
        return Err(VaultError::Invalid {
            what: "a completion names at least one part",
        });
    }
    let mut by_number: HashMap<u32, Part> = { stored.into_iter() }
        .map(|part| (part.number, part))
        .collect();
    let mut parts = Vec::with_capacity(named.len());
    for part in named {
        let number = part.number;
        let found = by_number
            .remove(&number)
            .ok_or(VaultError::InvalidPart { number })?;
        if found.etag != part.etag {
            return Err(VaultError::InvalidPart { number });
        }
        parts.push(found);
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

/// The object's length, which must be what the client says and can be stored.
fn whole_size(parts: &[Part], expected: Option<u64>) -> Result<u64> {
    let size_bytes = parts.iter().map(|part| part.blob.plaintext_bytes).sum();
    if size_bytes > OBJECT_MAX_BYTES {
        return Err(VaultError::TooLarge {
            limit_bytes: OBJECT_MAX_BYTES,
        });
    }
    if expected.is_some_and(|expected| expected != size_bytes) {
        Err(VaultError::Invalid {
            what: "the object's size is not the one that the request gives",
        })
    } else {
        Ok(size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_no_gaps_where_there_are_checksums() {
        let is_right = |numbers: &[u32], has_checksum| {
            let part = |number: &u32| CompletedPart {
                number: *number,
                etag: String::new(),
                checksum: None,
            };
            let named: Vec<_> = numbers.iter().map(part).collect();
            check_order(&named, has_checksum).is_ok()
        };
        for numbers in [&[1][..], &[1, 2, 3]] {
            assert!(is_right(numbers, true) && is_right(numbers, false));
        }
        for numbers in [&[3][..], &[3, 7], &[1, 3]] {
            assert!(!is_right(numbers, true) && is_right(numbers, false));
        }
        for numbers in [&[2, 1][..], &[1, 1]] {
            assert!(!is_right(numbers, true) && !is_right(numbers, false));
        }
    }
}
