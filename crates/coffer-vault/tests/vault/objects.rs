//! Objects put, read, replaced and deleted.

use bytes::Bytes;
use coffer_vault::record::{Details, Precondition, Tags};
use coffer_vault::*;
use futures::{StreamExt, TryStreamExt, stream};

use crate::door::{Door, blob_files, bytes, door, eventually, gone, incoming, name, put};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_comes_back_whole_and_in_ranges_also_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let sizes = [0, 1, 16_383, 16_384, 16_385, 32_768, 300_001];
    {
        let door = door(data.path()).await;
        for size in sizes {
            let stored = door.put(&format!("o{size}"), &bytes(size)).await.unwrap();
            assert_eq!(stored.size_bytes, size as u64);
            assert!(stored.etag.ends_with("-1") && stored.etag.len() == 34);
            assert_eq!(stored.level, "default");
        }
        door.vault.close().await;
    }
    let door = door(data.path()).await;
    assert!(!door.vault.first_start());
    for size in sizes {
        let object = format!("o{size}");
        assert_eq!(
            door.read(&object, RangeRequest::All).await.unwrap(),
            bytes(size),
            "{size}"
        );
        for first in [0, size / 3, size.saturating_sub(1)] {
            let range = RangeRequest::FromTo {
                first: first as u64,
                last: Some(first as u64 + 999),
            };
            match door.read(&object, range).await {
                Ok(read) => assert_eq!(read, bytes(size)[first..(first + 1000).min(size)]),
                Err(VaultError::InvalidRange { .. }) => assert_eq!(size, 0),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upload_leaves_nothing() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    let content = bytes(100_000);

    let mut short = put("short", &content);
    short.incoming.declared_bytes = Some(100_001);
    let mut long = put("long", &content);
    long.incoming.declared_bytes = Some(99_999);
    let mut wrong = put("wrong", &content);
    wrong.incoming.check = Box::new(|_| Err(VaultError::BadDigest { what: "CRC32" }));
    let mut broken = put("broken", &content);
    let pieces: Vec<Result<Bytes, BodyError>> = vec![
        Ok(content.slice(..50_000)),
        Err(BodyError("connection reset".into())),
    ];
    broken.incoming.body = Box::pin(stream::iter(pieces));
    let mut conditional = put("conditional", &content);
    conditional.precondition = Precondition::Etag("none".into());

    for refused in [short, long, wrong, broken, conditional] {
        let told = format!("{:?}", refused.name);
        let outcome = door
            .vault
            .put_object(&door.subject, &door.bucket, refused)
            .await;
        assert!(outcome.is_err(), "{told}");
    }
    assert_eq!(door.names().await, Vec::<String>::new());
    eventually("no blob is left", || blob_files(data.path()).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_finishes_while_its_object_is_replaced_and_deleted() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    let content = bytes(2_000_000);
    door.put("o", &content).await.unwrap();
    let options = ReadOptions::default();
    let read = door
        .vault
        .read_object(&door.subject, &door.bucket, &name("o"), options)
        .await
        .unwrap();
    let mut body = read.body;
    let first = body.next().await.unwrap().unwrap();

    door.put("o", &bytes(20_000)).await.unwrap();
    door.vault
        .delete_object(
            &door.subject,
            &door.bucket,
            gone(name("o"), Precondition::None),
        )
        .await
        .unwrap();
    let rest: Vec<Bytes> = body.by_ref().try_collect().await.unwrap();
    assert_eq!([&first[..], &rest.concat()[..]].concat(), content);
    drop(body);
    assert!(matches!(
        door.read("o", RangeRequest::All).await,
        Err(VaultError::NoSuchObject)
    ));
    eventually("its file is gone", || blob_files(data.path()).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn multipart_objects_are_their_parts_in_order() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    let content = bytes((5 << 20) * 2 + 12_345);
    let stored = upload_in_parts(&door, &content).await;
    assert!(stored.etag.ends_with("-3"));
    assert_eq!(stored.size_bytes, content.len() as u64);
    assert_eq!(door.read("m", RangeRequest::All).await.unwrap(), content);
    let across = RangeRequest::FromTo {
        first: (5 << 20) - 10,
        last: Some((10 << 20) + 9),
    };
    assert_eq!(
        door.read("m", across).await.unwrap(),
        content[(5 << 20) - 10..(10 << 20) + 10]
    );
    let third = door.read("m", RangeRequest::Part(3)).await.unwrap();
    assert_eq!(third, content[10 << 20..]);
    assert!(matches!(
        door.read("m", RangeRequest::Part(4)).await,
        Err(VaultError::NoSuchPart)
    ));

    // The same bytes in one piece have the same full-object checksum.
    let whole = door.put("whole", &content).await.unwrap();
    assert_eq!(whole.checksum, stored.checksum);
    assert!(whole.checksum.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_arrives_for_a_bucket_that_was_deleted_meanwhile_hears_that_it_is_gone() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    let content = bytes(4 << 20);
    let [first, rest] = [content.slice(..3 << 20), content.slice(3 << 20..)];
    let (go_on, waits) = tokio::sync::oneshot::channel::<()>();
    let last = stream::once(async move {
        waits.await.unwrap();
        Ok::<Bytes, BodyError>(rest)
    });
    let mut slow = put("o", &content);
    slow.incoming.body = Box::pin(stream::iter([Ok::<Bytes, BodyError>(first)]).chain(last));
    let (vault, subject) = (door.vault.clone(), door.subject.clone());
    let bucket = door.bucket.clone();
    let under_way = tokio::spawn(async move { vault.put_object(&subject, &bucket, slow).await });
    eventually("its blob is begun", || !blob_files(data.path()).is_empty()).await;
    let deleted = door.vault.delete_bucket(&door.subject, &door.bucket).await;
    deleted.unwrap();
    go_on.send(()).unwrap();
    let refused = under_way.await.unwrap();
    assert!(matches!(refused, Err(VaultError::NoSuchBucket)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_bucket_is_gone_with_its_folder_and_a_full_one_stays() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    let (vault, subject) = (&door.vault, &door.subject);
    door.put("o", &bytes(1)).await.unwrap();
    let full = vault.delete_bucket(subject, &door.bucket).await;
    assert!(matches!(full, Err(VaultError::BucketNotEmpty)));
    vault
        .delete_object(subject, &door.bucket, gone(name("o"), Precondition::None))
        .await
        .unwrap();
    vault.delete_bucket(subject, &door.bucket).await.unwrap();
    assert!(matches!(
        vault.bucket(subject, &door.bucket).await,
        Err(VaultError::NoSuchBucket)
    ));
    assert_eq!(
        std::fs::read_dir(data.path().join("buckets"))
            .unwrap()
            .count(),
        0
    );
    vault
        .create_bucket(subject, &door.bucket, None)
        .await
        .unwrap();
}

/// Uploads `content` as the object `m` in three parts of 5 MiB or less, the last one first.
async fn upload_in_parts(door: &Door, content: &Bytes) -> Stored {
    let (vault, subject, bucket) = (&door.vault, &door.subject, &door.bucket);
    let new = NewUpload {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        acl_sent: Default::default(),
        name: name("m"),
        details: Details::default(),
        tags: Tags::new(),
        checksum: None,
    };
    let upload = vault.create_upload(subject, bucket, new).await.unwrap().id;
    let mut parts = Vec::new();
    for number in [3u32, 1, 2] {
        let begin = (number as usize - 1) * (5 << 20);
        let piece = content.slice(begin..(begin + (5 << 20)).min(content.len()));
        let incoming = incoming(&piece, 1 << 20);
        let part = PutPart {
            customer_key: None,
            name: name("m"),
            upload,
            number,
            incoming,
        };
        let stored = vault.put_part(subject, bucket, part).await.unwrap();
        parts.push(CompletedPart {
            number,
            etag: stored.etag,
            checksum: None,
        });
    }
    let complete = |parts: &[CompletedPart]| CompleteUpload {
        name: name("m"),
        upload,
        parts: parts.to_vec(),
        checksum: None,
        size_bytes: None,
        precondition: Precondition::None,
    };
    let unordered = vault
        .complete_upload(subject, bucket, complete(&parts))
        .await;
    assert!(matches!(unordered, Err(VaultError::InvalidPartOrder)));
    parts.sort_by_key(|part| part.number);
    vault
        .complete_upload(subject, bucket, complete(&parts))
        .await
        .unwrap()
}
