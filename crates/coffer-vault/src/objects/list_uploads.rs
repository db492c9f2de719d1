//! Listings of multipart uploads and of their parts.

use coffer_policy::Action;
use coffer_seal::UploadId;
use coffer_store::limits::LIST_MAX;
use coffer_store::record::{ObjectName, Part, Upload, UploadsPage, UploadsQuery};

use crate::access::{Act, BucketName, Right, Subject, access_of_upload};
use crate::audit::On;
use crate::error::{Result, VaultError};
use crate::open_buckets::UsedBucket;
use crate::system::BucketRow;
use crate::vault::Vault;

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

impl Vault {
    /// A page of an upload's parts, after a part number.
    pub async fn list_parts(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        upload: UploadId,
        after: u32,
        limit: usize,
    ) -> Result<PartsPage> {
        let grant = self.readable(subject, bucket, Right::List).await?;
        let level = grant.level();
        let row = grant.row().clone();
        let of = &row;
        let look = |bucket: UsedBucket| async move {
            let limit = limit.min(LIST_MAX);
            // At once: one that is completed meanwhile is there with its parts, or is not.
            let found = bucket.catalog.upload_and_parts(&upload, after, limit + 1);
            let found = found.await?.filter(|(upload, _)| upload.name == *name);
            let (found, mut parts) = found.ok_or(VaultError::NoSuchUpload)?;
            let what = (Action::ListMultipartUploadParts, &found);
            let judged = self.judge_upload(subject, of, &bucket, what).await;
            judged.inspect_err(|error| self.note_refusal(error, subject, Right::List, of))?;
            let more = parts.len() > limit;
            parts.truncate(limit);
            let next = parts.last().filter(|_| more).map(|part| part.number);
            Ok(PartsPage {
                upload: found,
                parts,
                next,
                level,
            })
        };
        let (mut page, _reading) = grant.read(Act::ListParts, On::Object(name), look).await?;
        self.tell_owner_of(&row, &mut page.upload)?;
        Ok(page)
    }

    /// A page of the bucket's uploads.
    ///
    /// # Errors
    /// [`VaultError::NoSuchUpload`] where it is to begin behind an upload of another name than that
    /// with which it is named. One that is gone is still a place to begin at.
    pub async fn list_uploads(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        query: UploadsQuery,
    ) -> Result<UploadsPage> {
        let grant = self.readable(subject, bucket, Right::List).await?;
        let prefix = query.prefix.clone();
        let look = |bucket: UsedBucket| async move {
            if let Some((name, Some(id))) = &query.start_after
                && let Some(upload) = bucket.catalog.upload(id).await?
                && upload.name.expose() != name
            {
                return Err(VaultError::NoSuchUpload);
            }
            Ok(bucket.catalog.uploads(query).await?)
        };
        let on = On::Prefix(&prefix);
        let row = grant.row().clone();
        let (mut page, _reading) = grant.read(Act::ListUploads, on, look).await?;
        for upload in &mut page.uploads {
            self.tell_owner_of(&row, upload)?;
        }
        Ok(page)
    }

    /// Leaves of what is kept of the object to be only whose it will be: none is the bucket's
    /// owner; and of who began it only who is still there.
    fn tell_owner_of(&self, row: &BucketRow, upload: &mut Upload) -> Result<()> {
        upload.made_by = { upload.made_by.take() }.filter(|maker| self.is_known_owner(maker));
        upload.acl = access_of_upload(upload.acl.as_deref())?.owner;
        self.tell_owners(row, std::iter::once(&mut upload.acl))
    }
}
