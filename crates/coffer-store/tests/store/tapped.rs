//! A catalog that is copied page by page while it is written, without its key.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use coffer_store::limits::PAGE_BYTES;
use coffer_store::record::Precondition;
use coffer_store::version::Which;
use coffer_store::{CATALOG_FILE, Catalog, PageTap};

use crate::fixture::{Bucket, inline};
use crate::versions::data;

async fn put(catalog: &Catalog, object: &str, data: &[u8]) {
    let put = catalog.put(inline(object, data), Precondition::None).await;
    put.unwrap();
}

/// Takes what was changed, some pages at a time. How many there were, and whether they began anew.
async fn take(catalog: &Catalog, tap: &PageTap, copy: &mut Vec<u8>) -> (usize, bool) {
    let (mut count, mut is_base) = (0, false);
    loop {
        let taken = catalog.take_pages(1, 7).await.unwrap().unwrap();
        tap.arrived(1);
        is_base |= taken.is_base;
        count += taken.pages.len();
        let page_bytes = PAGE_BYTES as usize;
        copy.resize(taken.page_count as usize * page_bytes, 0);
        for (number, page) in taken.pages {
            let at = (number as usize - 1) * page_bytes;
            copy[at..at + page_bytes].copy_from_slice(&page);
        }
        if taken.is_last {
            return (count, is_base);
        }
        // Others write meanwhile.
        put(catalog, &format!("between-{count}"), b"between").await;
    }
}

/// Whether a copy opens, is whole, and has the object.
async fn has(copy: &[u8], bucket: &Bucket, object: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(CATALOG_FILE), copy).unwrap();
    let opened = Catalog::open_read_only(folder.path(), &bucket.key)
        .await
        .unwrap();
    opened.check_structure().await.unwrap();
    opened.check_integrity().await.unwrap();
    let has = data(&opened, object, Which::Current).await.is_ok();
    opened.close().await;
    has
}

#[tokio::test]
async fn pages_taken_while_others_write_make_a_whole_catalog() {
    let mut bucket = Bucket::new().await;
    for number in 0..60 {
        put(
            &bucket.catalog,
            &format!("before-{number}"),
            &[number; 3_000],
        )
        .await;
    }
    let tap = Arc::new(PageTap::default());
    tap.follow(1);
    bucket.catalog.tap_by(tap.clone()).await.unwrap();
    let mut copy = Vec::new();
    let (all, is_base) = take(&bucket.catalog, &tap, &mut copy).await;
    assert!(is_base && all > 40, "{all}");
    assert!(has(&copy, &bucket, "before-59").await);
    // A change is a few pages, also over a checkpoint, which has the log begin anew.
    put(&bucket.catalog, "one", b"1").await;
    bucket.catalog.check_integrity().await.unwrap();
    put(&bucket.catalog, "two", b"2").await;
    let (few, is_base) = take(&bucket.catalog, &tap, &mut copy).await;
    assert!(!is_base && few < all / 2, "{few} of {all}");
    assert!(has(&copy, &bucket, "one").await && has(&copy, &bucket, "two").await);
    // What did not arrive is taken again.
    put(&bucket.catalog, "lost", b"3").await;
    let lost = bucket.catalog.take_pages(1, 1_000).await.unwrap().unwrap();
    assert!(!lost.pages.is_empty());
    take(&bucket.catalog, &tap, &mut copy).await;
    assert!(has(&copy, &bucket, "lost").await);
    // Closed and opened again, it goes on.
    put(&bucket.catalog, "late", b"4").await;
    bucket.catalog.close().await;
    let folder: &Path = bucket.dir.path();
    bucket.catalog = Catalog::open(folder, &bucket.key).await.unwrap();
    bucket.catalog.tap_by(tap.clone()).await.unwrap();
    put(&bucket.catalog, "later", b"5").await;
    let (few, is_base) = take(&bucket.catalog, &tap, &mut copy).await;
    assert!(!is_base && few < all / 2, "{few} of {all}");
    assert!(has(&copy, &bucket, "late").await && has(&copy, &bucket, "later").await);
}

/// What a killed process left in the log was not seen as it came.
#[tokio::test]
async fn where_changes_may_have_been_missed_all_pages_are_taken() {
    let mut bucket = Bucket::new().await;
    put(&bucket.catalog, "a", b"1").await;
    let tap = Arc::new(PageTap::default());
    tap.follow(1);
    bucket.catalog.tap_by(tap.clone()).await.unwrap();
    let mut copy = Vec::new();
    take(&bucket.catalog, &tap, &mut copy).await;
    put(&bucket.catalog, "b", b"2").await;
    bucket.catalog.abandon().await;
    bucket.catalog = Catalog::open(bucket.dir.path(), &bucket.key).await.unwrap();
    bucket.catalog.tap_by(tap.clone()).await.unwrap();
    let (_, is_base) = take(&bucket.catalog, &tap, &mut copy).await;
    assert!(is_base);
    assert!(has(&copy, &bucket, "b").await);
}

#[tokio::test]
async fn one_who_follows_behind_takes_what_was_changed_since_the_other_took_all() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    put(catalog, "before", &[1; 3_000]).await;
    let tap = Arc::new(PageTap::default());
    tap.follow(1);
    tap.follow_behind(2, 1);
    catalog.tap_by(tap.clone()).await.unwrap();
    // Nothing, as long as the other has not all.
    assert!(catalog.take_pages(2, 1_000).await.unwrap().is_none());
    let mut copy = Vec::new();
    take(catalog, &tap, &mut copy).await;
    let reached = catalog.commit_count().await.unwrap();
    put(catalog, "one", b"1").await;
    let taken = catalog.take_pages(2, 1_000).await.unwrap().unwrap();
    assert_eq!(
        (taken.since, taken.commit_count),
        (Some(reached), reached + 1)
    );
    assert!(taken.is_last && !taken.is_base && !taken.pages.is_empty());
    // What did not arrive is taken again, with what came since, from where it began.
    tap.give_back(2);
    put(catalog, "two", b"2").await;
    let again = catalog.take_pages(2, 1_000).await.unwrap().unwrap();
    assert_eq!(
        (again.since, again.commit_count),
        (Some(reached), reached + 2)
    );
    tap.arrived(2);
    // The other still has all of it to take; and what it takes changes nothing here.
    let (count, is_base) = take(catalog, &tap, &mut copy).await;
    assert!(count >= again.pages.len() && !is_base);
    put(catalog, "three", b"3").await;
    let next = catalog.take_pages(2, 1_000).await.unwrap().unwrap();
    assert_eq!(next.since, Some(reached + 2));
    tap.start_over(2);
    assert!(catalog.take_pages(2, 1_000).await.unwrap().is_none());
}
