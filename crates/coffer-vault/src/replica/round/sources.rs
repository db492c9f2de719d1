//! What is read of the data folder for a copy: blobs, and parts of small files.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use coffer_replica::Copy;
use coffer_seal::BlobId;
use coffer_store::{BlobTap, Fresh};
use futures::stream::{self, StreamExt, TryStreamExt};

use crate::copies::Progress;
use crate::data_folder::failed;
use crate::error::{Result, VaultError};
use crate::limits::COPY_BLOBS_AT_ONCE;
use crate::open_buckets::UsedBucket;

/// Blobs that were taken to be put. They are given back unless all have arrived, also where that
/// is cut off: a head or record that names one that was forgotten would name what is not there.
pub(in crate::replica) struct TakenBlobs<'a> {
    tap: &'a BlobTap,
    cursor: u32,
    fresh: Fresh,
}

impl<'a> TakenBlobs<'a> {
    pub(in crate::replica) fn of(tap: &'a BlobTap, cursor: u32) -> Self {
        let fresh = tap.take(cursor);
        Self { tap, cursor, fresh }
    }

    pub(in crate::replica) fn fresh(&self) -> &Fresh {
        &self.fresh
    }

    pub(in crate::replica) fn arrived(mut self) {
        self.fresh = Fresh::default();
    }
}

impl Drop for TakenBlobs<'_> {
    fn drop(&mut self) {
        self.tap
            .give_back(self.cursor, std::mem::take(&mut self.fresh));
    }
}

/// Puts blobs into a copy. How many of them have no file.
pub(in crate::replica) async fn put_blobs(
    copy: &Copy,
    progress: &Progress,
    bucket: &UsedBucket,
    ids: &[BlobId],
) -> Result<u64> {
    let put = stream::iter(ids.iter().copied()).map(|id| async move {
        if bucket.is_cut() {
            return Err(VaultError::NoSuchBucket);
        }
        let put = copy.put_blob(bucket.id, id, &bucket.blobs.path(id)).await?;
        progress.put(put.unwrap_or(0));
        if put.is_some() {
            bucket.blobs.is_stored(id);
        }
        Ok(u64::from(put.is_none()))
    });
    let put = put.buffer_unordered(COPY_BLOBS_AT_ONCE);
    put.try_fold(0, async |sum, missing| Ok(sum + missing))
        .await
}

pub(in crate::replica) fn file_bytes(path: &Path) -> Result<u64> {
    match fs::metadata(path) {
        // A log without records has no segment yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        found => Ok(found.map_err(failed("look at", path))?.len()),
    }
}

pub(in crate::replica) fn read_range(
    path: &Path,
    from_bytes: u64,
    length_bytes: u64,
) -> Result<Vec<u8>> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from_bytes))?;
        let mut bytes = Vec::new();
        file.take(length_bytes).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = read().map_err(failed("read", path))?;
    if bytes.len() as u64 == length_bytes {
        Ok(bytes)
    } else {
        Err(failed("read", path)(io::ErrorKind::UnexpectedEof.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn blobs_of_which_the_putting_is_cut_off_are_taken_again() {
        let (tap, cursor) = (BlobTap::default(), 1);
        tap.follow(cursor);
        TakenBlobs::of(&tap, cursor).arrived();
        let noted = Fresh {
            ids: vec![BlobId([1; 16]), BlobId([2; 16])],
            is_incomplete: false,
        };
        tap.give_back(cursor, noted);
        // A stop drops what puts them where it waits.
        let puts = async {
            let taken = TakenBlobs::of(&tap, cursor);
            assert_eq!((taken.fresh().ids.len(), tap.count(cursor)), (2, 0));
            std::future::pending::<()>().await;
            taken.arrived();
        };
        assert!(timeout(Duration::from_millis(1), puts).await.is_err());
        assert_eq!(tap.count(cursor), 2);
        // That not all are known is given back as well.
        tap.give_back(
            cursor,
            Fresh {
                ids: Vec::new(),
                is_incomplete: true,
            },
        );
        drop(TakenBlobs::of(&tap, cursor));
        let taken = TakenBlobs::of(&tap, cursor);
        assert!(taken.fresh().is_incomplete && taken.fresh().ids.len() == 2);
        taken.arrived();
        let left = tap.take(cursor);
        assert!(left.ids.is_empty() && !left.is_incomplete);
    }
}
