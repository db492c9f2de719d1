//! Opening what waits to be verified: what is read of it may not be what was told with it.

use coffer_keys::BucketKey;
use coffer_store::record::{BlobRef, Content};
use coffer_store::{BlobState, StoreError, WaitingBlob};
use futures::StreamExt;

use crate::digest::{DigestPlan, Digester};
use crate::error::{Result, VaultError};
use crate::objects::Keys;
use crate::open_buckets::UsedBucket;

const OTHER_CHECKSUM: &str = "blob: its checksum is not the one that was told with it";

/// Looks through what waits to be verified of what is about to be copied: the copy is of what
/// was opened, and its checksum would hide that it is not what was told.
///
/// # Errors
/// [`VaultError::Damaged`], [`VaultError::NoSuchObject`].
pub(crate) async fn check_waiting(
    bucket: &UsedBucket,
    before: BucketKey,
    content: &Content,
) -> Result<()> {
    let Content::Blobs { blobs, .. } = content else {
        return Ok(());
    };
    let keys = Keys::around(before, bucket);
    for blob in blobs {
        match bucket.catalog.blob_state(blob.id).await? {
            BlobState::Whole => {}
            BlobState::Waits(waiting) => look_through(bucket, &keys, blob, &waiting).await?,
            // Since the object was looked up; it was counted and told then.
            BlobState::Damaged => return Err(VaultError::Damaged),
            // With its object, and what was found of it: there is nothing left to copy.
            BlobState::Gone => return Err(VaultError::NoSuchObject),
        }
    }
    Ok(())
}

/// Opens a blob from its beginning to its end.
pub(crate) async fn look_through(
    bucket: &UsedBucket,
    keys: &Keys,
    blob: &BlobRef,
    waiting: &WaitingBlob,
) -> Result<(), StoreError> {
    let data_key = keys.unwrap(bucket.id, blob)?;
    let data_key = data_key.ok_or(StoreError::OutOfRange)?;
    let opened = bucket.blobs.open(blob.id, &data_key, blob.plaintext_bytes);
    let mut reader = opened.await?;
    let mut digester = Digester::new(DigestPlan {
        checksum: Some(waiting.checksum.algorithm),
        md5: false,
    });
    while let Some(bytes) = reader.next().await {
        digester.update(&bytes?);
        // Requests go first.
        tokio::task::yield_now().await;
    }
    if digester.finish().checksum.as_ref() == Some(&waiting.checksum) {
        Ok(())
    } else {
        Err(StoreError::Damaged {
            what: OTHER_CHECKSUM,
            bucket: bucket.id,
            blob: Some(blob.id),
        })
    }
}
