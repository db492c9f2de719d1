//! Writing: put, and tags.
//!
//! A put is sealed and durable before it is committed, and committed before it is acknowledged.

mod copy_source;

mod copy;

use coffer_durable::now_ms;
use coffer_store::lock::Lock;
use coffer_store::record::{
    Access, Checksum, ChecksumAlgorithm, Details, Encryption, NewObject, ObjectName, Precondition,
    Tags,
};
use coffer_store::version::{VersionId, Which};
use coffer_store::{FinishedBlob, StoreError};

pub use self::copy::CopyTarget;
pub use self::copy_source::CopySource;
pub(crate) use self::copy_source::{Source, incoming_copy};
use super::acl::of_list;
use super::asked::AskedEncryption;
use super::ingest::{Incoming, Ingested, Placing, keep_content_current};
use super::read::told_version;
use crate::access::{Act, AskedAcl, BucketName, Right, Subject};
use crate::acts::{ChangeGrant, Changed};
use crate::audit::{Facts, On};
use crate::digest::{DigestPlan, Digests};
use crate::error::Result;
use crate::locks::{AskedLock, of_lock};
use crate::open_buckets::UsedBucket;
use crate::transfers::ArrivedAs;
use crate::vault::Vault;

/// An object to be put.
#[derive(Debug)]
pub struct PutObject {
    /// Its name.
    pub name: ObjectName,
    /// Its description; the checksum in it is filled in by the vault.
    pub details: Details,
    /// Its tags.
    pub tags: Tags,
    /// What must be true of the object that is there now.
    pub precondition: Precondition,
    /// How it is to be said to be encrypted.
    pub encryption: AskedEncryption,
    /// What is to keep it from being deleted.
    pub lock: AskedLock,
    /// Who else may use it.
    pub acl: AskedAcl,
    /// Its bytes.
    pub incoming: Incoming,
}

/// What was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Entity tag, without quotation marks.
    pub etag: String,
    /// Checksum.
    pub checksum: Option<Checksum>,
    /// When, in milliseconds since 1970.
    pub modified_ms: i64,
    /// How many bytes.
    pub size_bytes: u64,
    /// Name of the level whose key seals it.
    pub level: String,
    /// How it is said to be encrypted.
    pub encryption: Encryption,
    /// What the new version is called, where the bucket keeps versions.
    pub version: Option<VersionId>,
    /// Whether it was stored as it came, and is still to be opened.
    pub is_unverified: bool,
}

impl Vault {
    /// Puts an object: when this returns, it is durable and visible.
    ///
    /// # Errors
    /// Of [`VaultError`](crate::VaultError): `PreconditionFailed`, `NothingToMatch`, `BadDigest`,
    /// `IncompleteBody`, `TooLarge`, `StorageFull`; nothing is changed then.
    pub async fn put_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        put: PutObject,
    ) -> Result<Stored> {
        let put = (put, Source::of(self, subject, None));
        self.put_from(subject, bucket, put).await
    }

    /// Puts an object, which may be a copy of one in another bucket.
    pub(super) async fn put_from(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        (put, source): (PutObject, Source),
    ) -> Result<Stored> {
        let grant = self.writable(subject, bucket, &put.precondition).await?;
        let PutObject {
            name,
            details,
            tags,
            precondition,
            encryption,
            lock,
            acl,
            mut incoming,
        } = put;
        let access = grant.access_of_new(&acl).await?;
        let (lock, customer) = (self.asked_lock(&grant, lock)?, encryption.customer_key());
        Self::check_proven(&grant, lock, incoming.may_be_locked())?;
        let encryption = encryption.of_object(grant.encryption()?)?;
        incoming.digests = plan(&grant, incoming.digests);
        let becomes = ArrivedAs::object(&name);
        let taken = self.take_in(&grant, becomes, incoming, Placing::InlineIfSmall, customer);
        let Ingested {
            content,
            blob,
            size_bytes,
            digests,
            wrapped_by,
            awaited,
        } = taken.await?;
        let (etag, modified_ms) = (self.etag_of(&digests, &encryption), now_ms());
        let (lock, covered) = self.lock_of_new(&grant, lock).await?;
        let mut object = NewObject {
            name,
            etag: etag.clone(),
            modified_ms,
            details: described(details, &digests, &encryption),
            tags,
            lock,
            access: Access::default(),
            content,
        };
        note_condition(&grant, &precondition).await?;
        let (told, name) = (of_new(lock, &access.access().acl), object.name.clone());
        let (tally, is_unverified) = (self.inner.tally.clone(), awaited.is_some());
        let put = move |bucket: UsedBucket| async move {
            let (_awaited, _covered) = (awaited, covered);
            source.still_readable().await?;
            keep_content_current(&bucket, &wrapped_by, &mut object.content)?;
            object.access = access.to_commit()?;
            let outcome = settle(blob, bucket.catalog.put(object, precondition).await)?;
            tally.stored(size_bytes);
            Ok(Changed::freeing(outcome.version, outcome.replaced))
        };
        let on = [On::Told(&name, &told)];
        let version = grant.change(Act::WriteObject, on, put).await?;
        Ok(Stored {
            etag,
            checksum: digests.checksum,
            modified_ms,
            size_bytes,
            level: grant.level(),
            encryption,
            version: kept(version),
            is_unverified,
        })
    }

    /// Replaces an object's tags. Tells what the version is called, where the bucket keeps versions
    /// or did.
    pub async fn set_object_tags(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        (name, which): (&ObjectName, Which),
        tags: Tags,
    ) -> Result<Option<VersionId>> {
        let grant = self.changeable(subject, bucket, Right::Write).await?;
        // The answer tells whether there is such an object.
        grant.note_read().await?;
        let object = name.clone();
        let set = move |bucket: UsedBucket| async move {
            let version = bucket
                .catalog
                .set_object_tags(&object, which, tags)
                .await??;
            Ok(Changed::freeing(told_version(&bucket, version), Vec::new()))
        };
        grant.change(Act::WriteTags, [On::Object(name)], set).await
    }

    /// The entity tag of bytes received in one piece: their MD5 where it was formed, be it only to
    /// compare it with the client's, for a client that sends one expects it back. Otherwise random:
    /// S3 promises an MD5 only for objects that are not sealed under a key of ours, and the dash
    /// keeps clients from taking it for one. What a client's key seals never has an MD5 (S3).
    pub(crate) fn etag_of(&self, digests: &Digests, encryption: &Encryption) -> String {
        let is_customers = matches!(encryption, Encryption::Customer(_));
        match digests.md5.filter(|_| !is_customers) {
            Some(md5) => hex::encode(md5),
            None => format!("{}-1", hex::encode(coffer_seal::random_bytes::<16>())),
        }
    }
}

/// The description of what has arrived.
fn described(mut details: Details, digests: &Digests, encryption: &Encryption) -> Details {
    details.checksum.clone_from(&digests.checksum);
    details.encryption = encryption.clone();
    details
}

/// What is recorded of a new object beside its name: its lock, and its list.
pub(super) fn of_new(lock: Lock, acl: &Option<String>) -> Facts {
    let mut told = of_lock(lock);
    told.extend(of_list(acl));
    told
}

/// Before a write with a condition, whose outcome tells of what is there.
pub(super) async fn note_condition(grant: &ChangeGrant, precondition: &Precondition) -> Result<()> {
    if *precondition == Precondition::None {
        return Ok(());
    }
    grant.note_read().await
}

/// The digests to form over what comes to a bucket.
pub(crate) fn plan(grant: &ChangeGrant, asked: DigestPlan) -> DigestPlan {
    DigestPlan {
        checksum: asked.checksum.or(Some(ChecksumAlgorithm::Crc64nvme)),
        md5: asked.md5 || grant.has_md5_etags(),
    }
}

/// What is told of a version that was made: a null version is not, as by S3.
pub(crate) fn kept(version: VersionId) -> Option<VersionId> {
    Some(version).filter(|version| *version != VersionId::Null)
}

/// Decides what becomes of a blob's file, by the outcome of the commit that was to refer to it.
pub(crate) fn settle<T>(
    blob: Option<FinishedBlob>,
    outcome: Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Some(blob) = blob else { return outcome };
    match &outcome {
        // Certainly not in the catalog: dropping it removes the file.
        Err(
            StoreError::Full
            | StoreError::OverQuota(_)
            | StoreError::NoRoomForLog { .. }
            | StoreError::PreconditionFailed
            | StoreError::NothingToMatch
            | StoreError::Locked
            | StoreError::NoSuchUpload
            | StoreError::PartChanged { .. },
        ) => drop(blob),
        Ok(_) => blob.keep(),
        // In the catalog, perhaps: then the next start's sweep decides.
        Err(_) => blob.keep_in_doubt(),
    }
    outcome
}
