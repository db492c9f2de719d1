//! Erases as those meet them who read, write or approve.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_keys::LevelOptions;
use coffer_vault::version::Which;
use coffer_vault::*;
use futures::{StreamExt, TryStreamExt, stream};

use crate::door::{self, Door, bytes, name, put};

const LOCAL: Actor = Actor::Local { uid: 0 };

fn level(name: &str, approvals: u8) -> NewLevel {
    NewLevel {
        name: name.into(),
        label: coffer_label::Label::LOWEST,
        options: LevelOptions {
            approvals,
            ..LevelOptions::default()
        },
        may_share_label: true,
    }
}

async fn scene(data: &std::path::Path, approvals: u8) -> Door {
    let mut door = door::door(data).await;
    door.vault
        .create_level(&LOCAL, level("doomed", approvals))
        .await
        .unwrap();
    door.bucket = BucketName::new("of-the-doomed").unwrap();
    let made = door
        .vault
        .create_bucket(&door.subject, &door.bucket, Some("doomed"));
    made.await.unwrap();
    door
}

fn all() -> ReadOptions {
    ReadOptions {
        which: Which::Current,
        customer_key: None,
        conditions: Conditions::default(),
        range: RangeRequest::All,
    }
}

fn receipt(asked: GuardedOutcome) -> coffer_keys::receipt::Receipt {
    match asked {
        GuardedOutcome::Erased(receipt) => *receipt,
        other => panic!("{other:?} is no receipt"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_writers_are_cut_off_before_the_erase_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let Door {
        vault,
        subject,
        bucket,
    } = &scene(folder.path(), 1).await;
    let content = bytes(3 << 20);
    vault
        .put_object(subject, bucket, put("large", &content))
        .await
        .unwrap();

    let connection = ConnectionCutoff::default();
    let large = name("large");
    let read = connection.scope(vault.read_object(subject, bucket, &large, all()));
    let mut body = read.await.unwrap().body;
    assert!(body.next().await.unwrap().is_ok());
    let waits = tokio::spawn({
        let connection = connection.clone();
        async move { connection.cut_off().await }
    });
    // An upload whose client sends nothing more.
    let stalled = {
        let (vault, subject, bucket) = (vault.clone(), subject.clone(), bucket.clone());
        let mut stalled = put("stalled", &content);
        let first = stream::iter([Ok(content.slice(..20_000))]);
        stalled.incoming.body = Box::pin(first.chain(stream::pending()));
        tokio::spawn(async move { vault.put_object(&subject, &bucket, stalled).await })
    };
    tokio::time::sleep(Duration::from_millis(50)).await;
    // As the front door does: cut off, it drops the connection with what is on it.
    let front_door = tokio::spawn(async move {
        waits.await.unwrap();
        let last = body.next().await;
        assert!(
            matches!(last, Some(Err(VaultError::NoSuchBucket))),
            "no plaintext after the cut"
        );
        assert!(body.next().await.is_none());
        drop((body, connection));
    });
    let begun = Instant::now();
    let receipt = receipt(vault.erase_level(&LOCAL, "doomed").await.unwrap());
    let took = begun.elapsed();
    assert!(front_door.is_finished() && stalled.is_finished());
    front_door.await.unwrap();
    assert!(matches!(
        stalled.await.unwrap(),
        Err(VaultError::NoSuchBucket)
    ));
    assert!(took < Duration::from_secs(1), "it took {took:?}");
    assert_eq!((receipt.erased.objects, receipt.erased.bytes), (1, 3 << 20));
    assert!(
        receipt
            .verification
            .iter()
            .any(|line| line.contains("1 connections")),
        "{receipt:?}"
    );
    nothing_is_left(vault, subject, bucket).await;
}

async fn nothing_is_left(vault: &Vault, subject: &Arc<Subject>, bucket: &BucketName) {
    let gone = vault
        .read_object(subject, bucket, &name("large"), all())
        .await;
    assert!(matches!(gone.err(), Some(VaultError::NoSuchBucket)));
    let again = vault.create_bucket(subject, bucket, Some("doomed")).await;
    assert!(matches!(again, Err(VaultError::NoSuchLevel)));
    vault.create_bucket(subject, bucket, None).await.unwrap();
    let listed = vault
        .list_objects(subject, bucket, Default::default())
        .await
        .unwrap();
    assert!(
        listed.objects.is_empty(),
        "a new bucket of the old name is another one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_counts_of_a_receipt_need_no_walk_and_survive_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let door = scene(folder.path(), 1).await;
    for number in 0..40 {
        let object = put(&format!("object {number}"), &bytes(100));
        door.vault
            .put_object(&door.subject, &door.bucket, object)
            .await
            .unwrap();
    }
    door.vault.close().await;
    let bucket = door.bucket.clone();
    drop(door);
    let vault = door::open(folder.path()).await;
    let receipt = receipt(vault.erase_bucket(&LOCAL, &bucket).await.unwrap());
    assert_eq!((receipt.erased.objects, receipt.erased.bytes), (40, 4_000));
    assert_eq!(receipt.erased.level.name, "doomed");
    let key = vault.receipt_public_key().unwrap();
    receipt.verify(&key).unwrap();
    let listed = vault.receipts(&LOCAL, None).await.unwrap();
    assert_eq!(listed[0].id, receipt.id);
    assert!(
        vault
            .receipts(&LOCAL, Some(listed[0].signed_ms))
            .await
            .unwrap()
            .is_empty()
    );
    let none = vault.receipt(&LOCAL, "no such").await;
    assert!(matches!(none, Err(VaultError::NoSuchReceipt)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_of_two_custodians_takes_two() {
    let folder = tempfile::tempdir().unwrap();
    let door = scene(folder.path(), 2).await;
    let vault = &door.vault;
    let other = Actor::Subject(door.subject.clone());
    let GuardedOutcome::Waits(request) = vault.erase_level(&LOCAL, "doomed").await.unwrap() else {
        panic!("it needs an approval")
    };
    assert_eq!(
        (request.approvals, request.requested_by.as_str()),
        (2, "local:0")
    );
    let GuardedOutcome::Waits(same) = vault.erase_level(&other, "doomed").await.unwrap() else {
        panic!("asking twice is no approval")
    };
    assert_eq!(same, request);
    // Another user at the local socket is the same person.
    let own = vault
        .approve(&Actor::Local { uid: 1_000 }, &request.id)
        .await;
    assert!(matches!(own, Err(VaultError::AnotherPersonNeeded)));
    let listed = vault.requests(&other).await.unwrap();
    assert_eq!(listed.first(), Some(&request));
    vault.withdraw(&other, &request.id).await.unwrap();
    let late = vault.approve(&other, &request.id).await;
    assert!(matches!(late, Err(VaultError::NoSuchRequest)));

    let GuardedOutcome::Waits(request) = vault.erase_level(&other, "doomed").await.unwrap() else {
        panic!("it needs an approval")
    };
    vault.close().await;
    let bucket = door.bucket.clone();
    let key = door.subject.access_key_id().unwrap().to_owned();
    let person = door.subject.id().to_string();
    drop((other, door));
    let vault = door::open(folder.path()).await;
    let receipt = receipt(vault.approve(&LOCAL, &request.id).await.unwrap());
    let people: Vec<_> = receipt
        .performed_by
        .iter()
        .map(|one| (&*one.name, &*one.role))
        .collect();
    assert_eq!(people, [(&*person, "requested"), ("local:0", "approved")]);
    assert!(vault.requests(&LOCAL).await.unwrap().is_empty());
    let subject = vault.subject(&key).unwrap();
    assert!(matches!(
        vault.bucket(&subject, &bucket).await,
        Err(VaultError::NoSuchBucket)
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_such_a_level_takes_two_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let door = scene(folder.path(), 2).await;
    let vault = &door.vault;
    let content = bytes(30_000);
    door.put("large", &content).await.unwrap();
    let asked = vault.erase_bucket(&LOCAL, &door.bucket).await.unwrap();
    let GuardedOutcome::Waits(request) = asked else {
        panic!("it needs an approval")
    };
    let listed = vault.requests(&LOCAL).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&request));
    let read = door.read("large", RangeRequest::All).await.unwrap();
    assert_eq!(read, content, "nothing has been erased yet");
    let alone = vault.approve(&LOCAL, &request.id).await;
    assert!(matches!(alone, Err(VaultError::AnotherPersonNeeded)));
    door.read("large", RangeRequest::All).await.unwrap();

    let other = Actor::Subject(door.subject.clone());
    let receipt = receipt(vault.approve(&other, &request.id).await.unwrap());
    assert_eq!((receipt.erased.objects, receipt.erased.bytes), (1, 30_000));
    assert_eq!(receipt.performed_by.len(), 2);
    let gone = door.read("large", RangeRequest::All).await;
    assert!(matches!(gone, Err(VaultError::NoSuchBucket)));
    assert!(vault.requests(&LOCAL).await.unwrap().is_empty());
    vault.level(&LOCAL, "doomed").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_no_custodian_any_more_has_no_say() {
    let folder = tempfile::tempdir().unwrap();
    let door = scene(folder.path(), 3).await;
    let vault = &door.vault;
    let custodian = async |name: &str| {
        let new = NewSubject {
            is_trusted: false,
            name: name.to_owned(),
            clearance: "default".to_owned(),
            roles: "key-custodian".parse().unwrap(),
            expires_ms: None,
            grants: None,
        };
        let (info, _) = vault.create_subject(&LOCAL, new).await.unwrap();
        Actor::Subject(info.subject)
    };
    let leave = async |name: &str| {
        let change = SubjectChange {
            is_disabled: Some(true),
            ..SubjectChange::default()
        };
        vault
            .change_subject(&LOCAL, name, change, false)
            .await
            .unwrap();
    };
    let ask = async |actor: &Actor| match vault.erase_level(actor, "doomed").await.unwrap() {
        GuardedOutcome::Waits(request) => request.id,
        other => panic!("it needs approvals: {other:?}"),
    };
    let (one, other) = (custodian("one").await, custodian("other").await);
    let asked = ask(&LOCAL).await;
    vault.approve(&one, &asked).await.unwrap();
    leave("one").await;
    let GuardedOutcome::Waits(request) = vault.approve(&other, &asked).await.unwrap() else {
        panic!("one of the approvals does not count any more")
    };
    assert_eq!(request.approved_by, [other.to_string()]);
    vault.withdraw(&LOCAL, &asked).await.unwrap();

    let asked = ask(&other).await;
    leave("other").await;
    let approved = vault.approve(&LOCAL, &asked).await;
    assert!(matches!(approved, Err(VaultError::RequesterGone)));
    vault.bucket(&door.subject, &door.bucket).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erase_under_load_loses_nothing_of_other_levels() {
    let folder = tempfile::tempdir().unwrap();
    let door = scene(folder.path(), 1).await;
    let kept = BucketName::new("bucket").unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let worker = |number: usize, bucket: BucketName| {
        let (vault, subject, stop) = (door.vault.clone(), door.subject.clone(), stop.clone());
        tokio::spawn(async move {
            let mut stored: Vec<(String, Bytes)> = Vec::new();
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let data = bytes(1 + stored.len() * 3_001 % 40_000);
                let object = format!("{number}/{}", stored.len());
                match vault
                    .put_object(&subject, &bucket, put(&object, &data))
                    .await
                {
                    Ok(_) => stored.push((object, data)),
                    Err(
                        VaultError::NoSuchBucket | VaultError::BucketInDoubt | VaultError::Store(_),
                    ) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            stored
        })
    };
    let workers: Vec<_> = (0..6)
        .map(|number| {
            worker(
                number,
                if number % 2 == 0 { &kept } else { &door.bucket }.clone(),
            )
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let receipt = receipt(door.vault.erase_level(&LOCAL, "doomed").await.unwrap());
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut gone_count = 0;
    for (number, worker) in workers.into_iter().enumerate() {
        let stored = worker.await.unwrap();
        if number % 2 == 1 {
            gone_count += stored.len() as u64;
            continue;
        }
        for (object, data) in stored {
            let object = name(&object);
            let read = door.vault.read_object(&door.subject, &kept, &object, all());
            let pieces: Vec<Bytes> = read.await.unwrap().body.try_collect().await.unwrap();
            assert_eq!(pieces.concat(), data);
        }
    }
    // What was committed but could not be acknowledged any more is counted as well.
    assert!(
        (gone_count..gone_count + 4).contains(&receipt.erased.objects),
        "{receipt:?}"
    );
}
