//! What is read of the data folder for a copy: blobs, and parts of small files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_replica::Copy;
use coffer_seal::{BlobId, BucketId};
use coffer_store::{BlobTap, Fresh};
use futures::stream::{self, StreamExt};
use parking_lot::Mutex;

use crate::copies::Progress;
use crate::data_folder::failed;
use crate::error::{Result, VaultError};
use crate::limits::{COPY_BLOBS_AT_ONCE, COPY_GONE_MAX};
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

/// Blobs that came to a copy since its newest head was written, so that no head names them.
#[derive(Default)]
pub(in crate::replica) struct NewBlobs(Mutex<HashSet<(BucketId, BlobId)>>);

impl NewBlobs {
    /// Of more than so many, those that come last are not known.
    fn add(&self, bucket: BucketId, id: BlobId) {
        let mut all = self.0.lock();
        if all.len() < COPY_GONE_MAX {
            all.insert((bucket, id));
        }
    }

    /// A head may name them from now on.
    pub(in crate::replica) fn forget(&self) {
        self.0.lock().clear();
    }

    /// All of them, by bucket.
    pub(in crate::replica) fn all(&self) -> HashMap<BucketId, Vec<BlobId>> {
        let mut all: HashMap<BucketId, Vec<BlobId>> = HashMap::new();
        for (bucket, id) in self.0.lock().iter() {
            all.entry(*bucket).or_default().push(*id);
        }
        all
    }

    /// These were removed.
    pub(in crate::replica) fn remove(&self, bucket: BucketId, removed: &[BlobId]) {
        let mut all = self.0.lock();
        for id in removed {
            all.remove(&(bucket, *id));
        }
    }
}

/// Puts blobs into a copy, and notes those that came there, where it is told to. How many of them
/// have no file. When one fails, none is begun any more, and what is under way is waited for: it
/// may arrive.
///
/// # Errors
/// Of the store. In a gateway also where one is of an object, and neither here nor in the store:
/// its folder was disturbed, and what names it is not to be acknowledged.
pub(in crate::replica) async fn put_blobs(
    copy: &Copy,
    progress: &Progress,
    bucket: &UsedBucket,
    ids: &[BlobId],
    new: Option<&NewBlobs>,
) -> Result<u64> {
    let has_failed = &AtomicBool::new(false);
    let absent = &Mutex::new(Vec::new());
    let put = stream::iter(ids.iter().copied()).map(|id| async move {
        if has_failed.load(Ordering::Relaxed) {
            return Ok(0);
        }
        if bucket.is_cut() {
            return Err(VaultError::NoSuchBucket);
        }
        let put = copy.put_blob(bucket.id, id, &bucket.blobs.path(id)).await?;
        progress.put(put.unwrap_or(0));
        if put.is_some() {
            if let Some(new) = new {
                new.add(bucket.id, id);
            }
            bucket.blobs.is_stored(id);
        } else {
            absent.lock().push(id);
        }
        Ok(u64::from(put.is_none()))
    });
    let mut put = pin!(put.buffer_unordered(COPY_BLOBS_AT_ONCE));
    let mut missing_count: Result<u64> = Ok(0);
    while let Some(one) = put.next().await {
        has_failed.fetch_or(one.is_err(), Ordering::Relaxed);
        missing_count = missing_count.and_then(|sum| one.map(|missing| sum + missing));
    }
    let absent = std::mem::take(&mut *absent.lock());
    if missing_count.is_ok() && !absent.is_empty() && bucket.blobs.is_cache() {
        assure_none_is_lost(copy, bucket, absent).await?;
    }
    missing_count
}

/// Of blobs that have no file: refuses one that an object has, unless the store has it.
async fn assure_none_is_lost(copy: &Copy, bucket: &UsedBucket, absent: Vec<BlobId>) -> Result<()> {
    for blob in bucket.catalog.blob_refs(absent).await? {
        let id = blob.id;
        if copy.blob_length(bucket.id, id).await?.is_none() {
            let path = bucket.blobs.path(id);
            return Err(failed("read", &path)(io::ErrorKind::NotFound.into()));
        }
    }
    Ok(())
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

    #[test]
    fn new_blobs_are_known_until_a_head_may_name_them_or_they_are_removed() {
        let new = NewBlobs::default();
        let (one, other) = (BucketId([1; 16]), BucketId([2; 16]));
        let [first, second] = [BlobId([1; 16]), BlobId([2; 16])];
        for (bucket, id) in [(one, first), (one, second), (other, first), (one, first)] {
            new.add(bucket, id);
        }
        assert_eq!((new.all()[&one].len(), new.all()[&other].len()), (2, 1));
        new.remove(one, &[first]);
        assert_eq!(new.all()[&one], [second]);
        assert_eq!(new.all()[&other], [first]);
        new.forget();
        assert!(new.all().is_empty());
    }

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
