//! Copies in a store in memory, which loses, alters and forgets as it is told.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use coffer_seal::{BlobId, BucketId, KeystoreId, SecretKey};
use futures::StreamExt;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};

use crate::*;

const BUCKET: BucketId = BucketId([7; 16]);

fn page(fill: u8) -> Vec<u8> {
    vec![fill; limits::PAGE_BYTES]
}

fn segment(commits: u64, page_count: u32, pages: &[(u32, u8)], is_last: bool) -> NewSegment {
    NewSegment {
        commits,
        page_count,
        pages: pages
            .iter()
            .map(|(number, fill)| (*number, page(*fill)))
            .collect(),
        is_last,
    }
}

struct Bench {
    store: Arc<Fickle>,
    key: SecretKey,
    id: CopyId,
    writer: CopyWriter,
    /// The time of day, in milliseconds since 1970.
    clock: Arc<AtomicI64>,
}

fn by(clock: &Arc<AtomicI64>) -> Clock {
    let clock = clock.clone();
    Arc::new(move || clock.load(Ordering::SeqCst))
}

impl Bench {
    async fn new() -> Self {
        let (store, key) = (Arc::new(Fickle::default()), SecretKey::generate());
        let record = CopyRecord::new(KeystoreId([1; 16]));
        let clock = Arc::new(AtomicI64::new(0));
        let copy = Copy::new(store.clone(), record.copy, &key).by_clock(by(&clock));
        let writer = CopyWriter::begin(copy, &record).await.unwrap();
        Self {
            store,
            key,
            id: record.copy,
            writer,
            clock,
        }
    }

    fn copy(&self) -> Copy {
        let copy = Copy::new(self.store.clone(), self.id, &self.key);
        copy.by_clock(by(&self.clock))
    }

    /// Sets the clock.
    fn it_is(&self, now_s: i64) {
        self.clock.store(now_s * 1_000, Ordering::SeqCst);
    }

    /// Puts a segment and a head that names it.
    async fn put(&mut self, before: Option<&BucketState>, new: NewSegment) -> BucketState {
        let state = self.writer.put_segment(BUCKET, before, new).await.unwrap();
        let mut next = self.writer.head().clone();
        next.buckets.insert(BUCKET.to_string(), state.clone());
        self.writer.commit(next).await.unwrap();
        state
    }

    async fn restored(&self, known: Option<&KnownHead>) -> Result<Vec<u8>> {
        let reader = CopyReader::newest(self.copy(), known).await?;
        let mut file = tempfile::tempfile()?;
        let state = &reader.head().buckets[&BUCKET.to_string()];
        reader.catalog(BUCKET, state, Some(&file)).await?;
        let mut bytes = Vec::new();
        std::io::Seek::rewind(&mut file)?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    async fn names(&self, prefix: &str) -> Vec<Path> {
        use futures::TryStreamExt;
        let listed: Vec<_> = self
            .store
            .list(Some(&Path::from(prefix)))
            .try_collect()
            .await
            .unwrap();
        let mut names: Vec<Path> = listed.into_iter().map(|found| found.location).collect();
        names.sort();
        names
    }
}

/// A base in two steps, a change, and a shorter catalog.
async fn three_segments(bench: &mut Bench) -> Vec<u8> {
    let first = segment(1, 3, &[(1, 1), (2, 2)], false);
    let state = bench.writer.put_segment(BUCKET, None, first).await.unwrap();
    // What the first took of page 2 is older.
    let state = bench
        .put(Some(&state), segment(2, 3, &[(2, 3), (3, 4)], true))
        .await;
    bench
        .put(Some(&state), segment(3, 2, &[(1, 9)], true))
        .await;
    [page(9), page(3)].concat()
}

#[tokio::test]
async fn the_newest_of_each_page_counts() {
    let mut bench = Bench::new().await;
    let wanted = three_segments(&mut bench).await;
    assert!(bench.restored(None).await.unwrap() == wanted);
    assert_eq!(bench.names("buckets").await.len(), 3);
}

#[tokio::test]
async fn what_the_store_loses_alters_or_exchanges_is_named() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let names = bench.names("buckets").await;
    for name in &names {
        let whole = bench.store.get(name).await.unwrap().bytes().await.unwrap();
        bench.store.delete(name).await.unwrap();
        let error = bench.restored(None).await.unwrap_err();
        let ReplicaError::Missing { object } = error else {
            panic!("{error}")
        };
        assert_eq!(object, name.to_string());
        for at in [0, 20, 60, whole.len() - 1] {
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1;
            bench.store.put(name, bytes.into()).await.unwrap();
            let error = bench.restored(None).await.unwrap_err();
            let ReplicaError::Altered { object, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(object, name.to_string(), "byte {at}");
        }
        let other = names.iter().find(|other| *other != name).unwrap();
        bench.store.copy(other, name).await.unwrap();
        let error = bench.restored(None).await.unwrap_err();
        assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
        bench.store.put(name, whole.into()).await.unwrap();
    }
    bench.restored(None).await.unwrap();
}

#[tokio::test]
async fn a_store_that_was_put_back_is_found_by_the_head_that_is_known() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let known = bench.writer.known().clone();
    bench.restored(Some(&known)).await.unwrap();
    let newest = bench.names("heads").await.pop().unwrap();
    bench.store.delete(&newest).await.unwrap();
    // Without it, nothing tells.
    bench.restored(None).await.unwrap();
    let error = bench.restored(Some(&known)).await.unwrap_err();
    let ReplicaError::RolledBack { found, known: told } = error else {
        panic!("{error}")
    };
    assert_eq!((found + 1, told), (known.number, known.number));
    let resumed = CopyWriter::resume(bench.copy(), Some(&known)).await;
    assert!(matches!(resumed, Err(ReplicaError::RolledBack { .. })));
}

#[tokio::test]
async fn answers_that_are_lost_cost_nothing() {
    let mut bench = Bench::new().await;
    let state = bench.put(None, segment(1, 1, &[(1, 1)], true)).await;
    // Of the head: it is read back.
    let before = bench.writer.known().number;
    bench.store.unheard.store(1, Ordering::SeqCst);
    bench
        .writer
        .commit(bench.writer.head().clone())
        .await
        .unwrap();
    assert_eq!(bench.writer.known().number, before + 1);
    // Of a segment: its number is not used again.
    bench.store.unheard.store(1, Ordering::SeqCst);
    let lost = segment(2, 1, &[(1, 2)], true);
    let lost = bench.writer.put_segment(BUCKET, Some(&state), lost).await;
    assert!(lost.is_err_and(|error| error.is_passing()));
    bench
        .put(Some(&state), segment(2, 1, &[(1, 3)], true))
        .await;
    assert!(bench.restored(None).await.unwrap() == page(3));
    // None of either came.
    bench.store.refused.store(1, Ordering::SeqCst);
    let failed = bench.writer.commit(bench.writer.head().clone()).await;
    assert!(failed.is_err_and(|error| error.is_passing()));
    bench
        .writer
        .commit(bench.writer.head().clone())
        .await
        .unwrap();
}

#[tokio::test]
async fn of_two_writers_the_later_one_goes_on_and_the_earlier_one_stops() {
    let mut bench = Bench::new().await;
    let state = bench.put(None, segment(1, 1, &[(1, 1)], true)).await;
    let mut later = CopyWriter::resume(bench.copy(), None).await.unwrap();
    assert!(later.head().epoch > bench.writer.head().epoch);
    let fenced = bench.writer.commit(bench.writer.head().clone()).await;
    assert!(matches!(fenced, Err(ReplicaError::Fenced { .. })));
    let new = segment(2, 1, &[(1, 2)], true);
    let state = later.put_segment(BUCKET, Some(&state), new).await.unwrap();
    let mut next = later.head().clone();
    next.buckets.insert(BUCKET.to_string(), state);
    later.commit(next).await.unwrap();
    assert!(bench.restored(None).await.unwrap() == page(2));
    // Also where the number that it tries is free again, as the head was collected.
    let heads = bench.names("heads").await;
    bench.store.delete(&heads[heads.len() - 2]).await.unwrap();
    let fenced = bench.writer.commit(bench.writer.head().clone()).await;
    assert!(matches!(fenced, Err(ReplicaError::Fenced { .. })));
}

#[tokio::test]
async fn a_store_that_is_lost_or_put_back_meanwhile_is_found_before_the_next_head() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let next = bench.writer.head().clone();
    let heads = bench.names("heads").await;
    let (newest, older) = (heads.last().unwrap(), &heads[heads.len() - 2]);
    let whole = bench
        .store
        .get(newest)
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    bench.store.delete(newest).await.unwrap();
    let error = bench.writer.commit(next.clone()).await.unwrap_err();
    assert!(matches!(error, ReplicaError::RolledBack { .. }), "{error}");
    assert!(!error.is_passing());
    bench.store.copy(older, newest).await.unwrap();
    let error = bench.writer.commit(next.clone()).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
    bench.store.put(newest, whole.into()).await.unwrap();
    let record = Path::from("copy.json");
    let kept = bench
        .store
        .get(&record)
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    bench.store.delete(&record).await.unwrap();
    let error = bench.writer.commit(next.clone()).await.unwrap_err();
    assert!(matches!(error, ReplicaError::RecordLost), "{error}");
    assert_eq!(bench.names("heads").await, heads, "no head was written");
    bench.store.put(&record, kept.into()).await.unwrap();
    bench.writer.commit(next).await.unwrap();
}

#[tokio::test]
async fn a_store_without_conditional_creation_is_refused() {
    let store = Arc::new(Fickle::default());
    store.is_careless.store(true, Ordering::SeqCst);
    let record = CopyRecord::new(KeystoreId([1; 16]));
    let copy = Copy::new(store.clone(), record.copy, &SecretKey::generate());
    let begun = CopyWriter::begin(copy, &record).await;
    assert!(matches!(begun, Err(ReplicaError::NoConditions)));
    let left = store.get(&Path::from("copy.json")).await;
    assert!(left.is_err(), "the place stays as it was: {left:?}");
}

#[tokio::test]
async fn another_key_opens_nothing_and_a_place_is_taken_once() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let foreign = Copy::new(bench.store.clone(), bench.id, &SecretKey::generate());
    let error = CopyReader::newest(foreign, None).await.err().unwrap();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
    let record = CopyRecord::new(KeystoreId([2; 16]));
    let begun = CopyWriter::begin(bench.copy(), &record).await;
    assert!(matches!(begun, Err(ReplicaError::Occupied)));
}

#[tokio::test]
async fn a_copy_that_was_begun_and_holds_nothing_makes_room_for_another() {
    let store = Arc::new(Fickle::default());
    let record = CopyRecord::new(KeystoreId([1; 16]));
    let text = serde_json::to_vec(&record).unwrap();
    for (path, bytes) in [
        ("copy.json", text),
        ("lease.json", vec![1]),
        ("identity", vec![1]),
        ("probes/1", vec![]),
    ] {
        store.put(&Path::from(path), bytes.into()).await.unwrap();
    }
    assert!(!CopyRecord::is_filled(&*store).await.unwrap());
    CopyRecord::remove_begun(&*store).await.unwrap();
    CopyRecord::remove_begun(&*store).await.unwrap();
    let copy = Copy::new(store.clone(), record.copy, &SecretKey::generate());
    CopyWriter::begin(copy, &record).await.unwrap();
    assert!(CopyRecord::is_filled(&*store).await.unwrap());
    let refused = CopyRecord::remove_begun(&*store).await;
    assert!(matches!(refused, Err(ReplicaError::Occupied)));
    assert!(CopyRecord::read(&*store).await.is_ok());
}

/// It was killed before it put the first keystore: nothing was acknowledged.
#[tokio::test]
async fn the_log_of_an_engine_that_has_no_keystore_yet_makes_room_for_another() {
    for is_of_engine in [true, false] {
        let store = Arc::new(Fickle::default());
        let record = if is_of_engine {
            CopyRecord::of_engine(KeystoreId([1; 16]))
        } else {
            CopyRecord::new(KeystoreId([1; 16]))
        };
        let copy = Copy::new(store.clone(), record.copy, &SecretKey::generate());
        let mut writer = CopyWriter::begin(copy.clone(), &record).await.unwrap();
        store.put(&"lease.json".into(), "{}".into()).await.unwrap();
        let is_filled = CopyRecord::is_filled(&*store).await.unwrap();
        assert_eq!(is_filled, !is_of_engine);
        if is_of_engine {
            CopyRecord::remove_begun(&*store).await.unwrap();
            assert!(matches!(
                copy.head(1).await,
                Err(ReplicaError::Missing { .. })
            ));
            writer = CopyWriter::begin(copy, &record).await.unwrap();
        }
        // With a keystore, or a second head, it is one.
        let keystore = Path::from("keystores/00000001-000000000001");
        store.put(&keystore, "sealed".into()).await.unwrap();
        assert!(CopyRecord::is_filled(&*store).await.unwrap());
        store.delete(&keystore).await.unwrap();
        writer.commit(writer.head().clone()).await.unwrap();
        let refused = CopyRecord::remove_begun(&*store).await;
        assert!(matches!(refused, Err(ReplicaError::Occupied)));
        assert!(CopyRecord::read(&*store).await.is_ok());
    }
}

#[cfg(test)]
mod clouds;
mod fickle;

mod blobs;
mod folder;
mod histories;
mod identity;
mod keystores;
mod lease;
mod records;
mod room;
mod window;

mod again;
mod moments;

mod missing;

use self::fickle::Fickle;
