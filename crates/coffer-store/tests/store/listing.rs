//! Listings beside a model that folds and cuts a sorted list.

use std::collections::BTreeSet;

use coffer_seal::UploadId;
use coffer_store::lock::Lock;
use coffer_store::record::{
    Details, ListPage, ListQuery, ObjectName, Precondition, Upload, UploadsPage, UploadsQuery,
};
use futures::future::join_all;
use proptest::prelude::*;

use crate::fixture::{Bucket, inline, name};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Name(String),
    Prefix(String),
}

impl Row {
    fn text(&self) -> &str {
        match self {
            Self::Name(text) | Self::Prefix(text) => text,
        }
    }
}

fn model(names: &BTreeSet<String>, query: &ListQuery) -> (Vec<Row>, Option<String>) {
    let delimiter = query
        .delimiter
        .as_deref()
        .filter(|delimiter| !delimiter.is_empty());
    let fold = |name: &String| {
        let rest = &name[query.prefix.len()..];
        match delimiter.and_then(|delimiter| Some(rest.find(delimiter)? + delimiter.len())) {
            Some(end) => Row::Prefix(name[..query.prefix.len() + end].to_owned()),
            None => Row::Name(name.clone()),
        }
    };
    let mut rows: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with(&query.prefix))
        .map(fold)
        .collect();
    rows.dedup();
    if let Some(start_after) = &query.start_after {
        rows.retain(|row| row.text().as_bytes() > start_after.as_bytes());
    }
    let has_more = rows.len() > query.limit && query.limit > 0;
    rows.truncate(query.limit);
    let next = rows
        .last()
        .filter(|_| has_more)
        .map(|row| row.text().to_owned());
    (rows, next)
}

fn rows_of(page: &ListPage) -> Vec<Row> {
    assert!(page.objects.is_sorted_by(|a, b| a.name < b.name));
    assert!(page.prefixes.is_sorted());
    let names = page
        .objects
        .iter()
        .map(|object| Row::Name(object.name.expose().to_owned()));
    let mut rows: Vec<_> = names
        .chain(page.prefixes.iter().cloned().map(Row::Prefix))
        .collect();
    rows.sort_by(|a, b| a.text().as_bytes().cmp(b.text().as_bytes()));
    rows
}

/// Texts that collide and nest: few letters, delimiters of one and two characters, characters of
/// one to four bytes, and the least and the greatest of them.
fn text(lengths: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let letters =
        prop::sample::select(vec!["a", "b", "/", "//", "é", "\u{10ffff}", "\0", "\u{7f}"]);
    prop::collection::vec(letters, lengths).prop_map(|letters| letters.concat())
}

fn query() -> impl Strategy<Value = ListQuery> {
    let delimiter = prop::option::of(prop::sample::select(vec!["/", "//", "a", "é", ""]));
    (
        text(0..3),
        delimiter,
        prop::option::of(text(0..5)),
        0..8usize,
    )
        .prop_map(|(prefix, delimiter, start_after, limit)| ListQuery {
            prefix,
            delimiter: delimiter.map(str::to_owned),
            start_after,
            limit,
        })
}

async fn bucket_with(names: &BTreeSet<String>) -> Bucket {
    let bucket = Bucket::in_memory().await;
    let puts = names
        .iter()
        .map(|name| bucket.catalog.put(inline(name, b"x"), Precondition::None));
    join_all(puts)
        .await
        .into_iter()
        .for_each(|put| drop(put.unwrap()));
    bucket
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_listing_is_what_the_model_says(
        names in prop::collection::btree_set(text(1..5), 0..30),
        queries in prop::collection::vec(query(), 30),
    ) {
        run(async {
            let bucket = bucket_with(&names).await;
            for query in queries {
                let page = bucket.catalog.list(query.clone()).await.unwrap();
                let (rows, next) = model(&names, &query);
                prop_assert_eq!(rows_of(&page), rows, "{:?}", query);
                prop_assert_eq!(page.next, next, "{:?}", query);
            }
            Ok(())
        })?;
    }

    #[test]
    fn pages_one_after_the_other_are_the_whole(
        names in prop::collection::btree_set(text(1..5), 0..30),
        mut query in query(),
    ) {
        run(async {
            query.limit = query.limit.max(1);
            let bucket = bucket_with(&names).await;
            let all = model(&names, &ListQuery { limit: 1000, ..query.clone() }).0;
            let mut rows = Vec::new();
            loop {
                let page = bucket.catalog.list(query.clone()).await.unwrap();
                rows.extend(rows_of(&page));
                let Some(next) = page.next else { break };
                query.start_after = Some(next);
            }
            prop_assert_eq!(rows, all);
            Ok(())
        })?;
    }

    #[test]
    fn uploads_list_like_objects_and_then_by_id(
        names in prop::collection::vec(text(1..4), 0..20),
        mut query in query(),
    ) {
        run(async {
            query.limit = query.limit.max(1);
            let bucket = Bucket::in_memory().await;
            let mut begun = BTreeSet::new();
            for text in &names {
                let id = UploadId::random();
                bucket.catalog.create_upload(upload(name(text), id)).await.unwrap();
                begun.insert((text.clone(), id));
            }
            let distinct: BTreeSet<_> = names.into_iter().collect();
            let rows = model(&distinct, &ListQuery { limit: 1000, ..query.clone() }).0;
            let (ids, prefixes) = all_uploads(&bucket, &query).await;
            let expected: Vec<_> = begun
                .into_iter()
                .filter(|(name, _)| rows.contains(&Row::Name(name.clone())))
                .collect();
            prop_assert_eq!(ids, expected);
            let folded = rows.iter().filter(|row| matches!(row, Row::Prefix(_)));
            let expected: Vec<_> = folded.map(|row| row.text().to_owned()).collect();
            prop_assert_eq!(prefixes, expected);
            Ok(())
        })?;
    }
}

fn upload(name: ObjectName, id: UploadId) -> Upload {
    Upload {
        id,
        name,
        started_ms: 1,
        details: Details::default(),
        checksum: None,
        tags: vec![],
        lock: Lock::default(),
        acl: None,
        made_by: None,
    }
}

/// All pages of a listing of uploads.
async fn all_uploads(bucket: &Bucket, query: &ListQuery) -> (Vec<(String, UploadId)>, Vec<String>) {
    let mut query = UploadsQuery {
        prefix: query.prefix.clone(),
        delimiter: query.delimiter.clone(),
        start_after: query.start_after.clone().map(|name| (name, None)),
        limit: query.limit,
    };
    let (mut ids, mut all_prefixes) = (Vec::new(), Vec::new());
    loop {
        let page = bucket.catalog.uploads(query.clone()).await.unwrap();
        let UploadsPage {
            uploads,
            prefixes,
            next,
        } = page;
        assert!(uploads.len() + prefixes.len() <= query.limit);
        ids.extend(
            uploads
                .into_iter()
                .map(|upload| (upload.name.expose().to_owned(), upload.id)),
        );
        all_prefixes.extend(prefixes);
        query.start_after = next;
        if query.start_after.is_none() {
            return (ids, all_prefixes);
        }
    }
}

#[tokio::test]
async fn a_page_holds_at_most_a_thousand_rows() {
    let bucket = bucket_with(&(0..1003).map(|number| format!("{number:04}")).collect()).await;
    let page = bucket
        .catalog
        .list(ListQuery {
            limit: 5000,
            ..ListQuery::default()
        })
        .await
        .unwrap();
    assert_eq!(page.objects.len(), 1000);
    assert_eq!(page.next.as_deref(), Some("0999"));
    let rest = ListQuery {
        limit: 5000,
        start_after: page.next,
        ..ListQuery::default()
    };
    let page = bucket.catalog.list(rest).await.unwrap();
    assert_eq!((page.objects.len(), page.next), (3, None));
}
