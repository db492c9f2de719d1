//! Damage, recovery, lost files, and a server that is stopped.

use bytes::Bytes;
use coffer_vault::record::ObjectName;
use coffer_vault::version::Which;
use coffer_vault::*;
use futures::{StreamExt, TryStreamExt};

use crate::door::{blob_files, bytes, door, eventually, name};

async fn walked(vault: &Vault) -> Vec<VerifyEvent> {
    let owner = Actor::Local { uid: 0 };
    vault
        .verify(&owner, VerifyDepth::Everything, None)
        .await
        .unwrap()
        .collect()
        .await
}

/// Where damage was told: buckets, and names of objects.
fn damaged(events: &[VerifyEvent]) -> Vec<(&str, Option<ObjectName>)> {
    let mut places = Vec::new();
    for event in events {
        if let VerifyEvent::Damage { bucket, name, .. } = event {
            let bucket = bucket.as_ref().map_or("", BucketName::as_str);
            places.push((bucket, name.clone()));
        }
    }
    places
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
        which: Which::Current,
        customer_key: None,
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

    let events = walked(&door.vault).await;
    let damaged = damaged(&events);
    assert_eq!(damaged, [("bucket", Some(name("bad")))]);
    let done = VerifyEvent::Done {
        checked_count: 2,
        checked_bytes: 0,
        damage_count: 1,
        rollback_count: 0,
        client_key_count: 0,
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

/// Names are secret from those who look after the server, whatever their roles.
#[tokio::test(flavor = "multi_thread")]
async fn verify_names_no_object_to_a_subject() {
    let data = tempfile::tempdir().unwrap();
    let door = door(data.path()).await;
    for object in ["one-secret", "other-secret"] {
        door.put(object, &bytes(100_000)).await.unwrap();
    }
    for file in blob_files(data.path()) {
        let mut sealed = std::fs::read(&file).unwrap();
        sealed[50_000] ^= 1;
        std::fs::write(&file, sealed).unwrap();
    }
    let all_roles = Actor::Subject(door.subject.clone());
    assert!(Role::ALL.into_iter().all(|role| all_roles.has(role)));
    let walk = door.vault.verify(&all_roles, VerifyDepth::Everything, None);
    let events: Vec<_> = walk.await.unwrap().collect().await;
    let damaged = damaged(&events);
    assert_eq!(damaged, [("bucket", None), ("bucket", None)]);
    let text = format!("{events:?}");
    assert!(!text.contains("-secret"), "{text}");
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
    let options = VaultOptions::new(data.path().to_owned());
    let opened = Vault::open(options).await;
    assert!(matches!(
        opened.err(),
        Some(VaultError::SystemMissing { .. })
    ));
    assert!(!data.path().join("system.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_servers_data_opens_offline_even_without_the_system_database() {
    let data = tempfile::tempdir().unwrap();
    let content = bytes(123_456);
    {
        let door = door(data.path()).await;
        door.put("large", &content).await.unwrap();
        door.put("small", &bytes(100)).await.unwrap();
        let held = offline::Offline::open(data.path(), None, &Default::default());
        assert!(matches!(held.err(), Some(VaultError::FolderInUse { .. })));
        door.vault.close().await;
    }
    for damage in [false, true] {
        if damage {
            std::fs::write(data.path().join("system.db"), b"not a database at all").unwrap();
        }
        let offline = offline::Offline::open(data.path(), None, &Default::default()).unwrap();
        let buckets = offline.buckets().await;
        assert_eq!(buckets[0].name.as_deref(), Some("bucket"));
        let (head, body) = offline
            .read("bucket", &name("large"), Which::Current)
            .await
            .unwrap();
        assert_eq!(head.size_bytes, content.len() as u64);
        let parts: Vec<Bytes> = body.try_collect().await.unwrap();
        assert_eq!(parts.concat(), content);

        let keys = offline
            .keys("bucket", &name("large"), Which::Current)
            .await
            .unwrap();
        let offline::ObjectKeys::Blobs(blobs) = keys else {
            panic!("it has a blob")
        };
        let sealed = std::fs::read(data.path().join(&blobs[0].blob_file)).unwrap();
        let context = coffer_seal::Context::raw(blobs[0].context.clone());
        let opened = coffer_seal::open(&blobs[0].data_key, &context, &sealed).unwrap();
        assert_eq!(*opened, content);
    }
}
