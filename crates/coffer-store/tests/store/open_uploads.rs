//! Uploads under way as a whole.

use coffer_seal::UploadId;
use coffer_store::lock::Lock;
use coffer_store::record::{Details, Part, Upload};
use coffer_store::{EndedUploads, OpenUploads, StoreError};
use futures::future::join_all;

use crate::fixture::{Bucket, blob_ref, name};
use crate::uploads::part;

async fn begin_at(bucket: &Bucket, started_ms: i64, made_by: Option<&str>) -> UploadId {
    let upload = Upload {
        id: UploadId::random(),
        name: name("o"),
        started_ms,
        details: Details::default(),
        checksum: None,
        tags: Vec::new(),
        lock: Lock::default(),
        acl: None,
        made_by: made_by.map(str::to_owned),
    };
    let id = upload.id;
    bucket.catalog.create_upload(upload).await.unwrap();
    id
}

#[tokio::test]
async fn uploads_under_way_are_counted_and_the_old_ones_ended() {
    let bucket = Bucket::in_memory().await;
    let none = OpenUploads::default();
    assert_eq!(bucket.catalog.open_uploads(None).await.unwrap(), none);
    let mut ids = Vec::new();
    for (started_ms, made_by) in [(300, None), (100, Some("ann")), (200, Some("bob"))] {
        ids.push(begin_at(&bucket, started_ms, made_by).await);
    }
    ids.push(begin_at(&bucket, 100, Some("ann")).await);
    let (first, again) = (part(1, 70), part(1, 50));
    for part in [&first, &again, &part(2, 9)] {
        bucket.catalog.put_part(ids[1], part.clone()).await.unwrap();
    }
    bucket.catalog.put_part(ids[0], part(1, 1)).await.unwrap();
    let all = bucket.catalog.open_uploads(None).await.unwrap();
    let by_maker = [("ann".to_owned(), 2), ("bob".to_owned(), 1)].into();
    let expected = OpenUploads {
        count: 4,
        bytes: 60,
        oldest_ms: Some(100),
        by_maker,
    };
    assert_eq!(all, expected);
    let old = bucket.catalog.open_uploads(Some(200)).await.unwrap();
    assert_eq!((old.count, old.bytes, old.oldest_ms), (2, 59, Some(100)));

    let ended = bucket.catalog.end_uploads(200).await.unwrap();
    assert_eq!((ended.count, ended.bytes, ended.freed.len()), (2, 59, 2));
    assert_eq!(ended.made_by, ["ann", "ann"]);
    let none = bucket.catalog.end_uploads(200).await.unwrap();
    assert_eq!(none, EndedUploads::default());
    let gone = bucket.catalog.put_part(ids[1], part(3, 1)).await;
    assert!(matches!(gone, Err(StoreError::NoSuchUpload)));
    let left = bucket.catalog.open_uploads(None).await.unwrap();
    assert_eq!((left.count, left.bytes, left.oldest_ms), (2, 1, Some(200)));
}

#[tokio::test]
async fn ending_many_uploads_takes_transactions_of_a_bounded_size() {
    let bucket = Bucket::in_memory().await;
    for _ in 0..100 {
        begin_at(&bucket, 1, None).await;
    }
    let ended = bucket.catalog.end_uploads(2).await.unwrap();
    assert_eq!(ended.count, 64);
    let parts: Vec<_> = (1..=1_200).map(|number| part(number, 1)).collect();
    let ids = [
        begin_at(&bucket, 0, None).await,
        begin_at(&bucket, 0, None).await,
    ];
    for id in ids {
        let puts = parts.iter().map(|part| Part {
            blob: blob_ref(1),
            ..part.clone()
        });
        let puts = puts.map(|part| bucket.catalog.put_part(id, part));
        join_all(puts).await.into_iter().for_each(|put| {
            put.unwrap();
        });
    }
    for expected in [1, 1, 36, 0] {
        let ended = bucket.catalog.end_uploads(2).await.unwrap();
        assert_eq!(ended.count, expected);
    }
}
