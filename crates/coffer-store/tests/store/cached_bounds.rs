//! A cache of blobs at its bounds: a full disk, a bucket that goes, readers that leave.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use coffer_seal::{SecretKey, limits as seal};
use coffer_store::UNFINISHED;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::cached::{Cached, until};
use crate::fixture::{BUCKET_ID, drain, noise};
use crate::full_disk::SmallDisk;

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_gone_does_not_come_back() {
    let all = Cached::new(10_000_000).await;
    let data = noise(seal::CHUNK_BYTES * 3);
    let blob = all.stored(&data).await;
    let folder = all.dir.path().join("buckets").join(BUCKET_ID.to_string());
    fs::remove_dir_all(&folder).unwrap();
    all.cache.forget_bucket(BUCKET_ID);
    let _ = all.read(&blob, &data).await;
    until("it ended", || all.cache.status().failures == 1).await;
    assert!(!folder.exists());
    assert_eq!((all.cache.status().bytes, all.unfinished().len()), (0, 0));
}

/// A reader that leaves does not end a fetch that is of use; one that is not, ends.
#[tokio::test(flavor = "multi_thread")]
async fn what_none_reads_any_more_is_fetched_only_if_it_can_stay() {
    let data = noise(3_000_000);
    for (max_bytes, stays) in [(10_000_000, true), (1_000_000, false)] {
        let all = Cached::new(max_bytes).await;
        let held = Arc::new(Semaphore::new(8));
        *all.source.held.lock() = Some(held.clone());
        let (id, key) = all.stored(&data).await;
        drop(all.blobs.open(id, &key, 3_000_000).await.unwrap());
        held.add_permits(1_000);
        if stays {
            until("it is kept", || all.is_there(id)).await;
        } else {
            until("it is given up", || all.cache.status().failures == 1).await;
            assert!(!all.is_there(id) && all.unfinished().is_empty());
            all.read(&(id, key), &data).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_has_the_cache_give_way() {
    let parent = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(parent.path(), 64) else {
        eprintln!("not tested: no right to mount a small file system");
        return;
    };
    let all = Cached::within(TempDir::new_in(parent.path()).unwrap(), u64::MAX).await;
    let data = noise(9_000_000);
    let mut blobs = Vec::new();
    for _ in 0..6 {
        blobs.push(all.stored(&data).await);
    }
    for blob in blobs.iter().chain(&blobs) {
        all.read(blob, &data).await.unwrap();
    }
    until("some have gone", || all.cache.status().evictions > 0).await;
    // What comes from elsewhere is made room for as well; here, an upload.
    let filler = parent.path().join("filler");
    let free = rustix::fs::statvfs(parent.path()).unwrap();
    let free_bytes = free.f_bavail * free.f_frsize;
    fs::write(&filler, vec![1; free_bytes as usize - 17_000_000]).unwrap();
    let key = SecretKey::generate();
    let mut writer = all.blobs.create(&key).unwrap();
    writer.write(data.clone().into()).await.unwrap();
    let own = writer.finish().await.unwrap();
    let blob = (own.id(), key);
    own.keep();
    all.read(&blob, &data).await.unwrap();
    // Where nothing is left that may go, it is shown as it comes, and not kept.
    all.cache.tend();
    let rest = rustix::fs::statvfs(parent.path()).unwrap();
    let rest_bytes = (rest.f_bavail * rest.f_frsize).saturating_sub(17_000_000);
    fs::write(parent.path().join("more"), vec![1; rest_bytes as usize]).unwrap();
    let parts = all.source.parts.load(Ordering::SeqCst);
    all.read(&blobs[0], &data).await.unwrap();
    assert!(all.source.parts.load(Ordering::SeqCst) > parts && !all.is_there(blobs[0].0));
    all.read(&blob, &data).await.unwrap();
    fs::remove_file(filler).unwrap();
    all.read(&blobs[0], &data).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_far_ahead_of_what_has_come_does_not_wait_for_it() {
    let all = Cached::new(1_000_000_000).await;
    let data = noise(80_000_000);
    let held = Arc::new(Semaphore::new(8));
    *all.source.held.lock() = Some(held.clone());
    let (id, key) = all.stored(&data).await;
    for range in [
        79_000_000..80_000_000,
        79_999_999..80_000_000,
        70_000_000..70_000_001,
    ] {
        let mut reader = all.blobs.open(id, &key, 80_000_000).await.unwrap();
        reader.range(range.clone()).unwrap();
        let (read, ended) = drain(reader).await;
        ended.unwrap();
        assert_eq!(read, data[range.start as usize..range.end as usize]);
    }
    assert!(all.source.parts.load(Ordering::SeqCst) > 3);
    let parts = all.source.parts.swap(0, Ordering::SeqCst);
    assert!(!all.is_there(id) && parts < 20, "{parts}");
    held.add_permits(10_000);
    all.read(&(id, key), &data).await.unwrap();
    until("it is kept", || all.is_there(id)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_process_knows_what_is_there_and_removes_what_was_not_whole() {
    let mut all = Cached::new(10_000_000).await;
    let data = noise(150_000);
    let blobs = [all.stored(&data).await, all.stored(&data).await];
    for blob in &blobs {
        all.kept(blob, &data).await;
        // Times of files tell which was used last.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let bytes = all.cache.status().bytes;
    fs::write(all.dir.path().join(UNFINISHED).join("left"), "half").unwrap();
    all.again(10_000_000);
    assert_eq!(
        (all.cache.status().bytes, all.unfinished().len()),
        (bytes, 0)
    );
    for blob in &blobs {
        all.read(blob, &data).await.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(all.asked(), 2);
    // One that is too large has the older go.
    all.again(bytes - 1);
    assert!(!all.is_there(blobs[0].0) && all.is_there(blobs[1].0));
}
