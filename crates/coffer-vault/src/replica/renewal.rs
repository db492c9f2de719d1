//! Putting again what a check found to be missing or damaged in a copy, or what its store lost.
//!
//! What the copy has may be better than what is here: a check may have been wrong, a list may have
//! left it out, and this disk may be the bad one. So what is put again is opened as it goes, and
//! what does not open replaces nothing.

use std::fs;

use coffer_replica::{BlobPut, Copy, CopyWriter};
use coffer_seal::{BlobId, sealed_bytes};
use coffer_store::record::BlobRef;
use futures::stream::{self, StreamExt, TryStreamExt};

use super::blobs::OpenedOnTheWay;
use super::round::Round;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::limits::{COPY_BLOBS_AT_ONCE, VERIFY_PAGE};
use crate::objects::Keys;
use crate::open_buckets::UsedBucket;

impl Round {
    /// Puts blobs again that were found, and has the round put catalogs and files as a whole.
    pub(super) async fn renew(&mut self, writer: &CopyWriter) -> Result<()> {
        let inner = self.inner()?;
        let findings = self.findings.clone();
        let found = findings.take();
        if found.are_files {
            self.renew_files();
        }
        if found.is_keystore {
            self.carrier.forget().await;
        }
        for (id, of) in found.buckets {
            if of.is_catalog {
                self.renewed.insert(id);
            }
            if of.blobs.is_empty() {
                continue;
            }
            let opened = inner
                .open_buckets
                .open(&inner.folder, &inner.keystore, id)
                .await;
            let put = match opened {
                Ok(bucket) => {
                    // A file that is not there is of an object deleted since, or lost here too.
                    let _pin = bucket.blobs.pin();
                    self.put_again(writer, &bucket, &of.blobs).await.map(drop)
                }
                Err(VaultError::NoSuchBucket) => Ok(()),
                Err(VaultError::ShuttingDown) => Err(VaultError::ShuttingDown),
                // The round tells of it, and goes on without it.
                Err(_) => {
                    of.blobs.iter().for_each(|blob| findings.blob(id, *blob));
                    Ok(())
                }
            };
            if let Err(error) = put {
                of.blobs.iter().for_each(|blob| findings.blob(id, *blob));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Puts again what the copy says of itself, which its store lost or altered.
    pub(super) async fn put_record_again(&self, writer: Option<&CopyWriter>) -> Result<()> {
        let (copy, known) = self.copy_known(writer).await?;
        let inner = self.inner()?;
        inner.gate.check_right()?;
        let keystore = inner.keystore.id();
        if copy.put_record_again(keystore, known.as_ref()).await? {
            tracing::warn!(
                copy = self.name(),
                "copy.json was missing in a copy's place, or said nothing, and was put there \
                 again: see what else its store lost (coffer replica verify)"
            );
        }
        Ok(())
    }

    /// Puts blobs that the copy had. How many of them have no file here that is what was written.
    pub(super) async fn put_again(
        &self,
        writer: &CopyWriter,
        bucket: &UsedBucket,
        ids: &[BlobId],
    ) -> Result<u64> {
        let mut bad_count = 0;
        for ids in ids.chunks(VERIFY_PAGE) {
            let before = bucket.key();
            // Those that are of no object any more are left out.
            let blobs = bucket.catalog.blob_refs(ids.to_vec()).await?;
            let keys = &Keys::around(before, bucket);
            let put = stream::iter(blobs).map(|blob| async move {
                if bucket.is_cut() {
                    return Err(VaultError::NoSuchBucket);
                }
                let put = put_opened(writer.copy(), bucket, keys, &blob).await?;
                Ok(self.told(bucket, &blob, put))
            });
            let put = put.buffer_unordered(COPY_BLOBS_AT_ONCE);
            let count = put.try_fold(0_u64, async |sum, bad| Ok(sum + u64::from(bad)));
            bad_count += count.await?;
        }
        Ok(bad_count)
    }

    /// Whether it is one that there is nothing of to put.
    fn told(&self, bucket: &UsedBucket, blob: &BlobRef, put: BlobPut) -> bool {
        match put {
            BlobPut::Done(bytes) => {
                self.progress.put(bytes);
                bucket.blobs.is_stored(blob.id);
                false
            }
            BlobPut::NoFile => true,
            BlobPut::Damaged(problem) => {
                tracing::error!(
                    copy = self.name(),
                    bucket = %bucket.id,
                    blob = %blob.id,
                    problem,
                    "a blob is not put again: its file here is damaged as well"
                );
                true
            }
        }
    }
}

/// Puts a blob if it opens. One whose key a client has is put where the copy has none of its
/// length: no more can be known of it.
async fn put_opened(
    copy: &Copy,
    bucket: &UsedBucket,
    keys: &Keys,
    blob: &BlobRef,
) -> Result<BlobPut> {
    let (id, path) = (blob.id, bucket.blobs.path(blob.id));
    let Some(length_bytes) = sealed_bytes(blob.plaintext_bytes) else {
        return Ok(BlobPut::Damaged("no blob is so long"));
    };
    let key = match keys.unwrap(bucket.id, blob) {
        Ok(Some(key)) => key,
        Ok(None) => {
            if copy.blob_length(bucket.id, id).await? == Some(length_bytes) {
                return Ok(BlobPut::Done(0));
            }
            let file = path.clone();
            let found = blocking(move || Ok(fs::metadata(file).ok().map(|file| file.len())));
            if found.await?.is_some_and(|found| found != length_bytes) {
                return Ok(BlobPut::Damaged("it has another length"));
            }
            let put = copy.put_blob(bucket.id, id, &path).await?;
            return Ok(put.map_or(BlobPut::NoFile, BlobPut::Done));
        }
        Err(_) => return Ok(BlobPut::Damaged("its data key does not open")),
    };
    let mut opened = OpenedOnTheWay::new(&key, (bucket.id, id), length_bytes);
    Ok(copy
        .put_blob_again(bucket.id, id, &path, &mut opened)
        .await?)
}
