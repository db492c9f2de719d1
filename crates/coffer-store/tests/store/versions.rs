//! Versions of objects: kept, listed, deleted one by one, against a model of what S3 documents.

use coffer_store::record::{Content, ListQuery, Precondition};
use coffer_store::version::{Absent, VersionId, Versioning, VersioningSetting, Which};
use coffer_store::{Catalog, Deletion, Totals, VersionsPage, VersionsQuery};

use crate::fixture::{Bucket, gone, in_blob, inline, name};

pub(crate) async fn put(catalog: &Catalog, object: &str, data: &[u8]) -> VersionId {
    let put = catalog.put(inline(object, data), Precondition::None);
    put.await.unwrap().version
}

pub(crate) async fn data(catalog: &Catalog, object: &str, which: Which) -> Result<Vec<u8>, Absent> {
    let all = |head: &coffer_store::record::ObjectHead| Ok::<_, ()>(0..head.size_bytes);
    let read = catalog.read(&name(object), which, all).await.unwrap()?;
    match read.unwrap().2 {
        Content::Inline(data) => Ok(data.to_vec()),
        Content::Blobs { .. } => panic!("{object} is in blobs"),
    }
}

pub(crate) fn version_gone(object: &str, version: VersionId) -> Deletion {
    Deletion {
        which: Which::Version(version),
        ..gone(&name(object), Precondition::None)
    }
}

pub(crate) async fn listed(catalog: &Catalog) -> Vec<(String, VersionId, bool, bool)> {
    let query = VersionsQuery {
        limit: 1000,
        ..VersionsQuery::default()
    };
    rows(catalog.versions(query).await.unwrap())
}

pub(crate) fn rows(page: VersionsPage) -> Vec<(String, VersionId, bool, bool)> {
    let versions = page.versions.into_iter();
    versions
        .map(|row| {
            let is_marker = row.content.is_none();
            (
                row.name.expose().to_owned(),
                row.version,
                row.is_latest,
                is_marker,
            )
        })
        .collect()
}

#[tokio::test]
async fn what_is_put_over_stays_as_a_version() {
    let mut bucket = Bucket::new().await;
    let null = put(&bucket.catalog, "a", b"before").await;
    assert_eq!(null, VersionId::Null);
    bucket
        .catalog
        .set_versioning(Versioning::Enabled)
        .await
        .unwrap();
    let setting = VersioningSetting::from(Versioning::Enabled);
    assert_eq!(bucket.catalog.versioning_setting().await.unwrap(), setting);
    let without_mfa = VersioningSetting {
        is_mfa_delete_off: true,
        ..setting
    };
    bucket.catalog.set_versioning(without_mfa).await.unwrap();
    bucket.catalog.set_versioning(setting).await.unwrap();
    let first = put(&bucket.catalog, "a", b"first").await;
    let second = put(&bucket.catalog, "a", b"second").await;
    bucket.reopen().await;
    // What was said once stays.
    let told = bucket.catalog.versioning_setting().await.unwrap();
    assert_eq!(told, without_mfa);
    let catalog = &bucket.catalog;
    assert_eq!(catalog.versioning().await.unwrap(), Versioning::Enabled);
    assert!(catalog.has_versions());
    assert_eq!(data(catalog, "a", Which::Current).await.unwrap(), b"second");
    for (version, expected) in [(null, "before"), (first, "first"), (second, "second")] {
        let found = data(catalog, "a", Which::Version(version)).await.unwrap();
        assert_eq!(found, expected.as_bytes());
    }
    let row = |version, is_latest| ("a".to_owned(), version, is_latest, false);
    let all = [row(second, true), row(first, false), row(null, false)];
    assert_eq!(listed(catalog).await, all);
    let totals = Totals {
        objects: 3,
        bytes: 17,
    };
    assert_eq!(catalog.totals().await.unwrap(), totals);
    assert!(!catalog.is_empty().await.unwrap());

    // Without the newest, the one behind it is.
    let deleted = catalog.delete(version_gone("a", second)).await.unwrap();
    assert!(deleted.existed && deleted.marker.is_none());
    assert_eq!(data(catalog, "a", Which::Current).await.unwrap(), b"first");
    let absent = data(catalog, "a", Which::Version(second)).await;
    assert_eq!(absent, Err(Absent::Version));
}

#[tokio::test]
async fn a_deletion_leaves_a_marker_that_can_be_deleted() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    let version = put(catalog, "a", b"kept").await;
    let marker = async || {
        let deleted = catalog.delete(gone(&name("a"), Precondition::None));
        deleted.await.unwrap().marker.unwrap()
    };
    let [first, second] = [marker().await, marker().await];
    let absent = data(catalog, "a", Which::Current).await;
    assert_eq!(absent, Err(Absent::Deleted(second)));
    let absent = data(catalog, "a", Which::Version(first)).await;
    let marker = Absent::Marker {
        version: first,
        modified_ms: 1_700_000_000_456,
    };
    assert_eq!(absent, Err(marker));
    let present = catalog
        .delete(gone(&name("a"), Precondition::Present))
        .await;
    assert!(present.is_err(), "behind a marker there is none");
    let query = ListQuery {
        limit: 10,
        ..ListQuery::default()
    };
    assert!(catalog.list(query).await.unwrap().objects.is_empty());
    for marker in [second, first] {
        let deleted = catalog.delete(version_gone("a", marker)).await.unwrap();
        assert_eq!(deleted.marker, Some(marker));
    }
    assert_eq!(data(catalog, "a", Which::Current).await.unwrap(), b"kept");
    catalog.delete(version_gone("a", version)).await.unwrap();
    assert!(catalog.is_empty().await.unwrap());
    assert_eq!(catalog.totals().await.unwrap(), Totals::default());
    // What is deleted destroys its content, also of the versions.
    assert_eq!(bucket.inline_data("a").await, None);
}

#[tokio::test]
async fn suspended_there_is_one_null_version_at_most() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    let kept = put(catalog, "a", b"kept").await;
    catalog.set_versioning(Versioning::Suspended).await.unwrap();
    for data in [b"one", b"two"] {
        assert_eq!(put(catalog, "a", data).await, VersionId::Null);
    }
    let deleted = catalog
        .delete(gone(&name("a"), Precondition::None))
        .await
        .unwrap();
    assert_eq!(deleted.marker, Some(VersionId::Null));
    let row = |version, is_latest, is_marker| ("a".to_owned(), version, is_latest, is_marker);
    let all = [row(VersionId::Null, true, true), row(kept, false, false)];
    assert_eq!(listed(catalog).await, all);
    assert_eq!(put(catalog, "a", b"three").await, VersionId::Null);
    let all = [row(VersionId::Null, true, false), row(kept, false, false)];
    assert_eq!(listed(catalog).await, all);
    assert_eq!(
        catalog.totals().await.unwrap(),
        Totals {
            objects: 2,
            bytes: 9
        }
    );
}

#[tokio::test]
async fn blobs_of_versions_are_freed_with_them() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    let mut versions = Vec::new();
    for size in [100, 200] {
        let blob = crate::fixture::blob_ref(size);
        let outcome = catalog
            .put(in_blob("a", blob.clone()), Precondition::None)
            .await
            .unwrap();
        assert!(outcome.replaced.is_empty());
        versions.push((outcome.version, blob.id));
    }
    let walked = catalog.objects_after(None, 10).await.unwrap();
    let older = catalog
        .objects_after(walked.last().map(|row| &row.place), 10)
        .await
        .unwrap();
    assert_eq!((walked[0].size_bytes, older[0].size_bytes), (200, 100));
    let end = catalog
        .objects_after(older.last().map(|row| &row.place), 10)
        .await
        .unwrap();
    assert!(end.is_empty());
    for (version, blob) in versions {
        let deleted = catalog.delete(version_gone("a", version)).await.unwrap();
        assert_eq!(deleted.freed, [blob]);
    }
}

#[tokio::test]
async fn listings_of_versions_fold_and_go_on() {
    let bucket = Bucket::new().await;
    let catalog = &bucket.catalog;
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    for object in ["a/1", "a/2", "b", "b", "c/1"] {
        put(catalog, object, b"x").await;
    }
    let list = async |after: Option<(&str, Option<VersionId>)>, limit| {
        let start_after = after.map(|(name, version)| (name.to_owned(), version));
        let query = VersionsQuery {
            delimiter: Some("/".into()),
            start_after,
            limit,
            ..VersionsQuery::default()
        };
        catalog.versions(query).await.unwrap()
    };
    let page = list(None, 2).await;
    assert_eq!(page.prefixes, ["a/"]);
    let (after, version) = page.next.clone().unwrap();
    assert_eq!(
        (after.as_str(), version),
        ("b", Some(page.versions[0].version))
    );
    let rest = list(Some(("b", version)), 10).await;
    assert_eq!(
        (rest.versions.len(), &rest.prefixes[..]),
        (1, &["c/".to_owned()][..])
    );
    assert!(!rest.versions[0].is_latest && rest.next.is_none());
    // A name alone: after all of its versions. A version that is gone: at the next in order.
    assert!(list(Some(("b", None)), 10).await.versions.is_empty());
    catalog
        .delete(version_gone("b", page.versions[0].version))
        .await
        .unwrap();
    let rest = list(Some(("b", version)), 10).await;
    assert!(rest.versions[0].is_latest, "it is the newest by now");
    // A null version that is not there: all of the name.
    let rest = list(Some(("b", Some(VersionId::Null))), 10).await;
    assert_eq!(rest.versions.len(), 1);
}

/// Markers have no content, by which alone numbers were found once.
#[tokio::test]
async fn after_a_reopening_numbers_rise_above_those_of_markers() {
    let mut bucket = Bucket::new().await;
    let state = Versioning::Enabled;
    bucket.catalog.set_versioning(state).await.unwrap();
    put(&bucket.catalog, "a", b"1").await;
    for object in ["a", "a", "b"] {
        let deletion = gone(&name(object), Precondition::None);
        bucket.catalog.delete(deletion).await.unwrap();
    }
    bucket.reopen().await;
    let deletion = gone(&name("c"), Precondition::None);
    bucket.catalog.delete(deletion).await.unwrap();
    let newest = put(&bucket.catalog, "a", b"2").await;
    let rows = listed(&bucket.catalog).await;
    assert_eq!(rows[0], ("a".to_owned(), newest, true, false));
    assert_eq!(rows.len(), 6);
}
