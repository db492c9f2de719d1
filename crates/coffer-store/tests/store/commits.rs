//! Group commits: each write stands or falls alone.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_store::StoreError;
use coffer_store::limits::{BATCH_MAX, CHECKPOINT_FORCED_PAGES, CHECKPOINT_PAGES, PAGE_BYTES};
use coffer_store::record::{ListQuery, Precondition};
use coffer_store::version::Which;
use futures::future::join_all;

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline, name, noise};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_create_one_name_one_succeeds() {
    let mut bucket = Bucket::in_memory().await;
    let puts = (0..200).map(|number| {
        let object = inline("contended", format!("{number}").as_bytes());
        let catalog = bucket.catalog.clone();
        tokio::spawn(async move { catalog.put(object, Precondition::Absent).await })
    });
    let outcomes = join_all(puts.collect::<Vec<_>>()).await;
    let winners: Vec<_> = (0..200)
        .filter(|number| outcomes[*number].as_ref().unwrap().is_ok())
        .collect();
    assert_eq!(winners.len(), 1);
    bucket.reopen().await;
    assert_eq!(
        bucket.inline_data("contended").await.unwrap(),
        format!("{}", winners[0])
    );
}

#[tokio::test]
async fn a_refused_write_does_not_touch_its_neighbours() {
    let mut bucket = Bucket::in_memory().await;
    let puts = (0..3 * BATCH_MAX).map(|number| {
        let precondition = if number % 3 == 0 {
            Precondition::Present
        } else {
            Precondition::None
        };
        bucket.catalog.put(
            inline(&format!("{number:04}"), &noise(number)),
            precondition,
        )
    });
    for (number, outcome) in join_all(puts).await.into_iter().enumerate() {
        assert_eq!(outcome.is_ok(), number % 3 != 0);
    }
    bucket.reopen().await;
    let page = bucket
        .catalog
        .list(ListQuery {
            limit: 1000,
            ..ListQuery::default()
        })
        .await
        .unwrap();
    assert_eq!(page.objects.len(), 2 * BATCH_MAX);
}

/// Two rows for one blob break a rule of the tables: such a write fails in the middle, after it has
/// changed something, and takes its whole transaction with it.
#[tokio::test]
async fn a_write_that_breaks_its_transaction_fails_alone() {
    let mut bucket = Bucket::in_memory().await;
    let shared = blob_ref(5);
    bucket
        .catalog
        .put(in_blob("first", shared.clone()), Precondition::None)
        .await
        .unwrap();
    let puts = (0..40).map(|number| {
        let object = if number == 20 {
            in_blob("second", shared.clone())
        } else {
            inline(&format!("{number:02}"), b"neighbour")
        };
        bucket.catalog.put(object, Precondition::None)
    });
    for (number, outcome) in join_all(puts).await.into_iter().enumerate() {
        match outcome {
            Ok(_) => assert_ne!(number, 20),
            Err(error) => {
                assert_eq!(number, 20);
                assert!(matches!(error, StoreError::Database { .. }), "{error}");
            }
        }
    }
    bucket.reopen().await;
    assert!(
        bucket
            .catalog
            .head(&name("second"), Which::Current)
            .await
            .unwrap()
            .is_err()
    );
    assert!(
        bucket
            .catalog
            .head(&name("first"), Which::Current)
            .await
            .unwrap()
            .is_ok()
    );
    let page = bucket
        .catalog
        .list(ListQuery {
            limit: 1000,
            ..ListQuery::default()
        })
        .await
        .unwrap();
    assert_eq!(page.objects.len(), 40);
    bucket.catalog.check_integrity().await.unwrap();
    bucket.catalog.check_structure().await.unwrap();
}

#[tokio::test]
async fn what_was_queued_when_closing_began_is_committed_or_refused() {
    let mut bucket = Bucket::in_memory().await;
    let puts: Vec<_> = (0..100)
        .map(|number| {
            let catalog = bucket.catalog.clone();
            let object = inline(&format!("{number:03}"), b"x");
            tokio::spawn(async move { catalog.put(object, Precondition::None).await.is_ok() })
        })
        .collect();
    tokio::task::yield_now().await;
    bucket.reopen().await;
    for (number, put) in puts.into_iter().enumerate() {
        let is_acknowledged = put.await.unwrap();
        let is_there = bucket
            .catalog
            .head(&name(&format!("{number:03}")), Which::Current)
            .await
            .unwrap()
            .is_ok();
        assert_eq!(is_acknowledged, is_there);
    }
}

#[tokio::test]
async fn every_commit_that_changes_something_is_counted() {
    let mut bucket = Bucket::in_memory().await;
    let count = async |bucket: &Bucket| bucket.catalog.commit_count().await.unwrap();
    assert_eq!(count(&bucket).await, 0);
    bucket.put("a", b"some").await;
    bucket.put("a", b"same").await;
    let (catalog, a, none) = (bucket.catalog.clone(), name("a"), Precondition::None);
    catalog
        .set_object_tags(&a, Which::Current, Vec::new())
        .await
        .unwrap()
        .unwrap();
    catalog.delete(gone(&a, none.clone())).await.unwrap();
    assert_eq!(count(&bucket).await, 4);
    catalog.delete(gone(&a, none)).await.unwrap();
    let refused = catalog.put(inline("a", b""), Precondition::Present).await;
    assert!(matches!(refused, Err(StoreError::NothingToMatch)));
    assert_eq!(count(&bucket).await, 4, "nothing was changed");
    bucket.reopen().await;
    assert_eq!(count(&bucket).await, 4);
}

#[tokio::test]
async fn closing_leaves_no_log_behind() {
    let bucket = Bucket::new().await;
    bucket.put("a", &noise(10_000)).await;
    bucket
        .catalog
        .head(&name("a"), Which::Current)
        .await
        .unwrap()
        .unwrap();
    bucket.catalog.close().await;
    let files = std::fs::read_dir(bucket.dir.path()).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["catalog.db", "catalog.newest"]);
}

/// Readers that overlap each other all the time, among them long ones, must not keep the log from
/// ever beginning anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_stays_bounded_under_readers_that_never_pause() {
    let bucket = Arc::new(Bucket::in_memory().await);
    for number in 0..20 {
        bucket.put(&format!("{number:02}"), &noise(16_000)).await;
    }
    let readers: Vec<_> = (0..4)
        .map(|number| {
            let bucket = bucket.clone();
            tokio::spawn(async move {
                loop {
                    if number % 2 == 0 {
                        let query = ListQuery {
                            limit: 1000,
                            ..ListQuery::default()
                        };
                        bucket.catalog.list(query).await.unwrap();
                    } else {
                        bucket.inline_data("07").await.unwrap();
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();
    let mut longest = 0;
    let log = bucket.dir.path().join("catalog.db-wal");
    let bound = u64::from(CHECKPOINT_FORCED_PAGES + 1024) * u64::from(PAGE_BYTES + 24);
    let began = Instant::now();
    // Twice what the bound allows, if nothing were ever taken back.
    let mut written_bytes = 0;
    while written_bytes < 2 * bound && began.elapsed() < Duration::from_secs(15) {
        let puts = (0..BATCH_MAX).map(|number| {
            let object = inline(&format!("{:02}", number % 20), &noise(16_000 + number));
            bucket.catalog.put(object, Precondition::None)
        });
        join_all(puts)
            .await
            .into_iter()
            .for_each(|put| drop(put.unwrap()));
        written_bytes += BATCH_MAX as u64 * 20_000;
        longest = longest.max(length_of(&log));
    }
    readers.iter().for_each(|reader| reader.abort());
    assert!(longest < bound, "the log grew to {longest} bytes");
}

/// An idle reader keeps its transaction for the next read, but not beyond the next commit.
#[tokio::test]
async fn a_reader_that_has_read_once_neither_reads_the_past_nor_holds_the_log() {
    let bucket = Bucket::in_memory().await;
    let mut longest = 0;
    let log = bucket.dir.path().join("catalog.db-wal");
    let page_bytes = u64::from(PAGE_BYTES + 24);
    for number in 0..2 * CHECKPOINT_PAGES as usize {
        let data = noise(4_000 + number % 7);
        bucket.put("name", &data).await;
        if number % 1_000 == 0 {
            assert_eq!(bucket.inline_data("name").await.unwrap(), data);
            assert_eq!(bucket.inline_data("name").await.unwrap(), data);
        }
        longest = longest.max(length_of(&log));
    }
    let bound = u64::from(2 * CHECKPOINT_PAGES) * page_bytes;
    assert!(longest < bound, "the log grew to {longest} bytes");
}

fn length_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
