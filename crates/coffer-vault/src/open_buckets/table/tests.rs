//! Buckets that are being opened when their keys are about to be destroyed.

use coffer_keys::FileRoot;
use coffer_seal::BucketId;
use coffer_store::Catalog;

use super::*;
use crate::cutoff::ConnectionCutoff;

const ID: BucketId = BucketId([1; 16]);

/// One bucket that was not opened yet.
struct Scene {
    folder: Folder,
    keystore: Keystore,
    buckets: OpenBuckets,
    _data: tempfile::TempDir,
}

impl Scene {
    async fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let folder = Folder::open(data.path()).unwrap();
        let root = FileRoot::new(data.path().join("root.key"));
        let keystore = Keystore::create(&data.path().join("keystore"), Box::new(root)).unwrap();
        let level = keystore.levels()[0].id;
        let key = keystore.add_bucket(ID, level).unwrap();
        let dir = folder.bucket(ID);
        std::fs::create_dir_all(&dir).unwrap();
        let catalog = Catalog::create(&dir, &key.catalog_key(), "bucket").await;
        catalog.unwrap().close().await;
        Self {
            folder,
            keystore,
            buckets: OpenBuckets::new(3, Arc::default(), Arc::default()),
            _data: data,
        }
    }

    /// Makes another one.
    async fn make(&self, number: u8) {
        let id = BucketId([number; 16]);
        let level = self.keystore.levels()[0].id;
        let key = self.keystore.add_bucket(id, level).unwrap();
        let dir = self.folder.bucket(id);
        std::fs::create_dir_all(&dir).unwrap();
        let catalog = Catalog::create(&dir, &key.catalog_key(), "bucket").await;
        let blobs = BlobStore::new(&dir, id);
        let bucket = OpenBucket::new(id, catalog.unwrap(), blobs, key);
        self.buckets.insert(bucket).await;
    }

    async fn open(&self) -> Result<UsedBucket> {
        let opened = self.buckets.open(&self.folder, &self.keystore, ID);
        opened.await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_opened_is_waited_for_and_cut() {
    let scene = Arc::new(Scene::new().await);
    // A request whose opening takes long.
    let (slot, _ours, _) = scene.buckets.slot(ID).unwrap();
    let (go_on, stopped) = tokio::sync::oneshot::channel::<()>();
    let slow = {
        let (scene, slot) = (scene.clone(), slot.clone());
        let opened = async move {
            let key = scene.keystore.bucket_key(ID).unwrap();
            let dir = scene.folder.bucket(ID);
            let catalog = Catalog::open(&dir, &key.catalog_key()).await.unwrap();
            stopped.await.unwrap();
            let blobs = BlobStore::new(&dir, ID);
            Arc::new(OpenBucket::new(ID, catalog, blobs, key))
        };
        tokio::spawn(async move { drop(slot.bucket.get_or_init(|| opened).await.clone()) })
    };
    tokio::task::yield_now().await;
    let in_line = tokio::spawn({
        let scene = scene.clone();
        async move { scene.open().await.err() }
    });
    // Ours, and theirs.
    while slot.users.count() < 2 {
        tokio::task::yield_now().await;
    }

    let mut barred = scene.buckets.bar(&[ID]);
    assert!(barred.open.is_empty());
    let ended = tokio::spawn(barred.opening.remove(0).end());
    let refused = scene.open().await.err();
    assert!(matches!(refused, Some(VaultError::NoSuchBucket)));
    assert!(!ended.is_finished(), "it is waited for");
    go_on.send(()).unwrap();
    let bucket = ended.await.unwrap().expect("it was opened");
    assert!(bucket.is_cut());
    assert!(bucket.catalog.totals().await.is_err(), "the key is let go");
    let refused = in_line.await.unwrap();
    assert!(matches!(refused, Some(VaultError::NoSuchBucket)));
    slow.await.unwrap();

    // An erase that came to nothing.
    scene.buckets.forget(ID);
    scene.buckets.unbar(&[ID]);
    assert!(!scene.open().await.unwrap().is_cut());
}

/// As many as are made, no more stay open than may; what is in use stays.
#[tokio::test(flavor = "multi_thread")]
async fn buckets_that_were_just_made_are_closed_for_others_too() {
    let scene = Scene::new().await;
    let used = scene.open().await.unwrap();
    for number in 2..10 {
        scene.make(number).await;
        assert!(scene.buckets.count() <= 3);
    }
    assert!(scene.buckets.get(ID).is_some() && used.catalog.totals().await.is_ok());
    assert!(scene.buckets.get(BucketId([9; 16])).is_some());
    assert!(scene.buckets.get(BucketId([2; 16])).is_none());
}

/// A client that leaves while others are closed for what it asked for.
#[tokio::test(flavor = "multi_thread")]
async fn how_far_a_bucket_came_is_known_though_its_closing_is_broken_off() {
    let scene = Scene::new().await;
    let used = scene.open().await.unwrap();
    used.catalog.raise_commit_count(9).await.unwrap();
    let last = used.catalog.last_commit();
    drop(used);
    for number in 2..4 {
        scene.make(number).await;
    }
    let commits = &scene.buckets.commits;
    assert!(commits.of_met(ID).unwrap() < last);
    drop(scene.buckets.slot(BucketId([4; 16])).unwrap());
    assert!(scene.buckets.get(ID).is_none());
    assert_eq!(commits.of_met(ID), Some(last));
}

/// Buffers of a connection may hold what it read before the bucket was closed to make room.
#[tokio::test(flavor = "multi_thread")]
async fn connections_of_a_bucket_that_was_closed_are_cut_with_it() {
    let scene = Scene::new().await;
    let [before, after, ended] = [(); 3].map(|()| ConnectionCutoff::default());
    let granted = |one: &ConnectionCutoff| {
        one.scope(async { scene.open().await.unwrap().note_caller().unwrap() })
    };
    granted(&before).await;
    granted(&ended).await;
    drop(ended);
    for number in 2..5 {
        scene.make(number).await;
    }
    assert!(scene.buckets.get(ID).is_none(), "it is closed");
    let barred = scene.buckets.bar(&[BucketId([2; 16])]);
    assert!(barred.connections.iter().all(|noted| noted.count() == 0));
    assert!(!before.is_cut(), "another one was erased");
    granted(&after).await;
    for number in 5..8 {
        scene.make(number).await;
    }
    let barred = scene.buckets.bar(&[ID]);
    assert!(barred.open.is_empty() && before.is_cut() && after.is_cut());
    let count = |all: &Vec<Arc<Connections>>| all.iter().map(|noted| noted.count()).sum::<usize>();
    assert_eq!(count(&barred.connections), 2);
    drop((before, after));
    assert_eq!(count(&barred.connections), 0);
}
