//! The vault as a front door sees it, on a real folder.

#![allow(clippy::unwrap_used)] // a failed expectation of a test is its failure

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::record::{Details, ListQuery, ObjectName, Precondition, Tags};
use coffer_vault::*;
use futures::{StreamExt, TryStreamExt, stream};

struct Door {
    vault: Vault,
    subject: Arc<Subject>,
    bucket: BucketName,
}

async fn open(data: &Path) -> Vault {
    Vault::open(VaultOptions {
        data: data.to_owned(),
        etag: EtagStyle::Random,
    })
    .await
    .unwrap()
}

fn access_key_id(data: &Path) -> String {
    let text = std::fs::read_to_string(data.join("credentials")).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("aws_access_key_id"))
        .unwrap();
    line.split(" = ").nth(1).unwrap().to_owned()
}

async fn door(data: &Path) -> Door {
    let vault = open(data).await;
    let subject = vault.subject(&access_key_id(data)).unwrap();
    let bucket = BucketName::new("bucket").unwrap();
    match vault.create_bucket(&subject, &bucket, None).await {
        Ok(_) | Err(VaultError::BucketAlreadyOwnedByYou) => {}
        Err(error) => panic!("{error}"),
    }
    Door {
        vault,
        subject,
        bucket,
    }
}

fn name(name: &str) -> ObjectName {
    ObjectName::new(name).unwrap()
}

fn bytes(length: usize) -> Bytes {
    (0..length)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 7) as u8)
        .collect()
}

fn incoming(content: &Bytes, piece: usize) -> Incoming {
    let pieces: Vec<_> = content
        .chunks(piece)
        .map(|piece| Ok(content.slice_ref(piece)))
        .collect();
    Incoming {
        declared_bytes: Some(content.len() as u64),
        digests: DigestPlan::default(),
        body: Box::pin(stream::iter(pieces)),
        check: Box::new(|_| Ok(())),
    }
}

fn put(object: &str, content: &Bytes) -> PutObject {
    PutObject {
        name: name(object),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming: incoming(content, 10_000),
    }
}

impl Door {
    async fn put(&self, object: &str, content: &Bytes) -> Result<Stored> {
        self.vault
            .put_object(&self.subject, &self.bucket, put(object, content))
            .await
    }

    async fn read(&self, object: &str, range: RangeRequest) -> Result<Vec<u8>> {
        let options = ReadOptions {
            range,
            ..ReadOptions::default()
        };
        let read = self
            .vault
            .read_object(&self.subject, &self.bucket, &name(object), options)
            .await?;
        let parts: Vec<Bytes> = read.body.try_collect().await?;
        Ok(parts.concat())
    }

    async fn names(&self) -> Vec<String> {
        let query = ListQuery {
            limit: 1_000,
            ..ListQuery::default()
        };
        let page = self
            .vault
            .list_objects(&self.subject, &self.bucket, query)
            .await
            .unwrap();
        page.objects
            .iter()
            .map(|object| object.name.expose().to_owned())
            .collect()
    }
}

/// Files under a folder, and the bytes in them.
fn blob_files(data: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![data.join("buckets")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "blobs") {
                files.push(path);
            }
        }
    }
    files
}

/// Waits for what happens in the background, for five seconds at most.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

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
        .delete_object(&door.subject, &door.bucket, &name("o"), Precondition::None)
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
    let (vault, subject, bucket) = (&door.vault, &door.subject, &door.bucket);
    let new = NewUpload {
        name: name("m"),
        details: Details::default(),
        tags: Tags::new(),
        checksum: None,
    };
    let upload = vault.create_upload(subject, bucket, new).await.unwrap().id;
    let content = bytes((5 << 20) * 2 + 12_345);
    let mut parts = Vec::new();
    for number in [3u32, 1, 2] {
        let begin = (number as usize - 1) * (5 << 20);
        let piece = content.slice(begin..(begin + (5 << 20)).min(content.len()));
        let incoming = incoming(&piece, 1 << 20);
        let part = PutPart {
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
    let stored = vault
        .complete_upload(subject, bucket, complete(&parts))
        .await
        .unwrap();
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
async fn damage_is_an_error_counted_and_named_by_verify() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    door.put("good", &bytes(500_000)).await.unwrap();
    door.put("bad", &bytes(700_000)).await.unwrap();
    let file = blob_files(data.path())
        .into_iter()
        .find(|file| file.metadata().unwrap().len() > 600_000)
        .unwrap();
    let mut sealed = std::fs::read(&file).unwrap();
    sealed[400_000] ^= 1;
    std::fs::write(&file, sealed).unwrap();

    assert_eq!(
        door.read("good", RangeRequest::All).await.unwrap(),
        bytes(500_000)
    );
    assert!(matches!(
        door.read("bad", RangeRequest::All).await,
        Err(VaultError::Damaged)
    ));
    let sound = RangeRequest::FromTo {
        first: 0,
        last: Some(99_999),
    };
    assert_eq!(
        door.read("bad", sound).await.unwrap(),
        bytes(700_000)[..100_000]
    );
    assert_eq!(door.vault.counters().damage_count, 1);

    // What is damaged from the start on is told before there is a body.
    let at_once = ReadOptions {
        range: RangeRequest::FromTo {
            first: 400_000,
            last: None,
        },
        ..ReadOptions::default()
    };
    let bad = name("bad");
    let read = door
        .vault
        .read_object(&door.subject, &door.bucket, &bad, at_once);
    assert!(matches!(read.await.err(), Some(VaultError::Damaged)));

    let events: Vec<_> = door.vault.verify(None).collect().await;
    let damaged: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            VerifyEvent::Damage { bucket, name, .. } => Some((bucket.as_str(), name.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(damaged, [("bucket", Some(name("bad")))]);
    let done = VerifyEvent::Done {
        checked_count: 2,
        checked_bytes: 0,
        damage_count: 1,
    };
    let Some(VerifyEvent::Done {
        checked_count,
        damage_count,
        ..
    }) = events.last()
    else {
        panic!("{done:?} expected");
    };
    assert_eq!((*checked_count, *damage_count), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn orphans_and_remains_are_reclaimed_after_a_start() {
    let data = tempfile::tempdir().unwrap();
    {
        let door = door(data.path()).await;
        door.put("o", &bytes(50_000)).await.unwrap();
        door.vault.close().await;
    }
    let known = blob_files(data.path());
    assert_eq!(known.len(), 1);
    let orphan = known[0].with_file_name("00".repeat(15));
    std::fs::copy(&known[0], &orphan).unwrap();

    let door = door(data.path()).await;
    eventually("the orphan is gone", || !orphan.exists()).await;
    assert_eq!(
        door.read("o", RangeRequest::All).await.unwrap(),
        bytes(50_000)
    );
    eventually("it is counted", || {
        door.vault.counters().reclaimed_count == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_system_database_is_not_made_anew() {
    let data = tempfile::tempdir().unwrap();
    door(data.path()).await.vault.close().await;
    std::fs::remove_file(data.path().join("system.db")).unwrap();
    let options = VaultOptions {
        data: data.path().to_owned(),
        etag: EtagStyle::Random,
    };
    let opened = Vault::open(options).await;
    assert!(matches!(
        opened.err(),
        Some(VaultError::SystemMissing { .. })
    ));
    assert!(!data.path().join("system.db").exists());
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
        .delete_object(subject, &door.bucket, &name("o"), Precondition::None)
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

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_servers_data_opens_offline_even_without_the_system_database() {
    let data = tempfile::tempdir().unwrap();
    let content = bytes(123_456);
    {
        let door = door(data.path()).await;
        door.put("large", &content).await.unwrap();
        door.put("small", &bytes(100)).await.unwrap();
        let held = offline::Offline::open(data.path());
        assert!(matches!(held.err(), Some(VaultError::FolderInUse { .. })));
        door.vault.close().await;
    }
    for damage in [false, true] {
        if damage {
            std::fs::write(data.path().join("system.db"), b"not a database at all").unwrap();
        }
        let offline = offline::Offline::open(data.path()).unwrap();
        let buckets = offline.buckets().await;
        assert_eq!(buckets[0].name.as_deref(), Some("bucket"));
        let (head, body) = offline.read("bucket", &name("large")).await.unwrap();
        assert_eq!(head.size_bytes, content.len() as u64);
        let parts: Vec<Bytes> = body.try_collect().await.unwrap();
        assert_eq!(parts.concat(), content);

        let keys = offline.keys("bucket", &name("large")).await.unwrap();
        let offline::ObjectKeys::Blobs(blobs) = keys else {
            panic!("it has a blob")
        };
        let sealed = std::fs::read(data.path().join(&blobs[0].blob_file)).unwrap();
        let context = coffer_seal::Context::raw(blobs[0].context.clone());
        let opened = coffer_seal::open(&blobs[0].data_key, &context, &sealed).unwrap();
        assert_eq!(*opened, content);
    }
}
