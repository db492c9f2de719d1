//! Objects in a catalog: put, read, replaced, deleted, tagged.

use std::collections::BTreeMap;

use coffer_store::lock::Lock;
use coffer_store::record::{
    Checksum, ChecksumAlgorithm, ChecksumKind, Content, ContentHeaders, Details, Encryption,
    ObjectHead, Precondition,
};
use coffer_store::version::{Absent, VersionId, Which};
use coffer_store::{DeleteOutcome, StoreError};

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline, name, noise, read};

#[tokio::test]
async fn an_object_comes_back_as_it_was_put() {
    let mut bucket = Bucket::new().await;
    let mut object = inline("photos/ß/1.jpg", &noise(4096));
    object.details = Details {
        redirect: None,
        encryption: Encryption::Aes256,
        headers: ContentHeaders {
            content_type: Some("image/jpeg; \"quoted\" \\".into()),
            cache_control: Some("no-cache".into()),
            ..ContentHeaders::default()
        },
        user_metadata: BTreeMap::from([("camera".into(), "Zoë's\n\u{1F4F7}".into())]),
        checksum: Some(Checksum {
            algorithm: ChecksumAlgorithm::Crc64nvme,
            kind: ChecksumKind::FullObject,
            value: "rosUhgp5mIg=".into(),
        }),
    };
    object.tags = vec![("k".into(), "v".into()), ("empty".into(), String::new())];
    bucket
        .catalog
        .put(object.clone(), Precondition::None)
        .await
        .unwrap();
    bucket.reopen().await;

    let expected = ObjectHead {
        size_bytes: 4096,
        etag: object.etag.clone(),
        modified_ms: object.modified_ms,
        details: object.details.clone(),
        part_count: 0,
        tag_count: 2,
        tags: object.tags.clone(),
        version: VersionId::Null,
        lock: Lock::default(),
        access: Default::default(),
    };
    assert_eq!(
        bucket
            .catalog
            .head(&object.name, Which::Current)
            .await
            .unwrap(),
        Ok(expected.clone())
    );
    let (head, content) = read(&bucket.catalog, "photos/ß/1.jpg")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(head, expected);
    assert_eq!(content, Content::Inline(noise(4096).into()));
    assert_eq!(
        bucket
            .catalog
            .object_tags(&object.name, Which::Current)
            .await
            .unwrap(),
        Ok((object.tags, VersionId::Null))
    );
    assert_eq!(bucket.catalog.bucket_name(), "bucket");
}

#[tokio::test]
async fn inline_objects_of_every_size_come_back() {
    let bucket = Bucket::in_memory().await;
    for size in [0, 1, 482, 483, 484, 4013, 4014, 4096, 8100, 16_383, 16_384] {
        bucket.put("it", &noise(size)).await;
        assert_eq!(
            bucket.inline_data("it").await.unwrap(),
            noise(size),
            "{size}"
        );
    }
}

#[tokio::test]
async fn what_is_not_there_is_none() {
    let bucket = Bucket::new().await;
    let absent = name("absent");
    assert_eq!(
        bucket.catalog.head(&absent, Which::Current).await.unwrap(),
        Err(Absent::Object)
    );
    assert_eq!(read(&bucket.catalog, "absent").await.unwrap(), None);
    assert_eq!(
        bucket
            .catalog
            .object_tags(&absent, Which::Current)
            .await
            .unwrap(),
        Err(Absent::Object)
    );
    assert!(
        bucket
            .catalog
            .set_object_tags(&absent, Which::Current, vec![])
            .await
            .unwrap()
            .is_err()
    );
    let outcome = bucket
        .catalog
        .delete(gone(&absent, Precondition::None))
        .await
        .unwrap();
    assert_eq!(
        outcome,
        DeleteOutcome {
            existed: false,
            ..DeleteOutcome::default()
        }
    );
}

#[tokio::test]
async fn replacing_frees_exactly_what_was_there() {
    let bucket = Bucket::in_memory().await;
    let (first, second) = (blob_ref(100), blob_ref(200));
    let put = async |object| {
        bucket
            .catalog
            .put(object, Precondition::None)
            .await
            .unwrap()
            .replaced
    };
    assert_eq!(put(inline("a", b"one")).await, []);
    assert_eq!(put(inline("a", b"another")).await, []);
    assert_eq!(put(in_blob("a", first.clone())).await, []);
    assert!(bucket.catalog.contains_blob(&first.id).await.unwrap());
    let ids = vec![second.id, first.id];
    let refs = bucket.catalog.blob_refs(ids.clone()).await.unwrap();
    assert_eq!(refs, std::slice::from_ref(&first));
    let left = bucket.catalog.without_blob(ids).await.unwrap();
    assert_eq!(left, [second.id]);
    assert_eq!(put(in_blob("a", second.clone())).await, [first.id]);
    assert!(!bucket.catalog.contains_blob(&first.id).await.unwrap());
    let (head, content) = read(&bucket.catalog, "a").await.unwrap().unwrap();
    assert_eq!(head.size_bytes, 200);
    assert_eq!(
        content,
        Content::Blobs {
            first_offset_bytes: 0,
            blobs: vec![second.clone()]
        }
    );
    assert_eq!(put(inline("a", b"small again")).await, [second.id]);
    assert_eq!(bucket.inline_data("a").await.unwrap(), "small again");

    bucket
        .catalog
        .put(in_blob("b", first.clone()), Precondition::None)
        .await
        .unwrap();
    let outcome = bucket
        .catalog
        .delete(gone(&name("b"), Precondition::None))
        .await
        .unwrap();
    assert_eq!(
        outcome,
        DeleteOutcome {
            existed: true,
            freed: vec![first.id],
            ..DeleteOutcome::default()
        }
    );
    assert_eq!(read(&bucket.catalog, "b").await.unwrap(), None);
    assert_eq!(bucket.inline_data("a").await.unwrap(), "small again");
}

#[tokio::test]
async fn preconditions_decide_and_change_nothing_when_they_fail() {
    let bucket = Bucket::in_memory().await;
    let holds = async |precondition: Precondition| {
        let mut object = inline("a", b"new");
        object.etag = "new".into();
        match bucket.catalog.put(object, precondition).await {
            Ok(_) => true,
            Err(StoreError::PreconditionFailed) => false,
            Err(error) => panic!("{error}"),
        }
    };
    for wants in [Precondition::Present, Precondition::Etag("new".into())] {
        let refused = bucket.catalog.put(inline("a", b"new"), wants).await;
        assert!(matches!(refused, Err(StoreError::NothingToMatch)));
    }
    assert_eq!(read(&bucket.catalog, "a").await.unwrap(), None);
    assert!(holds(Precondition::Absent).await);
    assert!(!holds(Precondition::Absent).await);
    assert!(!holds(Precondition::Etag("old".into())).await);
    assert!(holds(Precondition::Etag("new".into())).await);
    assert!(holds(Precondition::Present).await);

    let delete = async |precondition| bucket.catalog.delete(gone(&name("a"), precondition)).await;
    let refused = delete(Precondition::Etag("old".into())).await;
    assert!(matches!(refused, Err(StoreError::PreconditionFailed)));
    assert!(
        delete(Precondition::Etag("new".into()))
            .await
            .unwrap()
            .existed
    );
    assert!(matches!(
        delete(Precondition::Present).await,
        Err(StoreError::NothingToMatch)
    ));
}

#[tokio::test]
async fn many_are_deleted_at_once_and_each_has_its_outcome() {
    let bucket = Bucket::in_memory().await;
    let blob = blob_ref(7);
    bucket.put("a", b"1").await;
    bucket.put("b", b"2").await;
    bucket
        .catalog
        .put(in_blob("c", blob.clone()), Precondition::None)
        .await
        .unwrap();
    let outcomes = bucket
        .catalog
        .delete_many(vec![
            gone(&name("a"), Precondition::None),
            gone(&name("b"), Precondition::Etag("other".into())),
            gone(&name("c"), Precondition::Present),
            gone(&name("d"), Precondition::None),
            gone(&name("a"), Precondition::None),
        ])
        .await
        .unwrap();
    let existed: Vec<_> = outcomes
        .iter()
        .map(|outcome| outcome.as_ref().ok().map(|done| done.existed))
        .collect();
    assert_eq!(
        existed,
        [Some(true), None, Some(true), Some(false), Some(false)]
    );
    assert!(matches!(outcomes[1], Err(StoreError::PreconditionFailed)));
    assert_eq!(outcomes[2].as_ref().unwrap().freed, [blob.id]);
    assert!(bucket.inline_data("b").await.is_some());
    assert!(!bucket.catalog.is_empty().await.unwrap());
    bucket
        .catalog
        .delete(gone(&name("b"), Precondition::None))
        .await
        .unwrap();
    assert!(bucket.catalog.is_empty().await.unwrap());
}

#[tokio::test]
async fn a_refusal_to_read_is_handed_back() {
    let bucket = Bucket::in_memory().await;
    bucket.put("a", b"1").await;
    let refused = bucket
        .catalog
        .read(&name("a"), Which::Current, |head| Err(head.size_bytes))
        .await
        .unwrap();
    assert!(matches!(refused, Ok(Err(1))));
}

#[tokio::test]
async fn tags_are_set_and_removed() {
    let bucket = Bucket::in_memory().await;
    bucket.put("a", b"1").await;
    let tags = vec![
        ("b".to_owned(), "2".to_owned()),
        ("a".to_owned(), "1".to_owned()),
    ];
    assert!(
        bucket
            .catalog
            .set_object_tags(&name("a"), Which::Current, tags.clone())
            .await
            .unwrap()
            .is_ok()
    );
    assert_eq!(
        bucket
            .catalog
            .object_tags(&name("a"), Which::Current)
            .await
            .unwrap(),
        Ok((tags.clone(), VersionId::Null))
    );
    assert_eq!(
        bucket
            .catalog
            .head(&name("a"), Which::Current)
            .await
            .unwrap()
            .unwrap()
            .tag_count,
        2
    );
    assert!(
        bucket
            .catalog
            .set_object_tags(&name("a"), Which::Current, vec![])
            .await
            .unwrap()
            .is_ok()
    );
    assert_eq!(
        bucket
            .catalog
            .object_tags(&name("a"), Which::Current)
            .await
            .unwrap(),
        Ok((vec![], VersionId::Null))
    );

    assert_eq!(bucket.catalog.bucket_tags().await.unwrap(), None);
    bucket
        .catalog
        .set_bucket_tags(Some(tags.clone()))
        .await
        .unwrap();
    assert_eq!(bucket.catalog.bucket_tags().await.unwrap(), Some(tags));
    bucket.catalog.set_bucket_tags(Some(vec![])).await.unwrap();
    assert_eq!(bucket.catalog.bucket_tags().await.unwrap(), Some(vec![]));
    bucket.catalog.set_bucket_tags(None).await.unwrap();
    assert_eq!(bucket.catalog.bucket_tags().await.unwrap(), None);
}

#[tokio::test]
async fn a_walk_meets_everything_once() {
    let bucket = Bucket::in_memory().await;
    let blob = blob_ref(100_000);
    for number in 0..25 {
        bucket
            .put(&format!("inline {number:02}"), &noise(number * 600))
            .await;
    }
    bucket
        .catalog
        .put(in_blob("blob", blob.clone()), Precondition::None)
        .await
        .unwrap();
    let mut met = Vec::new();
    loop {
        let after = met
            .last()
            .map(|object: &coffer_store::record::WalkedObject| &object.place);
        let page = bucket.catalog.objects_after(after, 4).await.unwrap();
        if page.is_empty() {
            break;
        }
        met.extend(page);
    }
    assert_eq!(met.len(), 26);
    assert_eq!(
        met[0].content,
        Content::Blobs {
            first_offset_bytes: 0,
            blobs: vec![blob.clone()]
        }
    );
    assert_eq!(met[25].content, Content::Inline(noise(24 * 600).into()));
    assert!(met.is_sorted_by(|a, b| a.place.name < b.place.name));
    assert_eq!(bucket.catalog.blob_ids(None, 10).await.unwrap(), [blob.id]);
    assert_eq!(
        bucket.catalog.blob_ids(Some(blob.id), 10).await.unwrap(),
        []
    );
    let inline_bytes: usize = (0..25).map(|number| number * 600).sum();
    assert_eq!(
        bucket.catalog.total_bytes().await.unwrap(),
        100_000 + inline_bytes as u64
    );
}
