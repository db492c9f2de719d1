//! What is acknowledged while the disk fails: it stays, through a kill and through a power cut.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

mod calls;

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use coffer_seal::{BlobId, BucketId, SecretKey};
use coffer_store::lock::Lock;
use coffer_store::record::{
    BlobRef, Content, Details, NewContent, NewObject, ObjectHead, ObjectName, Precondition,
    WRAPPED_KEY_BYTES,
};
use coffer_store::version::{Versioning, Which};
use coffer_store::{BlobStore, Catalog, StoreError, VersionsQuery};
use futures::StreamExt;
use futures::future::join_all;
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::Mutex as OneAtATime;

const BUCKET: BucketId = BucketId([0xb0; 16]);
const WRITERS: usize = 8;
/// One key for all, for the catalog does not keep it here.
const DATA_KEY: [u8; 32] = [9; 32];
const BLOB_BYTES: usize = 17_000;

static ONE: OneAtATime<()> = OneAtATime::const_new(());

/// What each name may hold: the version last acknowledged, and those in doubt since.
type Known = HashMap<String, (Option<u8>, Vec<u8>)>;

struct Bucket {
    dir: TempDir,
    key: SecretKey,
    catalog: Catalog,
    blobs: BlobStore,
    known: Mutex<Known>,
}

impl Bucket {
    async fn new() -> Self {
        let dir = folder();
        calls::watch(dir.path());
        let key = SecretKey::generate();
        let catalog = Catalog::create(dir.path(), &key, "b").await.unwrap();
        // What was renamed is known under its new name from here on.
        let again = Catalog::open(dir.path(), &key);
        catalog.close().await;
        let blobs = BlobStore::new(dir.path(), BUCKET);
        Self {
            catalog: again.await.unwrap(),
            dir,
            key,
            blobs,
            known: Mutex::default(),
        }
    }

    /// Puts an object in a blob, as the vault does. Whether it was acknowledged.
    async fn put(&self, name: &str, version: u8, precondition: Precondition) -> bool {
        let mut writer = self.blobs.create(&SecretKey::from_bytes(DATA_KEY)).unwrap();
        writer
            .write(Bytes::from(vec![version; BLOB_BYTES]))
            .await
            .unwrap();
        let blob = writer.finish().await.unwrap();
        self.known
            .lock()
            .entry(name.to_owned())
            .or_default()
            .1
            .push(version);
        let object = in_blob(name, blob.id(), blob.plaintext_bytes());
        match self.catalog.put(object, precondition).await {
            Ok(outcome) => {
                blob.keep();
                self.known
                    .lock()
                    .insert(name.to_owned(), (Some(version), Vec::new()));
                self.blobs.remove(outcome.replaced).await;
                true
            }
            Err(StoreError::Full | StoreError::PreconditionFailed) => {
                self.known
                    .lock()
                    .get_mut(name)
                    .unwrap()
                    .1
                    .retain(|other| *other != version);
                false
            }
            Err(_) => {
                blob.keep_in_doubt();
                false
            }
        }
    }

    /// All that was acknowledged is there after a kill, and after a power cut; sweeps included.
    async fn assert_nothing_is_lost(&self, told: &str) {
        for is_power_cut in [false, true] {
            let copy = folder();
            calls::copy(copy.path(), is_power_cut);
            let catalog = Catalog::open(copy.path(), &self.key).await.unwrap();
            let blobs = BlobStore::new(copy.path(), BUCKET);
            blobs.sweep(&catalog).await.unwrap();
            let known = self.known.lock().clone();
            for (name, (acknowledged, in_doubt)) in known {
                let found = read(&catalog, &blobs, &name).await;
                let told = format!("{told}, power cut: {is_power_cut}, {name}: {found:?}");
                match found {
                    found if found == acknowledged => {}
                    Some(version) => assert!(in_doubt.contains(&version), "{told}"),
                    None => panic!("lost: {told}"),
                }
            }
            catalog.check_structure().await.unwrap();
            catalog.close().await;
        }
    }
}

/// In memory where that can be had: the disk's failures are played.
fn folder() -> TempDir {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        tempfile::tempdir_in(shm).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

fn in_blob(name: &str, id: BlobId, plaintext_bytes: u64) -> NewObject {
    NewObject {
        name: ObjectName::new(name).unwrap(),
        etag: "etag".into(),
        modified_ms: 0,
        details: Details::default(),
        tags: Vec::new(),
        lock: Lock::default(),
        access: Default::default(),
        content: NewContent::Blob(BlobRef {
            id,
            plaintext_bytes,
            key_generation: 1,
            wrapped_key: [0; WRAPPED_KEY_BYTES].into(),
            checksum: None,
        }),
    }
}

/// Which version there is.
async fn read(catalog: &Catalog, blobs: &BlobStore, name: &str) -> Option<u8> {
    let all = |head: &ObjectHead| Ok::<_, StoreError>(0..head.size_bytes);
    let name = ObjectName::new(name).unwrap();
    let (head, _, content) = catalog
        .read(&name, Which::Current, all)
        .await
        .unwrap()
        .ok()?
        .unwrap();
    let Content::Blobs { blobs: refs, .. } = content else {
        panic!("inline")
    };
    let key = SecretKey::from_bytes(DATA_KEY);
    let opened = blobs.open(refs[0].id, &key, head.size_bytes).await;
    let mut reader = opened.unwrap_or_else(|error| panic!("a row without its blob: {error}"));
    let first = reader.next().await.unwrap().unwrap();
    Some(first[0])
}

/// A sync of the log fails once, or several times in a row, under eight writers of new and of old
/// names; then the disk works again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_acknowledged_is_lost_when_syncs_of_the_log_fail() {
    let _one = ONE.lock().await;
    for failing in [1, 2, 3, 6] {
        for precondition in [Precondition::None, Precondition::Absent] {
            let bucket = Arc::new(Bucket::new().await);
            let log = bucket.dir.path().join("catalog.db-wal");
            let first = inode(&log);
            let writers = (0..WRITERS).map(|writer| {
                let (bucket, precondition) = (bucket.clone(), precondition.clone());
                tokio::spawn(async move {
                    for number in 0..10 {
                        if number == 4 && writer == 0 {
                            calls::disk(|disk| disk.failing_syncs = failing);
                        }
                        let name = match precondition {
                            Precondition::None => format!("{writer}-{}", number % 3),
                            _ => format!("{writer}-{number}"),
                        };
                        bucket.put(&name, number, precondition.clone()).await;
                    }
                })
            });
            for writer in join_all(writers).await {
                writer.unwrap();
            }
            let told = format!("{failing} syncs failed, {precondition:?}");
            assert!(calls::disk(|disk| disk.refused_count) > 0, "{told}");
            assert_ne!(first, inode(&log), "written over where it was: {told}");
            bucket.assert_nothing_is_lost(&told).await;
            calls::disk(|disk| disk.failing_syncs = 0);
            assert!(bucket.put("after", 1, Precondition::None).await, "{told}");
            bucket.assert_nothing_is_lost(&told).await;
        }
    }
}

/// Who asks how far a catalog has come hears of all that readers see, or that it is not known.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_in_doubt_that_shows_is_counted() {
    let _one = ONE.lock().await;
    for failing in [1, 2, 3, 6] {
        let bucket = Bucket::new().await;
        let catalog = &bucket.catalog;
        assert!(bucket.put("a", 1, Precondition::None).await);
        calls::disk(|disk| disk.failing_syncs = failing);
        bucket.put("a", 2, Precondition::None).await;
        if let Ok(shown) = catalog.commit_count().await {
            let counted = catalog.last_commit();
            let told = format!("{failing} syncs failed: {counted} of {shown}");
            assert!(catalog.is_committing() || counted >= shown, "{told}");
        }
        calls::disk(|disk| disk.failing_syncs = 0);
        assert!(bucket.put("b", 1, Precondition::None).await);
        assert!(!catalog.is_committing());
        let shown = catalog.commit_count().await.unwrap();
        assert_eq!(catalog.last_commit(), shown, "{failing} syncs failed");
    }
}

/// The log is made durable, and the database can't be opened then: readers see the commit that was
/// in doubt, and it is not counted yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_shows_is_in_doubt_until_it_is_counted() {
    let _one = ONE.lock().await;
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    assert!(bucket.put("a", 1, Precondition::None).await);
    calls::disk(|disk| {
        disk.failing_syncs = 1;
        // That of the log's new name succeeds, and none of those that follow.
        disk.passing_folder_syncs = 1;
        disk.failing_folder_syncs = u32::MAX;
    });
    assert!(!bucket.put("a", 2, Precondition::None).await);
    let (shown, counted) = (catalog.commit_count().await.unwrap(), catalog.last_commit());
    assert!(
        counted < shown,
        "it is the case that is meant: {counted} of {shown}"
    );
    assert!(catalog.is_committing());
    calls::disk(|disk| disk.failing_folder_syncs = 0);
    assert!(bucket.put("b", 1, Precondition::None).await);
    assert!(!catalog.is_committing());
    assert_eq!(catalog.last_commit(), catalog.commit_count().await.unwrap());
    bucket.assert_nothing_is_lost("not counted at once").await;
}

/// A start on a full disk, after a kill.
#[tokio::test(flavor = "multi_thread")]
async fn a_left_log_waits_for_room_and_is_never_written_over() {
    let _one = ONE.lock().await;
    let bucket = Bucket::new().await;
    assert!(bucket.put("a", 1, Precondition::None).await);
    let left = folder();
    calls::copy(left.path(), false);
    calls::watch(left.path());
    calls::IS_COPY_FULL.store(true, Ordering::SeqCst);
    let log = left.path().join("catalog.db-wal");
    let before = (inode(&log), std::fs::read(&log).unwrap());
    for _ in 0..2 {
        let refused = Catalog::open(left.path(), &bucket.key).await.err().unwrap();
        let StoreError::NoRoomForLog { needed_bytes } = refused else {
            panic!("{refused}")
        };
        assert_eq!(needed_bytes as usize, before.1.len());
        assert_eq!(before, (inode(&log), std::fs::read(&log).unwrap()));
        assert!(!left.path().join("catalog.db-wal.new").exists());
        assert!(calls::disk(|disk| !disk.has_written(&log)));
    }
    calls::IS_COPY_FULL.store(false, Ordering::SeqCst);
    let catalog = Catalog::open(left.path(), &bucket.key).await.unwrap();
    assert!(
        catalog
            .head(&ObjectName::new("a").unwrap(), Which::Current)
            .await
            .unwrap()
            .is_ok()
    );
    catalog.close().await;
}

/// SQLite goes on when the sync of the folder fails in which it has made a log.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_name_is_not_durable_takes_no_commit() {
    let _one = ONE.lock().await;
    for failing in 1..4 {
        let mut bucket = Bucket::new().await;
        bucket.catalog.close().await;
        let log = bucket.dir.path().join("catalog.db-wal");
        assert!(!log.exists());
        calls::disk(|disk| disk.failing_folder_syncs = failing);
        for _ in 0..10 {
            if let Ok(opened) = Catalog::open(bucket.dir.path(), &bucket.key).await {
                bucket.catalog = opened;
                break;
            }
        }
        if bucket.put("a", 1, Precondition::None).await {
            assert!(calls::disk(|disk| disk.synced_names.contains(&log)));
        }
        assert_eq!(calls::disk(|disk| disk.refused_count), failing);
        assert!(bucket.put("b", 1, Precondition::None).await);
        bucket.assert_nothing_is_lost("names").await;
    }
}

/// A bucket with an object, of which it is in doubt whether it keeps versions, and stays so.
async fn versions_kept_in_doubt() -> Bucket {
    let bucket = Bucket::new().await;
    assert!(bucket.put("a", 1, Precondition::None).await);
    calls::disk(|disk| {
        disk.failing_syncs = 1;
        disk.failing_folder_syncs = u32::MAX;
    });
    let set = bucket.catalog.set_versioning(Versioning::Enabled).await;
    assert!(matches!(set, Err(StoreError::InDoubt)));
    bucket
}

/// A setting that may have been changed is neither what it was nor what it was to be.
#[tokio::test(flavor = "multi_thread")]
async fn whether_versions_are_kept_is_not_told_before_that_is_settled() {
    let _one = ONE.lock().await;
    let bucket = versions_kept_in_doubt().await;
    let catalog = &bucket.catalog;
    for _ in 0..2 {
        let told = catalog.versioning_setting().await;
        assert!(matches!(told, Err(StoreError::InDoubt)), "{told:?}");
        let told = catalog.versioning().await;
        assert!(matches!(told, Err(StoreError::InDoubt)), "{told:?}");
    }
    calls::disk(|disk| disk.failing_folder_syncs = 0);
    let told = catalog.versioning().await.unwrap();
    let left = folder();
    calls::copy(left.path(), true);
    let again = Catalog::open(left.path(), &bucket.key).await.unwrap();
    assert_eq!(again.versioning().await.unwrap(), told);
    again.close().await;
    assert!(bucket.put("b", 1, Precondition::None).await);
    bucket.assert_nothing_is_lost("a setting in doubt").await;
}

/// What was not known to be set is looked at by each write, so that no version is overwritten.
#[tokio::test(flavor = "multi_thread")]
async fn writes_keep_versions_once_a_setting_in_doubt_stands() {
    let _one = ONE.lock().await;
    let bucket = versions_kept_in_doubt().await;
    let catalog = &bucket.catalog;
    calls::disk(|disk| disk.failing_folder_syncs = 0);
    // Not told by a reading before: the writes settle it themselves.
    for content in 2..4 {
        assert!(bucket.put("a", content, Precondition::None).await);
    }
    let stands = catalog.versioning().await.unwrap();
    assert_eq!(stands, Versioning::Enabled);
    let query = VersionsQuery {
        limit: 10,
        ..VersionsQuery::default()
    };
    assert_eq!(catalog.versions(query).await.unwrap().versions.len(), 3);
}
