//! Sweeps: orphans go, everything else stays, whatever happens meanwhile.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_seal::{SecretKey, UploadId};
use coffer_store::lock::Lock;
use coffer_store::record::{Content, Details, Part, Precondition, Upload};
use coffer_store::{BlobStore, Swept};

use crate::fixture::{BUCKET_ID, Bucket, blob_ref_to, gone, in_blob, name, noise, read};

#[tokio::test]
async fn only_orphans_are_swept() {
    let bucket = Bucket::new().await;
    let (in_object, _) = bucket.write_blob(b"object").await;
    let object = in_blob("o", blob_ref_to(in_object, 6));
    bucket
        .catalog
        .put(object, Precondition::None)
        .await
        .unwrap();
    let (in_part, _) = bucket.write_blob(b"part").await;
    let upload = Upload {
        id: UploadId::random(),
        name: name("u"),
        started_ms: 0,
        details: Details::default(),
        checksum: None,
        tags: vec![],
        lock: Lock::default(),
        acl: None,
        made_by: None,
    };
    let blob = blob_ref_to(in_part, 4);
    let part = Part {
        number: 1,
        etag: "e".into(),
        modified_ms: 0,
        blob,
    };
    bucket.catalog.create_upload(upload.clone()).await.unwrap();
    bucket.catalog.put_part(upload.id, part).await.unwrap();
    let mut being_written = bucket.blobs.create(&SecretKey::generate()).unwrap();
    being_written
        .write(Bytes::from(noise(1 << 20)))
        .await
        .unwrap();
    let (orphan, _) = bucket.write_blob(&noise(5000)).await;
    let orphan_bytes = fs::metadata(bucket.blobs.path(orphan)).unwrap().len();
    let stranger = bucket.dir.path().join("blobs").join("ab");
    fs::create_dir_all(&stranger).unwrap();
    fs::write(stranger.join("README"), "not a blob").unwrap();

    let swept = bucket.blobs.sweep(&bucket.catalog).await.unwrap();
    assert_eq!(
        swept,
        Swept {
            files: 1,
            bytes: orphan_bytes,
            kept_files: 0,
        }
    );
    assert!(!bucket.blobs.path(orphan).exists());
    for id in [in_object, in_part, being_written.id()] {
        assert!(bucket.blobs.path(id).exists());
    }
    assert!(stranger.join("README").exists());
    // What a crash would leave of a write: after a new start it has no writer any more.
    let id = being_written.id();
    let after_start = BlobStore::new(bucket.dir.path(), BUCKET_ID);
    assert_eq!(after_start.sweep(&bucket.catalog).await.unwrap().files, 1);
    assert!(!after_start.path(id).exists());
    drop(being_written);
}

#[tokio::test]
async fn a_bucket_without_blobs_is_swept_too() {
    let bucket = Bucket::new().await;
    assert_eq!(
        bucket.blobs.sweep(&bucket.catalog).await.unwrap(),
        Swept::default()
    );
}

/// Puts, replaces, deletes and reads while sweeps go on: no reader misses a file, nothing that is
/// referred to goes, and in the end nothing else is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeps_among_writers_and_readers_take_nothing_they_need() {
    let bucket = Arc::new(Bucket::in_memory().await);
    let is_over = Arc::new(AtomicBool::new(false));
    let mut tasks = Vec::new();
    for task in 0..6usize {
        let (bucket, is_over) = (bucket.clone(), is_over.clone());
        tasks.push(tokio::spawn(async move {
            // One key for all, for the catalog does not keep it here.
            let key = SecretKey::from_bytes([9; 32]);
            for round in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let object = format!("o{}", (task + round) % 4);
                match round % 5 {
                    0 | 1 => put(&bucket, &object, &key).await,
                    2 => {
                        let object = name(&object);
                        let deleted = bucket.catalog.delete(gone(&object, Precondition::None));
                        bucket.blobs.remove(deleted.await.unwrap().freed).await;
                    }
                    _ => read_whole(&bucket, &object, &key).await,
                }
            }
        }));
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1500) {
        bucket.blobs.sweep(&bucket.catalog).await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    bucket.blobs.sweep(&bucket.catalog).await.unwrap();
    let mut left = Vec::new();
    for folder in fs::read_dir(bucket.dir.path().join("blobs")).unwrap() {
        left.extend(
            fs::read_dir(folder.unwrap().path())
                .unwrap()
                .map(|file| file.unwrap().path()),
        );
    }
    let mut needed: Vec<_> = bucket.catalog.blob_ids(None, 1000).await.unwrap();
    needed.retain(|id| bucket.blobs.path(*id).exists());
    assert_eq!(left.len(), needed.len());
    assert_eq!(needed, bucket.catalog.blob_ids(None, 1000).await.unwrap());
}

async fn put(bucket: &Bucket, object: &str, key: &SecretKey) {
    let data = noise(20_000);
    let mut writer = bucket.blobs.create(key).unwrap();
    writer.write(Bytes::from(data)).await.unwrap();
    let blob = writer.finish().await.unwrap();
    let object = in_blob(object, blob_ref_to(blob.id(), blob.plaintext_bytes()));
    let outcome = bucket
        .catalog
        .put(object, Precondition::None)
        .await
        .unwrap();
    blob.keep();
    bucket.blobs.remove(outcome.replaced).await;
}

async fn read_whole(bucket: &Bucket, object: &str, key: &SecretKey) {
    let _pin = bucket.blobs.pin();
    let Some((head, content)) = read(&bucket.catalog, object).await.unwrap() else {
        return;
    };
    let Content::Blobs { blobs, .. } = content else {
        panic!("inline")
    };
    tokio::task::yield_now().await;
    let (read, end) = bucket.read_blob(blobs[0].id, key, head.size_bytes).await;
    end.unwrap();
    assert!(read == noise(20_000));
}
