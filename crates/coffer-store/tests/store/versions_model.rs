//! Versions against a model of what S3 documents.

use std::collections::BTreeMap;

use coffer_store::record::Precondition;
use coffer_store::version::{Absent, VersionId, Versioning, Which};
use coffer_store::{Catalog, Totals, VersionsQuery};
use proptest::prelude::*;

use crate::fixture::{Bucket, gone, name};
use crate::versions::{data, listed, put, rows, version_gone};

/// What the model holds: versions and markers by name, the newest last.
type Model = BTreeMap<String, Vec<(VersionId, Option<Vec<u8>>)>>;

#[derive(Clone, Debug)]
enum Step {
    Set(bool),
    Put(u8, u8),
    Delete(u8),
    DeleteVersion(u8, usize),
    Tag(u8, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => any::<bool>().prop_map(Step::Set),
        4 => (0..3_u8, any::<u8>()).prop_map(|(object, data)| Step::Put(object, data)),
        3 => (0..3_u8).prop_map(Step::Delete),
        4 => (0..3_u8, 0..6_usize).prop_map(|(object, at)| Step::DeleteVersion(object, at)),
        1 => (0..3_u8, 0..6_usize).prop_map(|(object, at)| Step::Tag(object, at)),
    ]
}

async fn take(catalog: &Catalog, model: &mut Model, state: &mut Versioning, step: Step) {
    let names = ["a", "a/b", "b"];
    match step {
        Step::Set(enabled) => {
            *state = if enabled {
                Versioning::Enabled
            } else {
                Versioning::Suspended
            };
            catalog.set_versioning(*state).await.unwrap();
        }
        Step::Put(object, byte) => {
            let object = names[usize::from(object)];
            let version = put(catalog, object, &[byte; 3]).await;
            make(model, object, version, Some(vec![byte; 3]), *state);
        }
        Step::Delete(object) => {
            let object = names[usize::from(object)];
            let deleted = catalog
                .delete(gone(&name(object), Precondition::None))
                .await
                .unwrap();
            if *state == Versioning::Never {
                assert_eq!(deleted.marker, None);
                model.remove(object);
            } else {
                make(model, object, deleted.marker.unwrap(), None, *state);
            }
        }
        Step::DeleteVersion(object, at) => {
            let object = names[usize::from(object)];
            let Some(versions) = model.get_mut(object) else {
                return;
            };
            let at = at % versions.len();
            let (version, content) = versions.remove(at);
            let deleted = catalog.delete(version_gone(object, version)).await.unwrap();
            assert!(deleted.existed);
            assert_eq!(deleted.marker, content.is_none().then_some(version));
            if versions.is_empty() {
                model.remove(object);
            }
        }
        Step::Tag(object, at) => {
            let object = names[usize::from(object)];
            let Some(versions) = model.get(object) else {
                return;
            };
            let (version, content) = &versions[at % versions.len()];
            let tags = vec![("k".to_owned(), at.to_string())];
            let which = Which::Version(*version);
            let set = catalog
                .set_object_tags(&name(object), which, tags.clone())
                .await
                .unwrap();
            assert_eq!(set.is_ok(), content.is_some());
            if content.is_some() {
                let told = catalog.object_tags(&name(object), which).await.unwrap();
                assert_eq!(told, Ok((tags, *version)));
            }
        }
    }
}

fn make(
    model: &mut Model,
    object: &str,
    version: VersionId,
    content: Option<Vec<u8>>,
    state: Versioning,
) {
    let versions = model.entry(object.to_owned()).or_default();
    assert_eq!(version == VersionId::Null, state != Versioning::Enabled);
    if version == VersionId::Null {
        versions.retain(|(version, _)| *version != VersionId::Null);
    }
    assert!(versions.iter().all(|(there, _)| *there != version));
    versions.push((version, content));
}

async fn compare(catalog: &Catalog, model: &Model) {
    let mut expected = Vec::new();
    for (object, versions) in model {
        for (place, (version, content)) in versions.iter().rev().enumerate() {
            expected.push((object.clone(), *version, place == 0, content.is_none()));
            let found = data(catalog, object, Which::Version(*version)).await;
            assert_eq!(found.ok(), *content);
        }
        let newest = versions.last().unwrap();
        let found = data(catalog, object, Which::Current).await;
        match &newest.1 {
            Some(content) => assert_eq!(found.as_ref(), Ok(content)),
            None => assert_eq!(found, Err(Absent::Deleted(newest.0))),
        }
    }
    assert_eq!(listed(catalog).await, expected);
    for limit in [1, 2] {
        let (mut query, mut paged) = (
            VersionsQuery {
                limit,
                ..VersionsQuery::default()
            },
            vec![],
        );
        loop {
            let page = catalog.versions(query.clone()).await.unwrap();
            query.start_after.clone_from(&page.next);
            let is_last = page.next.is_none();
            paged.extend(rows(page));
            if is_last {
                break;
            }
        }
        assert_eq!(paged, expected, "in pages of {limit}");
    }
    let all = model.values().flatten();
    let bytes = all
        .clone()
        .map(|(_, content)| content.as_ref().map_or(0, Vec::len) as u64)
        .sum();
    let totals = Totals {
        objects: all.count() as u64,
        bytes,
    };
    assert_eq!(catalog.totals().await.unwrap(), totals);
    assert_eq!(catalog.total_bytes().await.unwrap(), bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn versions_are_as_the_model_has_them(steps in proptest::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bucket = Bucket::new().await;
            let (mut model, mut state) = (Model::new(), Versioning::Never);
            for step in steps {
                take(&bucket.catalog, &mut model, &mut state, step).await;
            }
            compare(&bucket.catalog, &model).await;
        });
    }
}
