//! An older catalog, put back.

use std::fs;

use coffer_store::record::{Id, Precondition};
use coffer_store::{BlobStore, Swept};

use crate::fixture::{BUCKET_ID, Bucket, blob_ref_to, in_blob, noise};

async fn put(bucket: &Bucket, name: &str) -> Id {
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
