//! Logs that a first start began, and those that only look like one.

use std::sync::Arc;

use coffer_keys::{Keystore, MemoryRoot};
use coffer_replica::KeystoreWriter;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use tempfile::TempDir;

use super::*;

/// Identities that are no secret.
const OWN: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
const OTHER: &str = "AGE-SECRET-KEY-1G9Q5ZS2PG9Q5ZS2PG9Q5ZS2PG9Q5ZS2PG9Q5ZS2PG9Q5ZS2PG9QSC006VW";

/// A log as a first start has it that put the keystore, and nothing after it.
struct FirstStart {
    store: Store,
    keystore: Keystore,
    identity: ExportIdentity,
    writer: CopyWriter,
    carried: KeystoreWriter,
    _folder: TempDir,
}

impl FirstStart {
    async fn new() -> Self {
        Self::at(Arc::new(InMemory::new())).await
    }

    async fn at(store: Store) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keystore");
        let keystore = Keystore::create(&path, Box::new(MemoryRoot::new())).unwrap();
        let record = CopyRecord::of_engine(keystore.id());
        let copy = Copy::new(store.clone(), record.copy, &keystore.system_key());
        let writer = CopyWriter::begin(copy, &record).await.unwrap();
        let carried = KeystoreWriter::new(&writer);
        let mut start = Self {
            store,
            keystore,
            identity: OWN.parse().unwrap(),
            writer,
            carried,
            _folder: folder,
        };
        start.carry().await;
        start
    }

    async fn carry(&mut self) {
        let recipients = [self.identity.recipient()];
        let sealed = self.keystore.seal_carried(None, &recipients).unwrap();
        let put = self.carried.put_newest(sealed.generation, sealed.bytes);
        put.await.unwrap();
        self.carried.keep_alone().await.unwrap();
    }

    async fn is_begun(&self) -> bool {
        find(&self.store, &self.identity).await.unwrap().is_some()
    }

    async fn put(&self, path: &str) {
        self.store.put(&path.into(), "x".into()).await.unwrap();
    }
}

#[tokio::test]
async fn one_that_has_a_keystore_and_no_whole_head_is_begun() {
    let mut start = FirstStart::new().await;
    start.put("lease.json").await;
    assert!(start.is_begun().await);
    start.writer.put_piece(vec![1; 100]).await.unwrap();
    assert!(start.is_begun().await);
    // As one that went on with it, and was ended as well.
    let copy = start.writer.copy().clone();
    let known = start.writer.known();
    let mut next = CopyWriter::resume_engine(copy, Some(&known)).await.unwrap();
    assert!(start.is_begun().await);
    // The first has its number taken.
    let whole = |writer: &CopyWriter| coffer_replica::Head {
        as_of_ms: 1,
        ..writer.head().clone()
    };
    let late = start.writer.commit(whole(&start.writer)).await;
    assert!(matches!(late, Err(ReplicaError::Fenced { .. })), "{late:?}");
    assert!(start.is_begun().await);
    next.commit(whole(&next)).await.unwrap();
    assert!(!start.is_begun().await);
}

#[tokio::test]
async fn one_that_was_completed_meanwhile_is_to_be_followed() {
    let root = tempfile::tempdir().unwrap();
    let (data, log) = (root.path().join("data"), root.path().join("log"));
    std::fs::create_dir(&data).unwrap();
    let place = Place::parse(&format!("file://{}", log.display())).unwrap();
    let right = ServingRight::default();
    right.extend(ServingRight::now() + std::time::Duration::from_secs(60));
    let mut start = FirstStart::at(open(&place).await.unwrap()).await;
    let identity: ExportIdentity = OWN.parse().unwrap();
    assert!(!has_log(&place, &identity).await.unwrap());
    let whole = coffer_replica::Head {
        as_of_ms: 1,
        ..start.writer.head().clone()
    };
    start.writer.commit(whole).await.unwrap();
    let found = take_over_begun(&place, &identity, &data, right).await;
    assert!(matches!(found, Ok(FoundLog::Whole)), "{found:?}");
    assert!(has_log(&place, &identity).await.unwrap());
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 0);
}

#[tokio::test]
async fn where_nothing_is_a_log_is_made() {
    let root = tempfile::tempdir().unwrap();
    let place = Place::parse(&format!("file://{}/log", root.path().display())).unwrap();
    let (identity, right) = (OWN.parse().unwrap(), ServingRight::default());
    let found = take_over_begun(&place, &identity, root.path(), right).await;
    assert!(matches!(found, Ok(FoundLog::None)), "{found:?}");
}

#[tokio::test]
async fn one_that_has_more_or_does_not_open_is_not() {
    for path in ["buckets/00/00000001-000000000/1", "blobs/00/ab/cd", "other"] {
        let start = FirstStart::new().await;
        start.put(path).await;
        assert!(!start.is_begun().await, "{path}");
    }
    let mut start = FirstStart::new().await;
    let other: ExportIdentity = OTHER.parse().unwrap();
    assert!(find(&start.store, &other).await.unwrap().is_none());
    // A head had something by then, which the store has lost.
    let held = Held {
        system_commits: 1,
        ..start.keystore.held()
    };
    start.keystore.hold(held).unwrap();
    start.carry().await;
    assert!(!start.is_begun().await);
}
