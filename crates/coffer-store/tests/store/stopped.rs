//! Catalogs that were closed, and those of a stopped server.

use std::collections::BTreeMap;

use coffer_store::record::{ListQuery, Precondition};
use coffer_store::version::Which;
use coffer_store::{Catalog, StoreError};

use crate::fixture::{Bucket, inline, name, noise, read};

#[tokio::test]
async fn a_closed_catalog_says_so_and_a_read_only_one_refuses_writes() {
    let bucket = Bucket::new().await;
    bucket.put("a", b"1").await;
    bucket.catalog.close().await;
    assert!(matches!(
        bucket.catalog.head(&name("a"), Which::Current).await,
        Err(StoreError::Closed)
    ));
    let put = bucket
        .catalog
        .put(inline("a", b"2"), Precondition::None)
        .await;
    assert!(matches!(put, Err(StoreError::Closed)));
    bucket.catalog.close().await;

    let reader = Catalog::open_read_only(bucket.dir.path(), &bucket.key)
        .await
        .unwrap();
    assert_eq!(reader.bucket_name(), "bucket");
    assert!(
        reader
            .head(&name("a"), Which::Current)
            .await
            .unwrap()
            .is_ok()
    );
    let put = reader.put(inline("a", b"2"), Precondition::None).await;
    assert!(matches!(put, Err(StoreError::ReadOnly)));
    reader.close().await;
}

/// The files of a folder and what is in them.
fn contents(dir: &std::path::Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap());
    files
        .map(|file| (file.file_name(), std::fs::read(file.path()).unwrap()))
        .collect()
}

#[tokio::test]
async fn reading_a_stopped_servers_catalog_changes_nothing() {
    let bucket = Bucket::new().await;
    bucket.put("copied", &noise(5000)).await;
    bucket.catalog.close().await;
    let dir = tempfile::Builder::new()
        .prefix("a %41 folder? #")
        .tempdir()
        .unwrap();
    let copy = |from: &std::path::Path| {
        for (file, bytes) in contents(from) {
            if file != "catalog.db-shm" {
                std::fs::write(dir.path().join(file), bytes).unwrap();
            }
        }
    };
    // Stopped well, and then killed, with a commit that is only in the log.
    copy(bucket.dir.path());
    let look = async |names: &[&str]| {
        let before = contents(dir.path());
        let catalog = Catalog::open_read_only(dir.path(), &bucket.key)
            .await
            .unwrap();
        for object in names {
            assert!(read(&catalog, object).await.unwrap().is_some(), "{object}");
        }
        assert_eq!(
            catalog
                .list(ListQuery {
                    limit: 9,
                    ..ListQuery::default()
                })
                .await
                .unwrap()
                .objects
                .len(),
            names.len()
        );
        assert!(contents(dir.path()) == before, "while it is open");
        catalog.close().await;
        assert!(contents(dir.path()) == before, "after it was closed");
    };
    look(&["copied"]).await;
    let running = Catalog::open(bucket.dir.path(), &bucket.key).await.unwrap();
    running
        .put(inline("logged", &noise(5000)), Precondition::None)
        .await
        .unwrap();
    copy(bucket.dir.path());
    assert!(dir.path().join("catalog.db-wal").exists());
    look(&["copied", "logged"]).await;
    running.close().await;
}
