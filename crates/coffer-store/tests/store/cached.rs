//! A cache of blobs: what its source has comes out, and nothing else; it keeps to its bounds, and
//! what only it has is never lost.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_seal::{BlobId, BucketId, SecretKey};
use coffer_store::{
    BlobCache, BlobSource, BlobStore, ComingBlob, Fetched, NotFetched, StoreError, UNFINISHED,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::fixture::{BUCKET_ID, Bucket, drain, noise};

const PIECE: usize = 64 * 1_024;

/// A store in memory.
#[derive(Debug, Default)]
pub(crate) struct Source {
    blobs: Mutex<HashMap<BlobId, Bytes>>,
    asked: AtomicUsize,
    /// How often for a part of one.
    pub(crate) parts: AtomicUsize,
    is_away: Mutex<bool>,
    /// Pieces that may come, where that is held.
    pub(crate) held: Mutex<Option<Arc<Semaphore>>>,
}

impl BlobSource for Source {
    fn fetch(&self, _: BucketId, id: BlobId) -> BoxFuture<'static, Fetched> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let found = self.blobs.lock().get(&id).cloned();
        let (is_away, held) = (*self.is_away.lock(), self.held.lock().clone());
        let fetched = async move {
            if is_away {
                return Err(NotFetched::Away("it is away".to_owned()));
            }
            let bytes = found.ok_or(NotFetched::Lost)?;
            let pieces: Vec<_> = bytes.chunks(PIECE).map(Bytes::copy_from_slice).collect();
            let pieces = stream::iter(pieces).then(move |piece| {
                let held = held.clone();
                async move {
                    if let Some(held) = held {
                        held.acquire().await.unwrap().forget();
                    }
                    Ok(piece)
                }
            });
            Ok(ComingBlob {
                length_bytes: bytes.len() as u64,
                bytes: pieces.boxed(),
            })
        };
        fetched.boxed()
    }

    fn fetch_part(
        &self,
        _: BucketId,
        id: BlobId,
        range: Range<u64>,
    ) -> BoxFuture<'static, Result<Bytes, NotFetched>> {
        self.parts.fetch_add(1, Ordering::SeqCst);
        let found = self.blobs.lock().get(&id).cloned().ok_or(NotFetched::Lost);
        let range = range.start as usize..range.end as usize;
        async move { Ok(found?.slice(range)) }.boxed()
    }
}

pub(crate) struct Cached {
    pub(crate) dir: TempDir,
    pub(crate) source: Arc<Source>,
    pub(crate) cache: BlobCache,
    pub(crate) blobs: BlobStore,
    /// Where blobs are sealed that the source has.
    elsewhere: Bucket,
}

impl Cached {
    pub(crate) async fn new(max_bytes: u64) -> Self {
        Self::within(tempfile::tempdir().unwrap(), max_bytes).await
    }

    pub(crate) async fn within(dir: TempDir, max_bytes: u64) -> Self {
        fs::create_dir_all(dir.path().join("buckets").join(BUCKET_ID.to_string())).unwrap();
        let source = Arc::<Source>::default();
        let cache = BlobCache::new(dir.path(), max_bytes, source.clone());
        Self {
            blobs: BlobStore::cached(cache.clone(), BUCKET_ID),
            dir,
            source,
            cache,
            elsewhere: Bucket::new().await,
        }
    }

    /// Another process on the same folder.
    pub(crate) fn again(&mut self, max_bytes: u64) {
        self.cache = BlobCache::new(self.dir.path(), max_bytes, self.source.clone());
        self.cache.remove_unfinished();
        self.cache.look();
        self.blobs = BlobStore::cached(self.cache.clone(), BUCKET_ID);
    }

    /// A blob that the source has, and the cache has not.
    pub(crate) async fn stored(&self, data: &[u8]) -> (BlobId, SecretKey) {
        let (id, key) = self.elsewhere.write_blob(data).await;
        let sealed = fs::read(self.elsewhere.blobs.path(id)).unwrap();
        self.source.blobs.lock().insert(id, sealed.into());
        (id, key)
    }

    pub(crate) async fn read(
        &self,
        (id, key): &(BlobId, SecretKey),
        data: &[u8],
    ) -> Result<(), StoreError> {
        let mut reader = self.blobs.open(*id, key, data.len() as u64).await?;
        reader.range(0..data.len() as u64)?;
        let (read, ended) = drain(reader).await;
        assert!(data.starts_with(&read), "never other bytes");
        ended?;
        assert_eq!(read.len(), data.len());
        Ok(())
    }

    /// Reads until that needs no fetch.
    pub(crate) async fn kept(&self, blob: &(BlobId, SecretKey), data: &[u8]) {
        let began = Instant::now();
        let hits = self.cache.status().hits;
        loop {
            self.read(blob, data).await.unwrap();
            if self.cache.status().hits > hits {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it is not kept");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn asked(&self) -> usize {
        self.source.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn is_there(&self, id: BlobId) -> bool {
        self.blobs.path(id).exists()
    }

    pub(crate) fn unfinished(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.dir.path().join(UNFINISHED));
        let entries = entries.into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_is_smaller_than_the_data_serves_all_of_it() {
    let all = Cached::new(700_000).await;
    let lengths = [
        0,
        1,
        17_000,
        16 * 1_024,
        300_000,
        300_001,
        512_000,
        900_000,
        40_000,
    ];
    let mut blobs = Vec::new();
    for length in lengths {
        let data = noise(length);
        blobs.push((all.stored(&data).await, data));
    }
    for _ in 0..3 {
        for (blob, data) in &blobs {
            all.read(blob, data).await.unwrap();
        }
    }
    until("the bound", || {
        all.cache.tend();
        all.cache.status().bytes <= 700_000
    })
    .await;
    let status = all.cache.status();
    assert!(
        status.evictions > 0 && status.hits + status.misses == 27,
        "{status:?}"
    );
    let there: u64 = blobs
        .iter()
        .filter_map(|((id, _), _)| fs::metadata(all.blobs.path(*id)).ok())
        .map(|file| file.len())
        .sum();
    assert!(there <= 700_000, "{there}");
    until("all have come", || all.unfinished().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_is_served_from_what_comes() {
    let all = Cached::new(10_000_000).await;
    let data = noise(1_000_000);
    let (id, key) = all.stored(&data).await;
    for range in [
        0..0,
        0..1,
        999_999..1_000_000,
        400_000..600_000,
        0..1_000_000,
    ] {
        let mut reader = all.blobs.open(id, &key, 1_000_000).await.unwrap();
        reader.range(range.clone()).unwrap();
        let (read, ended) = drain(reader).await;
        ended.unwrap();
        assert_eq!(read, data[range.start as usize..range.end as usize]);
    }
    until("it is kept", || all.is_there(id)).await;
    assert_eq!(all.asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_readers_share_one_fetch_and_read_what_is_there() {
    let all = Cached::new(10_000_000).await;
    let data = noise(2_000_000);
    let held = Arc::new(Semaphore::new(8));
    *all.source.held.lock() = Some(held.clone());
    let (id, key) = all.stored(&data).await;
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(all.blobs.open(id, &key, 2_000_000).await.unwrap());
    }
    let mut first = readers.pop().unwrap();
    let piece = first.next().await.unwrap().unwrap();
    assert!(!all.is_there(id), "it is on its way still");
    assert!(data.starts_with(&piece));
    held.add_permits(1_000);
    for reader in readers {
        let (read, ended) = drain(reader).await;
        ended.unwrap();
        assert_eq!(read, data);
    }
    assert_eq!(all.asked(), 1);
    until("it is kept", || all.is_there(id)).await;
    all.read(&(id, key), &data).await.unwrap();
    assert_eq!(all.asked(), 1);
    assert!(all.cache.status().misses >= 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_source_lost_cut_or_altered_is_damage_and_not_kept() {
    let all = Cached::new(10_000_000).await;
    let data = noise(200_000);
    let blob = all.stored(&data).await;
    let good = all.source.blobs.lock()[&blob.0].clone();
    let cut = good.slice(..good.len() - 1);
    let [mut at_start, mut at_end] = [good.to_vec(), good.to_vec()];
    at_start[3] ^= 1;
    at_end[good.len() - 20] ^= 1;
    let other = all.stored(&data).await;
    let swapped = all.source.blobs.lock()[&other.0].clone();
    for bad in [
        None,
        Some(cut),
        Some(at_start.into()),
        Some(at_end.into()),
        Some(swapped),
    ] {
        match &bad {
            Some(bad) => all.source.blobs.lock().insert(blob.0, bad.clone()),
            None => all.source.blobs.lock().remove(&blob.0),
        };
        let met = all.read(&blob, &data).await;
        assert!(matches!(met, Err(StoreError::Damaged { .. })), "{met:?}");
        until("it is not kept", || {
            !all.is_there(blob.0) && all.unfinished().is_empty()
        })
        .await;
        all.source.blobs.lock().insert(blob.0, good.clone());
        let began = Instant::now();
        while all.read(&blob, &data).await.is_err() {
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "{:?}",
                bad.map(|bad| bad.len())
            );
        }
        all.kept(&blob, &data).await;
        fs::remove_file(all.blobs.path(blob.0)).unwrap();
    }
    *all.source.is_away.lock() = true;
    let met = all.read(&blob, &data).await;
    assert!(matches!(met, Err(StoreError::NotFetched { .. })), "{met:?}");
    let met = all.blobs.check_length(blob.0, 200_000).await;
    assert!(matches!(met, Err(StoreError::NotFetched { .. })), "{met:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_decayed_or_went_in_the_cache_is_fetched_anew() {
    let all = Cached::new(10_000_000).await;
    let data = noise(200_000);
    let blob = all.stored(&data).await;
    all.kept(&blob, &data).await;
    let path = all.blobs.path(blob.0);
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[3] ^= 1;
    for other in [None, Some(&good[..99]), Some(&bad[..])] {
        match other {
            Some(other) => fs::write(&path, other).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        all.read(&blob, &data).await.unwrap();
        all.kept(&blob, &data).await;
        assert!(fs::read(&path).is_ok_and(|file| file == good));
    }
    // What is met half-way ends the reading, and goes.
    bad = good.clone();
    bad[150_000] ^= 1;
    fs::write(&path, &bad).unwrap();
    assert!(all.read(&blob, &data).await.is_err());
    all.read(&blob, &data).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_cache_has_stays_until_it_is_stored() {
    let mut all = Cached::new(1).await;
    let data = noise(100_000);
    let mut own = Vec::new();
    for _ in 0..3 {
        let key = SecretKey::generate();
        let mut writer = all.blobs.create(&key).unwrap();
        writer.write(data.clone().into()).await.unwrap();
        let blob = writer.finish().await.unwrap();
        own.push((blob.id(), key));
        blob.keep();
    }
    // One that was not finished holds nothing up.
    let mut writer = all.blobs.create(&SecretKey::generate()).unwrap();
    writer.write(data.clone().into()).await.unwrap();
    drop(writer);
    let other = all.stored(&data).await;
    all.read(&other, &data).await.unwrap();
    all.cache.tend();
    for blob in &own {
        all.read(blob, &data).await.unwrap();
    }
    assert_eq!(all.asked(), 1);
    all.blobs.is_stored(own[0].0);
    all.cache.tend();
    assert!(!all.is_there(own[0].0) && all.is_there(own[1].0) && all.is_there(own[2].0));
    // Missing, it is damage.
    fs::remove_file(all.blobs.path(own[1].0)).unwrap();
    let met = all.read(&own[1], &data).await;
    assert!(matches!(met, Err(StoreError::Damaged { .. })), "{met:?}");
    assert_eq!(all.asked(), 1);
    // In the next term it is of no log.
    all.cache.none_is_only_here();
    until("all are gone", || {
        all.cache.tend();
        all.cache.status().bytes == 0
    })
    .await;
    assert!(!all.is_there(own[2].0));
    // Nor after a kill.
    all.again(1);
    assert_eq!(all.cache.status().bytes, 0);
}
