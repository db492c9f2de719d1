//! Versions by their age, and the end of those that are due.

use coffer_store::record::Precondition;
use coffer_store::version::{Versioning, Which};
use coffer_store::{AgedVersion, Catalog, Retired, Totals};

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline, name};
use crate::versions::{data, put, version_gone};

async fn all(catalog: &Catalog, page: usize) -> Vec<AgedVersion> {
    let mut found: Vec<AgedVersion> = Vec::new();
    loop {
        let after = found.last().map(|last| last.place.clone());
        let next = catalog.aged_after(after.as_ref(), page).await.unwrap();
        if next.is_empty() {
            return found;
        }
        found.extend(next);
    }
}

async fn delete(catalog: &Catalog, object: &str) {
    let deletion = gone(&name(object), Precondition::None);
    catalog.delete(deletion).await.unwrap();
}

async fn ends(catalog: &Catalog, due: Vec<AgedVersion>) -> Vec<Retired> {
    catalog.retire(due, 7_000, 7_000).await.unwrap().ends
}

#[tokio::test]
async fn a_walk_meets_each_version_once_with_what_is_around_it() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    put(catalog, "null", b"1").await;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    for round in 0..3 {
        put(catalog, "a", &[round]).await;
    }
    delete(catalog, "a").await;
    put(catalog, "a", b"new").await;
    delete(catalog, "marker").await;
    put(catalog, "b", b"b").await;
    delete(catalog, "b").await;
    let whole = all(catalog, 1000).await;
    for page in [1, 2, 3] {
        assert_eq!(all(catalog, page).await, whole, "in pages of {page}");
    }
    let told = |aged: &AgedVersion| {
        (
            aged.place.name.expose().to_owned(),
            aged.is_marker,
            aged.successor_ms.is_none(),
            aged.newer_noncurrent,
            aged.is_lone,
        )
    };
    let expected = [
        ("a", false, true, 0, false),
        ("null", false, true, 0, true),
        ("a", false, false, 2, false),
        ("a", false, false, 1, false),
        ("a", false, false, 0, false),
        ("a", true, false, 0, false),
        ("b", false, false, 0, false),
        ("b", true, true, 0, false),
        ("marker", true, true, 0, true),
    ];
    let expected = expected.map(|(name, a, b, c, d)| (name.to_owned(), a, b, c, d));
    assert_eq!(whole.iter().map(told).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn what_is_due_ends_as_the_bucket_keeps_versions() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    let blob = in_blob("blob", blob_ref(20_000));
    catalog.put(blob, Precondition::None).await.unwrap();
    put(catalog, "inline", b"1").await;
    let due = all(catalog, 10).await;
    let retired = catalog.retire(due, 1, 1).await.unwrap();
    assert_eq!(retired.ends, [Retired::Removed; 2]);
    assert_eq!(retired.freed.len(), 1);
    assert!(catalog.is_empty().await.unwrap());
    assert_eq!(catalog.totals().await.unwrap(), Totals::default());

    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    let kept = put(catalog, "a", b"kept").await;
    assert_eq!(
        ends(catalog, all(catalog, 10).await).await,
        [Retired::Hidden]
    );
    let read = data(catalog, "a", Which::Version(kept)).await.unwrap();
    assert_eq!(read, b"kept");
    let [version, marker] = &all(catalog, 10).await[..] else {
        panic!("a version and a marker");
    };
    assert_eq!((marker.is_marker, marker.modified_ms), (true, 7_000));
    // The marker alone would show the version again: the rules never ask for that.
    assert_eq!(
        ends(catalog, vec![version.clone()]).await,
        [Retired::Removed]
    );
    let lone = all(catalog, 10).await;
    assert!(lone[0].is_lone && lone.len() == 1);
    assert_eq!(ends(catalog, lone).await, [Retired::Removed]);
    assert!(catalog.is_empty().await.unwrap());
}

#[tokio::test]
async fn what_has_changed_since_it_was_judged_stays() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    put(catalog, "a", b"old").await;
    let judged = all(catalog, 10).await;
    let mut newer = inline("a", b"new");
    newer.modified_ms += 1;
    catalog.put(newer, Precondition::None).await.unwrap();
    assert_eq!(ends(catalog, judged).await, [Retired::Changed]);
    let judged = all(catalog, 10).await;
    let tags = vec![("k".to_owned(), "v".to_owned())];
    let object = name("a");
    let set = catalog.set_object_tags(&object, Which::Current, tags);
    set.await.unwrap().unwrap();
    assert_eq!(ends(catalog, judged).await, [Retired::Changed]);
    assert_eq!(data(catalog, "a", Which::Current).await.unwrap(), b"new");

    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    let newest = put(catalog, "a", b"newest").await;
    let judged = all(catalog, 10).await;
    catalog.delete(version_gone("a", newest)).await.unwrap();
    // What was older is the newest again, and what was the newest is gone.
    assert_eq!(ends(catalog, judged).await, [Retired::Changed; 2]);
    assert_eq!(data(catalog, "a", Which::Current).await.unwrap(), b"new");
}

#[tokio::test]
async fn versions_of_one_name_that_are_due_end_together() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    for modified_ms in 0..6 {
        let mut object = inline("a", b"1");
        object.modified_ms = modified_ms;
        catalog.put(object, Precondition::None).await.unwrap();
    }
    let due = all(catalog, 10).await;
    let (newest, others) = due.split_at(1);
    // In several transactions, as where not all fit into one.
    let first = ends(catalog, others[..2].to_vec()).await;
    assert_eq!(first, [Retired::Removed; 2]);
    assert_eq!(
        ends(catalog, newest.to_vec()).await,
        [Retired::Hidden],
        "it has fewer behind it"
    );
    let rest = ends(catalog, others[2..].to_vec()).await;
    assert_eq!(rest, [Retired::Removed; 3], "they are behind one more");
    let left = all(catalog, 10).await;
    let left = left.iter().map(|aged| (aged.modified_ms, aged.is_marker));
    assert_eq!(left.collect::<Vec<_>>(), [(5, false), (7_000, true)]);
}

#[tokio::test]
async fn what_is_behind_fewer_than_it_was_stays() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    put(catalog, "a", b"oldest").await;
    let between = put(catalog, "a", b"between").await;
    put(catalog, "a", b"newest").await;
    let oldest = all(catalog, 10).await.remove(1);
    assert_eq!(oldest.newer_noncurrent, 1);
    catalog.delete(version_gone("a", between)).await.unwrap();
    assert_eq!(ends(catalog, vec![oldest]).await, [Retired::Changed]);

    // A marker that is not alone any more hides what is behind it.
    delete(catalog, "b").await;
    let lone = all(catalog, 10).await.pop().unwrap();
    assert!(lone.is_marker && lone.is_lone);
    put(catalog, "b", b"new").await;
    assert_eq!(ends(catalog, vec![lone]).await, [Retired::Changed]);
}

#[tokio::test]
async fn what_is_asked_twice_ends_once() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    for number in 0..3 {
        put(catalog, &format!("{number}"), b"1").await;
    }
    let due = all(catalog, 10).await;
    let twice = [due.clone(), due].concat();
    let found = ends(catalog, twice).await;
    assert_eq!(
        found,
        [[Retired::Removed; 3], [Retired::Changed; 3]].concat()
    );
}
