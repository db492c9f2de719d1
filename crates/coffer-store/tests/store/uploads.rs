//! Multipart uploads: parts come, are replaced, become an object or nothing.

use coffer_seal::UploadId;
use coffer_store::StoreError;
use coffer_store::lock::Lock;
use coffer_store::record::{
    BlobRef, Checksum, ChecksumAlgorithm, ChecksumKind, CompletedObject, Content, Details, Part,
    Precondition, Upload, WalkedPart,
};
use coffer_store::version::Which;
use futures::future::join_all;

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline, name, read};

async fn begin(bucket: &Bucket, object_name: &str) -> UploadId {
    let id = UploadId::random();
    let upload = Upload {
        id,
        name: name(object_name),
        started_ms: 5,
        details: Details::default(),
        checksum: Some((ChecksumAlgorithm::Sha256, ChecksumKind::Composite)),
        tags: vec![("a".into(), "b".into())],
        lock: Lock::default(),
        acl: None,
        made_by: Some("AKANN".into()),
    };
    bucket.catalog.create_upload(upload.clone()).await.unwrap();
    assert_eq!(bucket.catalog.upload(&id).await.unwrap(), Some(upload));
    id
}

pub(crate) fn part(number: u32, bytes: u64) -> Part {
    let checksum = Checksum {
        algorithm: ChecksumAlgorithm::Sha256,
        kind: ChecksumKind::FullObject,
        value: format!("sum {number}"),
    };
    let blob = BlobRef {
        checksum: Some(checksum),
        ..blob_ref(bytes)
    };
    Part {
        number,
        etag: format!("part {number}"),
        modified_ms: 6,
        blob,
    }
}

fn completed(object_name: &str, parts: &[&Part]) -> CompletedObject {
    CompletedObject {
        name: name(object_name),
        etag: "whole".into(),
        modified_ms: 7,
        details: Details::default(),
        tags: vec![],
        lock: Lock::default(),
        access: Default::default(),
        parts: parts
            .iter()
            .map(|part| (part.number, part.blob.id))
            .collect(),
        request: [7; 32],
    }
}

/// The blobs that cover a range, and where the first begins.
async fn covering(
    bucket: &Bucket,
    object_name: &str,
    range: std::ops::Range<u64>,
) -> (u64, Vec<BlobRef>) {
    let choose = |_: &_| Ok::<_, ()>(range.clone());
    let read = bucket
        .catalog
        .read(&name(object_name), Which::Current, choose)
        .await
        .unwrap();
    match read.unwrap().unwrap().2 {
        Content::Blobs {
            first_offset_bytes,
            blobs,
        } => (first_offset_bytes, blobs),
        Content::Inline(_) => panic!("inline"),
    }
}

#[tokio::test]
async fn parts_come_in_any_order_and_replace_each_other() {
    let bucket = Bucket::in_memory().await;
    let id = begin(&bucket, "o").await;
    let (one, three, five, replaced) = (part(1, 100), part(3, 50), part(5, 70), part(3, 1));
    let put = async |part: &Part| bucket.catalog.put_part(id, part.clone()).await.unwrap();
    for part in [&five, &replaced, &one] {
        assert_eq!(put(part).await, None);
    }
    assert_eq!(put(&three).await, Some(replaced.blob.id));
    let parts = bucket.catalog.parts(&id, 0, 1000).await.unwrap();
    assert_eq!(parts, [one.clone(), three.clone(), five.clone()]);
    let parts = bucket.catalog.parts(&id, 1, 1).await.unwrap();
    assert_eq!(parts, std::slice::from_ref(&three));
    let found = bucket.catalog.upload_and_parts(&id, 1, 1).await.unwrap();
    let (upload, parts) = found.unwrap();
    assert_eq!((upload.id, upload.name), (id, name("o")));
    assert_eq!(parts, std::slice::from_ref(&three));
    let walked = bucket.catalog.parts_after(Some((id, 1)), 2).await.unwrap();
    let parts: Vec<_> = walked.iter().map(|walked| &walked.part).collect();
    assert_eq!(parts, [&three, &five]);
    let is_its = |part: &WalkedPart| part.name == name("o") && part.upload_id == id;
    assert!(walked.iter().all(is_its));
}

#[tokio::test]
async fn parts_become_an_object_and_the_others_are_freed() {
    let bucket = Bucket::in_memory().await;
    let there = blob_ref(9);
    bucket
        .catalog
        .put(in_blob("o", there.clone()), Precondition::None)
        .await
        .unwrap();
    let id = begin(&bucket, "o").await;
    let (one, three, five, last) = (part(1, 100), part(3, 50), part(5, 70), part(9, 0));
    for part in [&five, &three, &one, &last] {
        assert_eq!(
            bucket.catalog.put_part(id, part.clone()).await.unwrap(),
            None
        );
    }
    let object = completed("o", &[&one, &five, &last]);
    let outcome = bucket
        .catalog
        .complete_upload(&id, object, Precondition::Present)
        .await
        .unwrap();
    assert_eq!(outcome.replaced, [there.id, three.blob.id]);
    assert_eq!(outcome.made_by.as_deref(), Some("AKANN"));
    let (head, content) = read(&bucket.catalog, "o").await.unwrap().unwrap();
    assert_eq!(
        (head.size_bytes, head.part_count, head.etag.as_str()),
        (170, 3, "whole")
    );
    // An empty last part overlaps nothing.
    let blobs = vec![one.blob.clone(), five.blob.clone()];
    assert_eq!(
        content,
        Content::Blobs {
            first_offset_bytes: 0,
            blobs
        }
    );
    let range = async |number| {
        bucket
            .catalog
            .part_range(&name("o"), Which::Current, number)
            .await
            .unwrap()
    };
    assert_eq!(range(5).await, Some(100..170));
    assert_eq!(range(9).await, Some(170..170));
    assert_eq!((range(3).await, range(0).await), (None, None));
    assert_read_by_parts(&bucket).await;
    assert_eq!(bucket.catalog.upload(&id).await.unwrap(), None);
    assert_eq!(bucket.catalog.parts(&id, 0, 1000).await.unwrap(), []);
    let found = bucket.catalog.upload_and_parts(&id, 0, 1000).await;
    assert_eq!(found.unwrap(), None);
    // A walk for verification meets the empty one, too.
    let walked = bucket.catalog.objects_after(None, 100).await.unwrap();
    assert!(matches!(&walked[0].content, Content::Blobs { blobs, .. } if blobs.len() == 3));
}

/// Of an object of three parts, of which the second is the fifth by number.
async fn assert_read_by_parts(bucket: &Bucket) {
    for number in [Some(5), Some(3), None] {
        let found = bucket
            .catalog
            .head_and_part(&name("o"), Which::Current, number)
            .await;
        let (head, part) = found.unwrap().unwrap();
        assert_eq!(part, number.filter(|number| *number == 5).map(|_| 100..170));
        assert_eq!(head.part_count, 3);
        let chosen = |_: &_, part: Option<_>| part.ok_or(());
        let object = name("o");
        let read = bucket
            .catalog
            .read_part(&object, Which::Current, number, chosen);
        let read = read.await.unwrap().unwrap();
        assert_eq!(read.ok().map(|(_, range, _)| range), part);
    }
}

#[tokio::test]
async fn a_completion_that_fails_leaves_the_upload_as_it_was() {
    let bucket = Bucket::in_memory().await;
    bucket.put("o", b"there").await;
    let id = begin(&bucket, "o").await;
    let (one, two) = (part(1, 100), part(2, 50));
    for part in [&one, &two] {
        bucket.catalog.put_part(id, part.clone()).await.unwrap();
    }
    let complete = async |object, precondition| {
        bucket
            .catalog
            .complete_upload(&id, object, precondition)
            .await
            .unwrap_err()
    };
    let other = part(2, 50);
    let error = complete(completed("o", &[&one, &other]), Precondition::None).await;
    assert!(matches!(error, StoreError::PartChanged { number: 2 }));
    let error = complete(completed("o", &[&one, &part(3, 1)]), Precondition::None).await;
    assert!(matches!(error, StoreError::PartChanged { number: 3 }));
    let error = complete(completed("o", &[&two, &one]), Precondition::None).await;
    assert!(matches!(error, StoreError::PartChanged { number: 1 }));
    let error = complete(completed("o", &[&one]), Precondition::Absent).await;
    assert!(matches!(error, StoreError::PreconditionFailed));
    let error = complete(completed("another", &[&one]), Precondition::None).await;
    assert!(matches!(error, StoreError::NoSuchUpload));
    assert_eq!(
        bucket.catalog.parts(&id, 0, 10).await.unwrap(),
        [one.clone(), two.clone()]
    );
    assert_eq!(bucket.inline_data("o").await.unwrap(), "there");

    let freed = bucket.catalog.abort_upload(&id).await.unwrap();
    assert_eq!(freed.freed, [one.blob.id, two.blob.id]);
    assert_eq!(freed.made_by.as_deref(), Some("AKANN"));
    let gone = bucket.catalog.put_part(id, part(1, 1)).await;
    assert!(matches!(gone, Err(StoreError::NoSuchUpload)));
    assert!(matches!(
        bucket.catalog.abort_upload(&id).await,
        Err(StoreError::NoSuchUpload)
    ));
    let error = complete(completed("o", &[&one]), Precondition::None).await;
    assert!(matches!(error, StoreError::NoSuchUpload));
}

#[tokio::test]
async fn a_bucket_with_an_upload_is_not_empty() {
    let bucket = Bucket::in_memory().await;
    let id = begin(&bucket, "o").await;
    assert!(!bucket.catalog.is_empty().await.unwrap());
    bucket.catalog.abort_upload(&id).await.unwrap();
    assert!(bucket.catalog.is_empty().await.unwrap());
}

#[tokio::test]
async fn ten_thousand_parts_make_one_object_and_a_range_loads_only_what_it_needs() {
    let mut bucket = Bucket::in_memory().await;
    let id = begin(&bucket, "o").await;
    // In an order that is far from ascending; 7,919 is coprime to 10,000.
    let parts: Vec<_> = (0..10_000u32)
        .map(|index| part(index * 7_919 % 10_000 + 1, 1000))
        .collect();
    let puts = parts
        .iter()
        .map(|part| bucket.catalog.put_part(id, part.clone()));
    join_all(puts)
        .await
        .into_iter()
        .for_each(|put| assert_eq!(put.unwrap(), None));
    let mut sorted: Vec<_> = parts.iter().collect();
    sorted.sort_by_key(|part| part.number);
    let object = completed("o", &sorted);
    bucket
        .catalog
        .complete_upload(&id, object, Precondition::Absent)
        .await
        .unwrap();
    bucket.reopen().await;

    let (head, _) = read(&bucket.catalog, "o").await.unwrap().unwrap();
    assert_eq!((head.size_bytes, head.part_count), (10_000_000, 10_000));
    let expect = |numbers: std::ops::Range<usize>| -> Vec<BlobRef> {
        sorted[numbers]
            .iter()
            .map(|part| part.blob.clone())
            .collect()
    };
    assert_eq!(covering(&bucket, "o", 0..1).await, (0, expect(0..1)));
    assert_eq!(covering(&bucket, "o", 999..1001).await, (0, expect(0..2)));
    assert_eq!(
        covering(&bucket, "o", 1000..2000).await,
        (1000, expect(1..2))
    );
    assert_eq!(
        covering(&bucket, "o", 5_000_500..5_002_001).await,
        (5_000_000, expect(5000..5003))
    );
    assert_eq!(
        covering(&bucket, "o", 9_999_999..10_000_000).await,
        (9_999_000, expect(9999..10_000))
    );
    assert_eq!(
        covering(&bucket, "o", 0..10_000_000).await,
        (0, expect(0..10_000))
    );
    let range = bucket
        .catalog
        .part_range(&name("o"), Which::Current, 10_000)
        .await
        .unwrap();
    assert_eq!(range, Some(9_999_000..10_000_000));
    let outcome = bucket
        .catalog
        .put(inline("o", b""), Precondition::None)
        .await
        .unwrap();
    assert_eq!(outcome.replaced.len(), 10_000);
    assert_eq!(bucket.catalog.blob_ids(None, 1).await.unwrap(), []);
}

#[tokio::test]
async fn a_finished_upload_is_remembered_for_a_day() {
    const DAY_MS: i64 = 24 * 3_600 * 1_000;
    let mut bucket = Bucket::in_memory().await;
    let mut finish = Vec::new();
    for at_ms in [7, DAY_MS, 2 * DAY_MS] {
        let id = begin(&bucket, "a").await;
        let stored = part(1, 10);
        bucket.catalog.put_part(id, stored.clone()).await.unwrap();
        let mut object = completed("a", &[&stored]);
        object.modified_ms = at_ms;
        let done = bucket
            .catalog
            .complete_upload(&id, object, Precondition::None);
        done.await.unwrap();
        finish.push(id);
    }
    bucket
        .catalog
        .delete(gone(&name("a"), Precondition::None))
        .await
        .unwrap();
    bucket.reopen().await;
    let asked = |id: UploadId, request: [u8; 32], now_ms: i64| {
        let catalog = bucket.catalog.clone();
        async move {
            catalog
                .finished_upload(&id, &request, now_ms)
                .await
                .unwrap()
        }
    };
    let found = asked(finish[2], [7; 32], 2 * DAY_MS).await.unwrap();
    assert_eq!((found.etag.as_str(), found.size_bytes), ("whole", 10));
    assert_eq!(found.finished_ms, 2 * DAY_MS);
    assert!(asked(finish[2], [7; 32], 3 * DAY_MS - 1).await.is_some());
    assert_eq!(asked(finish[2], [7; 32], 3 * DAY_MS).await, None);
    assert_eq!(asked(finish[2], [8; 32], 2 * DAY_MS).await, None);
    assert_eq!(asked(UploadId([1; 16]), [7; 32], 2 * DAY_MS).await, None);
    // What is older is gone from the table, not only passed over.
    assert_eq!(asked(finish[0], [7; 32], 0).await, None);
    assert_eq!(asked(finish[1], [7; 32], 0).await, None);
}
