//! Copying, within the server.

use std::borrow::Cow;

use coffer_store::record::{ChecksumAlgorithm, Details, ObjectName, Precondition, Tags};
use coffer_store::version::{VersionId, Which};

use super::copy_source::{CopySource, Source, incoming_copy};
use super::{PutObject, Stored};
use crate::access::{AskedAcl, BucketName, OwnValues, Subject, tags_copied};
use crate::error::{Result, VaultError};
use crate::locks::AskedLock;
use crate::objects::asked::AskedEncryption;
use crate::objects::conditions::{RangeRequest, ReadOptions};
use crate::objects::read::{ObjectRead, Reads};
use crate::vault::Vault;

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTarget {
    /// Its new name.
    pub name: ObjectName,
    /// A new description, or the source's.
    pub details: Option<Details>,
    /// New tags, or the source's.
    pub tags: Option<Tags>,
    /// A new checksum, or the source's algorithm.
    pub checksum: Option<ChecksumAlgorithm>,
    /// How it is to be said to be encrypted, whatever is said of the source.
    pub encryption: AskedEncryption,
    /// Its `x-amz-website-redirect-location`, whatever the source's is.
    pub redirect: Option<String>,
    /// What is to keep it from being deleted, whatever keeps the source.
    pub lock: AskedLock,
    /// Who else may use it: not those who may use the source.
    pub acl: AskedAcl,
    /// What must be true of the object that is there now.
    pub precondition: Precondition,
}

impl Vault {
    /// Copies an object, which is opened and sealed anew under a data key of its own. Never to a
    /// bucket whose label doesn't dominate that of the source's. Also tells which version was
    /// copied, where the source's bucket keeps versions or did.
    pub async fn copy_object(
        &self,
        subject: &Subject,
        source: CopySource,
        bucket: &BucketName,
        target: CopyTarget,
    ) -> Result<(Stored, Option<VersionId>)> {
        self.copyable(subject, &source.bucket, bucket).await?;
        let read = self.read_source(subject, &source, RangeRequest::All);
        let read = read.await?;
        let CopySource {
            bucket: from,
            name,
            which,
            ..
        } = source;
        let copied = read.info.version;
        let of_read = copied.map_or(which, Which::Version);
        let mut asking = Cow::Borrowed(subject);
        let kept_tags = match target.tags {
            Some(tags) => tags,
            None if read.info.head.tag_count == 0 => Tags::new(),
            None => {
                let from = (&from, &name, which);
                let more = || tags_copied(from, (bucket, &target.name));
                let reading = subject.asking_besides(more(), OwnValues::default());
                self.copyable(&reading, from.0, bucket).await?;
                // Of the object that was read, whatever took the name since.
                let head = &read.info.head;
                let judged = self.judge_tags(&reading, from.0, (&name, of_read), head);
                judged.await?;
                let tags = head.tags.clone();
                // They are what the copy gives its object: now they are asked for by themselves.
                asking = subject.asking_besides(more(), OwnValues::of_tags(tags.clone()));
                tags
            }
        };
        let kept = read.info.head.details.clone();
        let algorithm = target
            .checksum
            .or(kept.checksum.as_ref().map(|checksum| checksum.algorithm));
        let mut details = target.details.unwrap_or(Details {
            checksum: None,
            ..kept
        });
        details.redirect = target.redirect;
        let incoming = incoming_copy(read.body, algorithm);
        let CopyTarget {
            name,
            precondition,
            encryption,
            lock,
            acl,
            ..
        } = target;
        let put = PutObject {
            name,
            details,
            tags: kept_tags,
            precondition,
            encryption,
            lock,
            acl,
            incoming,
        };
        let put = (put, Source::of(self, &asking, Some(from)));
        Ok((self.put_from(&asking, bucket, put).await?, copied))
    }

    /// Opens what is to be copied.
    pub(in crate::objects) async fn read_source(
        &self,
        subject: &Subject,
        source: &CopySource,
        range: RangeRequest,
    ) -> Result<ObjectRead> {
        let options = ReadOptions {
            which: source.which,
            conditions: source.conditions.clone(),
            range,
            customer_key: source.customer_key.clone(),
        };
        let (bucket, name) = (&source.bucket, &source.name);
        let read = self.read_as(subject, bucket, name, options, Reads::ToCopy);
        read.await.map_err(as_precondition)
    }
}

/// A copy's source whose conditions fail is a failed precondition, never "not modified" (S3,
/// CopyObject).
fn as_precondition(error: VaultError) -> VaultError {
    match error {
        VaultError::NotModified { .. } => VaultError::PreconditionFailed,
        other => other,
    }
}
