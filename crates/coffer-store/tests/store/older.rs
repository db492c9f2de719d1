//! An older catalog, put back.

use std::fs;

use coffer_seal::BlobId;
use coffer_store::record::Precondition;
use coffer_store::{BlobStore, StoreError, Swept};

use crate::fixture::{BUCKET_ID, Bucket, blob_ref_to, in_blob, noise};

async fn put(bucket: &Bucket, name: &str) -> BlobId {
    let (id, _) = bucket.write_blob(&noise(200)).await;
    let object = in_blob(name, blob_ref_to(id, 200));
    let put = bucket.catalog.put(object, Precondition::None).await;
    put.unwrap();
    id
}

/// A sweep as after a start.
async fn sweep(bucket: &Bucket) -> Swept {
    let blobs = BlobStore::new(bucket.dir.path(), BUCKET_ID);
    blobs.sweep(&bucket.catalog).await.unwrap()
}

#[tokio::test]
async fn an_older_catalog_put_back_never_has_newer_blobs_swept() {
    let mut bucket = Bucket::new().await;
    put(&bucket, "old").await;
    bucket.catalog.close().await;
    let path = bucket.dir.path().join("catalog.db");
    let older = fs::read(&path).unwrap();
    bucket.reopen().await;
    let mut newer = Vec::new();
    for number in 0..5 {
        newer.push(put(&bucket, &format!("new {number}")).await);
    }
    assert!(!bucket.catalog.is_in_doubt());
    bucket.catalog.close().await;
    fs::write(&path, &older).unwrap();

    bucket.reopen().await;
    assert!(bucket.catalog.is_in_doubt());
    assert_eq!(sweep(&bucket).await.kept_files, 5);
    // Also when it has as many commits as the newer one had, and more.
    for number in 0..9 {
        put(&bucket, &format!("later {number}")).await;
    }
    bucket.reopen().await;
    assert!(bucket.catalog.is_in_doubt());
    let kept = Swept {
        kept_files: 5,
        ..Swept::default()
    };
    assert_eq!(sweep(&bucket).await, kept);
    assert!(newer.iter().all(|id| bucket.blobs.path(*id).exists()));

    // Until the operator says that they may go.
    fs::remove_file(bucket.dir.path().join("catalog.in-doubt")).unwrap();
    bucket.reopen().await;
    assert!(!bucket.catalog.is_in_doubt());
    assert_eq!(sweep(&bucket).await.files, 5);
}

/// The note is made without waiting for the disk: it may be older than the catalog, or lost.
#[tokio::test]
async fn a_note_that_lags_behind_is_no_doubt() {
    let mut bucket = Bucket::new().await;
    let path = bucket.dir.path().join("catalog.newest");
    let before = fs::read(&path).unwrap();
    put(&bucket, "a").await;
    assert_ne!(fs::read(&path).unwrap(), before);
    for left in [&before[..], b"", b"garbled in some way"] {
        bucket.catalog.close().await;
        fs::write(&path, left).unwrap();
        bucket.reopen().await;
        assert!(!bucket.catalog.is_in_doubt());
    }
    bucket.catalog.close().await;
    fs::remove_file(&path).unwrap();
    bucket.reopen().await;
    assert!(!bucket.catalog.is_in_doubt());
}

/// Another file in the place of one that is open: nothing more goes into it, and what was
/// acknowledged is in the one that was there.
#[tokio::test]
async fn a_catalog_that_is_replaced_while_it_is_open_is_used_no_more() {
    let mut bucket = Bucket::new().await;
    put(&bucket, "old").await;
    bucket.catalog.close().await;
    let path = bucket.dir.path().join("catalog.db");
    let (older, aside) = (fs::read(&path).unwrap(), path.with_extension("aside"));
    bucket.reopen().await;
    put(&bucket, "new").await;
    assert_eq!(bucket.catalog.look_at_file().await.unwrap(), Some(2));
    assert_eq!(bucket.catalog.look_at_file().await.unwrap(), None);

    fs::rename(&path, &aside).unwrap();
    fs::write(&path, &older).unwrap();
    let (id, _) = bucket.write_blob(&noise(200)).await;
    let object = in_blob("lost", blob_ref_to(id, 200));
    let refused = bucket.catalog.put(object, Precondition::None).await;
    assert!(matches!(refused, Err(StoreError::Replaced)), "{refused:?}");
    let read = bucket.catalog.totals().await;
    assert!(matches!(read, Err(StoreError::Replaced)), "{read:?}");
    bucket.catalog.close().await;
    assert_eq!(fs::read(&path).unwrap(), older, "nothing was written to it");
    assert!(bucket.dir.path().join("catalog.in-doubt").exists());

    fs::rename(&aside, &path).unwrap();
    bucket.reopen().await;
    assert_eq!(bucket.catalog.totals().await.unwrap().objects, 2);
}

/// The same where nothing is written meanwhile, and it is looked for.
#[tokio::test]
async fn a_catalog_that_is_replaced_is_found_by_a_look() {
    let bucket = Bucket::new().await;
    put(&bucket, "old").await;
    let path = bucket.dir.path().join("catalog.db");
    fs::rename(&path, path.with_extension("aside")).unwrap();
    let looked = bucket.catalog.look_at_file().await;
    assert!(matches!(looked, Err(StoreError::Replaced)), "{looked:?}");
    assert!(bucket.catalog.totals().await.is_err());
}
