//! Putting blobs, as they lie in their files.

use std::io::ErrorKind;
use std::path::Path as FilePath;

use coffer_seal::{BlobId, BucketId};
use object_store::path::Path;
use object_store::{ObjectStoreExt, WriteMultipart};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::error::{ReplicaError, Result};
use crate::limits::BLOB_PART_BYTES;
use crate::names;
use crate::store::Copy;

/// What is asked whether bytes are those of a blob, before they count.
pub trait BlobCheck: Send {
    /// These are the next.
    ///
    /// # Errors
    /// What shows that they are not.
    fn feed(&mut self, bytes: &[u8]) -> std::result::Result<(), &'static str>;

    /// None follow.
    ///
    /// # Errors
    /// As [`BlobCheck::feed`].
    fn end(&mut self) -> std::result::Result<(), &'static str>;
}

/// What became of a blob that was to be put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobPut {
    /// It is there, with so many bytes.
    Done(u64),
    /// It has no file.
    NoFile,
    /// Its file is not what was written: what the store has is as it was.
    Damaged(&'static str),
}

/// Of what is new, and nowhere else: it goes as it is.
struct AsItIs;

impl BlobCheck for AsItIs {
    fn feed(&mut self, _: &[u8]) -> std::result::Result<(), &'static str> {
        Ok(())
    }

    fn end(&mut self) -> std::result::Result<(), &'static str> {
        Ok(())
    }
}

/// Why a file was not put.
enum NotPut {
    Failed(ReplicaError),
    Damaged(&'static str),
}

impl From<ReplicaError> for NotPut {
    fn from(error: ReplicaError) -> Self {
        Self::Failed(error)
    }
}

impl From<object_store::Error> for NotPut {
    fn from(error: object_store::Error) -> Self {
        Self::Failed(error.into())
    }
}

type Put<T> = std::result::Result<T, NotPut>;

impl Copy {
    /// Puts a blob as it lies there. How many bytes it has; none when there is no such file.
    ///
    /// # Errors
    /// Of the store and of the disk.
    pub async fn put_blob(
        &self,
        bucket: BucketId,
        id: BlobId,
        file: &FilePath,
    ) -> Result<Option<u64>> {
        match self.put_blob_again(bucket, id, file, &mut AsItIs).await? {
            BlobPut::Done(bytes) => Ok(Some(bytes)),
            BlobPut::NoFile | BlobPut::Damaged(_) => Ok(None),
        }
    }

    /// The same, of one that the store has had: it is replaced by nothing but what the check takes
    /// for it, of the very bytes that are sent.
    ///
    /// # Errors
    /// Of the store and of the disk.
    pub async fn put_blob_again(
        &self,
        bucket: BucketId,
        id: BlobId,
        file: &FilePath,
        check: &mut impl BlobCheck,
    ) -> Result<BlobPut> {
        let mut file = match File::open(file).await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BlobPut::NoFile),
            file => file?,
        };
        let path = names::blob(bucket, id);
        match self.put_file(&path, &mut file, check).await {
            Ok(length_bytes) => Ok(BlobPut::Done(length_bytes)),
            Err(NotPut::Damaged(problem)) => Ok(BlobPut::Damaged(problem)),
            Err(NotPut::Failed(error)) => Err(error),
        }
    }

    /// How long a blob is in the copy; none, where it is not there.
    ///
    /// # Errors
    /// Of the store.
    pub async fn blob_length(&self, bucket: BucketId, id: BlobId) -> Result<Option<u64>> {
        match self.store.head(&names::blob(bucket, id)).await {
            Ok(found) => Ok(Some(found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn put_file(&self, path: &Path, file: &mut File, check: &mut impl BlobCheck) -> Put<u64> {
        let part = next_part(file, check).await?;
        let length_bytes = part.len() as u64;
        if part.len() < BLOB_PART_BYTES {
            check.end().map_err(NotPut::Damaged)?;
            self.store.put(path, part.into()).await?;
            return Ok(length_bytes);
        }
        let upload = self.store.put_multipart(path).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, BLOB_PART_BYTES);
        match put_parts(&mut upload, part, file, check).await {
            Ok(length_bytes) => {
                upload.finish().await?;
                Ok(length_bytes)
            }
            Err(error) => {
                // Until it is finished nothing has changed there. What failed is told in any case.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }
}

/// Sends this part of a file, and all that follow.
async fn put_parts(
    upload: &mut WriteMultipart,
    first: Vec<u8>,
    file: &mut File,
    check: &mut impl BlobCheck,
) -> Put<u64> {
    let (mut part, mut length_bytes) = (first, 0);
    while !part.is_empty() {
        length_bytes += part.len() as u64;
        // No more than one is under way beside the one that is read.
        upload.wait_for_capacity(1).await?;
        upload.put(part.into());
        part = next_part(file, check).await?;
    }
    check.end().map_err(NotPut::Damaged)?;
    Ok(length_bytes)
}

async fn next_part(file: &mut File, check: &mut impl BlobCheck) -> Put<Vec<u8>> {
    let mut part = Vec::new();
    let mut limited = file.take(BLOB_PART_BYTES as u64);
    let read = limited.read_to_end(&mut part).await;
    read.map_err(ReplicaError::from)?;
    check.feed(&part).map_err(NotPut::Damaged)?;
    Ok(part)
}
