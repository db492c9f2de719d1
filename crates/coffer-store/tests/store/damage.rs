//! Catalogs that were altered, that are not ours, or that are too new.

use std::fs;
use std::path::Path;

use coffer_seal::{BucketId, SecretKey, random_bytes};
use coffer_store::limits::PAGE_BYTES;
use coffer_store::record::{Content, ListQuery, Precondition};
use coffer_store::{CATALOG, Catalog, Database, StoreError};
use futures::future::join_all;
use proptest::prelude::*;

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline, noise, read};

const OBJECTS: usize = 40;

fn data_of(number: usize) -> Vec<u8> {
    noise(number * 211)
}

/// A catalog with small objects and one in a blob, closed; and its file.
async fn closed_catalog() -> (Bucket, Vec<u8>) {
    let bucket = Bucket::in_memory().await;
    for number in 0..OBJECTS {
        bucket.put(&format!("{number:02}"), &data_of(number)).await;
    }
    let object = in_blob("blob", blob_ref(12_345));
    bucket
        .catalog
        .put(object, Precondition::None)
        .await
        .unwrap();
    bucket.catalog.close().await;
    let file = fs::read(bucket.dir.path().join("catalog.db")).unwrap();
    (bucket, file)
}

/// Opens the catalog and reads everything: all that is given out must be right. Returns whether
/// everything was.
async fn is_all_right(dir: &Path, key: &SecretKey) -> bool {
    let catalog = match Catalog::open(dir, key).await {
        Ok(catalog) => catalog,
        Err(StoreError::Foreign | StoreError::Damaged { .. }) => return false,
        Err(other) => panic!("not a clear error: {other:?}"),
    };
    let mut is_all_right = true;
    for number in 0..OBJECTS {
        match read(&catalog, &format!("{number:02}")).await {
            Ok(Some((head, Content::Inline(data)))) => {
                assert_eq!(head.size_bytes, data.len() as u64);
                assert!(data == data_of(number), "wrong data of {number}");
            }
            Err(StoreError::Damaged { .. }) => is_all_right = false,
            other => panic!("object {number}: {other:?}"),
        }
    }
    match catalog
        .list(ListQuery {
            limit: 1000,
            ..ListQuery::default()
        })
        .await
    {
        Ok(page) => assert_eq!(page.objects.len(), OBJECTS + 1),
        Err(StoreError::Damaged { .. }) => is_all_right = false,
        other => panic!("{other:?}"),
    }
    match catalog.check_integrity().await {
        Ok(()) => assert!(is_all_right, "the check missed what a read found"),
        Err(StoreError::Damaged { .. }) => is_all_right = false,
        other => panic!("{other:?}"),
    }
    catalog.close().await;
    is_all_right
}

#[tokio::test]
async fn a_flipped_bit_anywhere_in_a_catalog_is_found_and_never_wrong_data() {
    let (bucket, file) = closed_catalog().await;
    let path = bucket.dir.path().join("catalog.db");
    assert!(is_all_right(bucket.dir.path(), &bucket.key).await);
    let page = PAGE_BYTES as usize;
    // Of some pages the first and last byte, initialisation vector and authentication code, …
    let mut places = vec![0, 15, 16, 17, 18, 40, 99, 100];
    for start in (0..file.len()).step_by(page * 7) {
        places.extend([
            start,
            start + 20,
            start + page - 48,
            start + page - 32,
            start + page - 1,
        ]);
    }
    // … and anywhere.
    places.extend((0..40).map(|_| usize::from_le_bytes(random_bytes()) % file.len()));
    for at in places {
        let mut altered = file.clone();
        altered[at] ^= 1 << (at % 8);
        fs::write(&path, &altered).unwrap();
        assert!(
            !is_all_right(bucket.dir.path(), &bucket.key).await,
            "a flip at {at} was missed"
        );
    }
    fs::write(&path, &file).unwrap();
    assert!(is_all_right(bucket.dir.path(), &bucket.key).await);
}

/// Writes that meet a damaged page fail, and so does nothing else: not the writes beside them, and
/// not the next ones, though the connection that met it is of no use any more.
#[tokio::test]
async fn a_damaged_page_fails_the_writes_that_need_it_and_no_others() {
    let (mut bucket, file) = closed_catalog().await;
    let path = bucket.dir.path().join("catalog.db");
    let page = PAGE_BYTES as usize;
    let (mut refused, mut overwritten) = (0, 0);
    for start in (8 * page..file.len()).step_by(5 * page) {
        let mut altered = file.clone();
        altered[start + 1000] ^= 4;
        fs::write(&path, &altered).unwrap();
        bucket.catalog = Catalog::open(bucket.dir.path(), &bucket.key).await.unwrap();
        let puts = (0..OBJECTS).map(|number| {
            let object = inline(&format!("{number:02}"), b"overwritten");
            bucket.catalog.put(object, Precondition::Present)
        });
        for (number, put) in join_all(puts).await.into_iter().enumerate() {
            match put {
                Ok(_) => {
                    let read = read(&bucket.catalog, &format!("{number:02}")).await;
                    let content = Content::Inline("overwritten".into());
                    assert_eq!(read.unwrap().unwrap().1, content);
                    overwritten += 1;
                }
                Err(StoreError::Damaged { .. }) => refused += 1,
                Err(other) => panic!("{other:?}"),
            }
        }
        bucket.catalog.close().await;
    }
    assert!(
        refused > 0 && overwritten > 10 * refused,
        "{refused} {overwritten}"
    );
}

#[tokio::test]
async fn a_catalog_that_was_cut_off_is_an_error() {
    let (bucket, file) = closed_catalog().await;
    let path = bucket.dir.path().join("catalog.db");
    let page = PAGE_BYTES as usize;
    for length in [
        0,
        1,
        page - 1,
        page,
        file.len() / 2,
        file.len() - page,
        file.len() - 1,
    ] {
        fs::write(&path, &file[..length]).unwrap();
        assert!(
            !is_all_right(bucket.dir.path(), &bucket.key).await,
            "cut off at {length}"
        );
    }
}

/// A page of the same catalog in another's place, with its own valid seal.
#[tokio::test]
async fn pages_that_changed_places_are_found() {
    let (bucket, mut file) = closed_catalog().await;
    let page = PAGE_BYTES as usize;
    let (low, high) = file.split_at_mut(4 * page);
    low[3 * page..].swap_with_slice(&mut high[..page]);
    fs::write(bucket.dir.path().join("catalog.db"), &file).unwrap();
    assert!(!is_all_right(bucket.dir.path(), &bucket.key).await);
}

/// Pages are written by checkpoints while others verify them, and freed pages are among them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_among_writers_finds_nothing() {
    let bucket = std::sync::Arc::new(Bucket::in_memory().await);
    let writers: Vec<_> = (0..4)
        .map(|task| {
            let bucket = bucket.clone();
            tokio::spawn(async move {
                for round in 0..100usize {
                    let object = format!("{}", (task * 31 + round * 7) % 50);
                    if round % 4 == 3 {
                        let object = crate::fixture::name(&object);
                        bucket
                            .catalog
                            .delete(gone(&object, Precondition::None))
                            .await
                            .unwrap();
                    } else {
                        bucket.put(&object, &noise(round * 977 % 16_000)).await;
                    }
                }
            })
        })
        .collect();
    while !writers.iter().all(|writer| writer.is_finished()) {
        bucket.catalog.check_integrity().await.unwrap();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    bucket.catalog.check_structure().await.unwrap();
    bucket.catalog.close().await;
    let catalog = Catalog::open(bucket.dir.path(), &bucket.key).await.unwrap();
    catalog.check_integrity().await.unwrap();
    catalog.check_structure().await.unwrap();
}

#[tokio::test]
async fn damage_says_in_which_bucket() {
    let id = BucketId::random();
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join(id.to_string());
    let key = SecretKey::generate();
    let catalog = Catalog::create(&dir, &key, "b").await.unwrap();
    catalog
        .put(inline("a", &noise(10_000)), Precondition::None)
        .await
        .unwrap();
    catalog.close().await;
    let mut file = fs::read(dir.join("catalog.db")).unwrap();
    let last = file.len() - 1;
    file[last] ^= 1;
    fs::write(dir.join("catalog.db"), &file).unwrap();
    let catalog = Catalog::open(&dir, &key).await.unwrap();
    let error = catalog.check_integrity().await.unwrap_err();
    assert!(
        matches!(error, StoreError::Damaged { bucket, .. } if bucket == id),
        "{error}"
    );
    assert!(error.to_string().contains(&id.to_string()));
}

#[tokio::test]
async fn what_is_not_ours_or_too_new_is_refused_clearly() {
    let dir = tempfile::tempdir().unwrap();
    let key = SecretKey::generate();
    let open = async || Catalog::open(dir.path(), &key).await.err().unwrap();
    assert!(matches!(open().await, StoreError::Io { .. }));
    let path = dir.path().join("catalog.db");
    fs::write(&path, "a text file that somebody put here".repeat(1000)).unwrap();
    assert!(matches!(open().await, StoreError::Foreign));
    fs::write(&path, "").unwrap();
    assert!(matches!(open().await, StoreError::Foreign));
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "and left alone");
    fs::remove_file(&path).unwrap();

    let other = Database {
        application_id: 7,
        ..CATALOG
    };
    drop(other.create(&path, &key, "CREATE TABLE t(x);").unwrap());
    assert!(matches!(open().await, StoreError::Foreign));
    fs::remove_file(&path).unwrap();

    let newer = Database {
        format_version: CATALOG.format_version + 1,
        ..CATALOG
    };
    drop(newer.create(&path, &key, "CREATE TABLE t(x);").unwrap());
    let error = open().await;
    assert!(matches!(
        error,
        StoreError::NewerFormat { found: 6, known: 5 }
    ));
    assert!(error.to_string().contains("format 6"));
    fs::remove_file(&path).unwrap();

    Catalog::create(dir.path(), &key, "b")
        .await
        .unwrap()
        .close()
        .await;
    let again = Catalog::create(dir.path(), &key, "b").await;
    assert!(matches!(again, Err(StoreError::Exists)));
    let wrong = Catalog::open(dir.path(), &SecretKey::generate()).await;
    assert!(matches!(wrong, Err(StoreError::Foreign)));
    open_and_close(dir.path(), &key).await;
}

async fn open_and_close(dir: &Path, key: &SecretKey) {
    Catalog::open(dir, key).await.unwrap().close().await;
}

#[tokio::test]
async fn an_interrupted_creation_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let key = SecretKey::generate();
    fs::write(dir.path().join("catalog.unfinished"), noise(9000)).unwrap();
    fs::write(dir.path().join("catalog.unfinished-journal"), noise(900)).unwrap();
    let catalog = Catalog::create(dir.path(), &key, "b").await.unwrap();
    assert_eq!(catalog.bucket_name(), "b");
    catalog.close().await;
    assert!(!dir.path().join("catalog.unfinished").exists());
    open_and_close(dir.path(), &key).await;
}

#[tokio::test]
async fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let bucket = Bucket::new().await;
    bucket.put("a", b"x").await;
    for file in ["catalog.db", "catalog.db-wal"] {
        let mode = fs::metadata(bucket.dir.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}

/// A file of it would be mapped into memory, where a full disk ends the process.
#[tokio::test]
async fn the_index_of_the_log_is_in_no_file() {
    let bucket = Bucket::new().await;
    let index = bucket.dir.path().join("catalog.db-shm");
    bucket.catalog.close().await;
    fs::write(&index, b"of an earlier version").unwrap();
    let catalog = Catalog::open(bucket.dir.path(), &bucket.key).await.unwrap();
    assert!(!index.exists());
    for number in 0..20 {
        let put = inline(&format!("{number}"), &noise(16_000));
        catalog.put(put, Precondition::None).await.unwrap();
        assert!(!catalog.is_empty().await.unwrap());
    }
    let page = catalog.list(ListQuery {
        limit: 9,
        ..ListQuery::default()
    });
    assert_eq!(page.await.unwrap().objects.len(), 9);
    assert!(!index.exists());
    catalog.close().await;
    assert!(!index.exists());
}

#[tokio::test]
async fn nothing_readable_is_in_the_files_and_nothing_deleted_stays() {
    let bucket = Bucket::new().await;
    let secret = b"an unmistakable sentence that nobody else would write";
    bucket.put("unmistakable-name", &secret.repeat(50)).await;
    let readable = || {
        ["catalog.db", "catalog.db-wal"].iter().any(|file| {
            let bytes = fs::read(bucket.dir.path().join(file)).unwrap_or_default();
            let contains = |what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
            contains(&secret[..20]) || contains(b"unmistakable-name") || contains(b"SQLite format")
        })
    };
    assert!(!readable());
    bucket.catalog.close().await;
    assert!(!readable());
}

proptest! {
    #[test]
    fn columns_of_any_text_are_read_or_refused(text in ".{0,200}") {
        coffer_store::fuzzing::columns(text.as_bytes());
    }

    #[test]
    fn paths_of_any_text_are_read_or_refused(text in "[0-9a-fA-F./]{0,40}") {
        coffer_store::fuzzing::blob_path(text.as_bytes());
    }
}
