//! Tests of what a kill leaves, between any two steps of an erase.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use coffer_keys::ErasedWhat;
use coffer_store::record::{Details, ObjectName, Precondition, Tags};
use futures::TryStreamExt;

use crate::actor::Actor;
use crate::draft::Draft;
use crate::error::{Result, VaultError};
use crate::ledger::Kind;
use crate::levels::NewLevel;
use crate::name::BucketName;
use crate::request::*;
use crate::subject::Subject;
use crate::vault::{Vault, VaultOptions};
use crate::wanted::Asked;

const LOCAL: Actor = Actor::Local { uid: 0 };
const KEPT: &[u8] = b"what stays";
const DOOMED: &[u8] = b"what goes";

async fn open(data: &Path) -> Vault {
    Vault::open(VaultOptions::new(data)).await.unwrap()
}

fn subject(vault: &Vault) -> Arc<Subject> {
    let text = fs::read_to_string(vault.data().join("credentials")).unwrap();
    let id = text.split("aws_access_key_id = ").nth(1).unwrap();
    vault.subject(id.lines().next().unwrap()).unwrap()
}

fn bucket(name: &str) -> BucketName {
    BucketName::new(name).unwrap()
}

async fn put(vault: &Vault, in_bucket: &str, data: &'static [u8]) {
    let incoming = Incoming {
        declared_bytes: Some(data.len() as u64),
        digests: DigestPlan::default(),
        body: Box::pin(futures::stream::iter([Ok(Bytes::from_static(data))])),
        check: Box::new(|_| Ok(())),
    };
    let put = PutObject {
        name: ObjectName::new("object").unwrap(),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming,
    };
    let subject = subject(vault);
    vault
        .put_object(&subject, &bucket(in_bucket), put)
        .await
        .unwrap();
}

async fn get(vault: &Vault, in_bucket: &str) -> Result<Vec<u8>> {
    let options = ReadOptions {
        conditions: Conditions::default(),
        range: RangeRequest::All,
    };
    let (subject, name) = (subject(vault), ObjectName::new("object").unwrap());
    let read = vault
        .read_object(&subject, &bucket(in_bucket), &name, options)
        .await?;
    let pieces: Vec<Bytes> = read.body.try_collect().await?;
    Ok(pieces.concat())
}

/// A server with one level to keep and one to erase, of the same label, each with a bucket.
async fn scene(data: &Path) -> Vault {
    let vault = open(data).await;
    let level = NewLevel {
        name: "doomed".into(),
        label: coffer_label::Label::LOWEST,
        options: coffer_keys::LevelOptions::default(),
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    for (name, level, data) in [("kept", "default", KEPT), ("gone", "doomed", DOOMED)] {
        let (subject, named) = (subject(&vault), bucket(name));
        let made = vault.create_bucket(&subject, &named, Some(level));
        made.await.unwrap();
        put(&vault, name, data).await;
    }
    vault
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            // With its mode.
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_any_two_steps_the_erase_has_not_begun_or_is_complete() {
    for what in [ErasedWhat::Level, ErasedWhat::Bucket] {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let vault = scene(&data).await;
        let copies: Arc<Mutex<Vec<(&'static str, PathBuf)>>> = Arc::default();
        let (probe_data, seen, into) = (data.clone(), copies.clone(), root.path().to_owned());
        *vault.inner.probe.lock().unwrap() = Some(Box::new(move |step| {
            let folder = into.join(step);
            copy(&probe_data, &folder);
            seen.lock().unwrap().push((step, folder));
        }));
        let asked = match what {
            ErasedWhat::Level => vault.erase_level(&LOCAL, "doomed").await,
            ErasedWhat::Bucket => vault.erase_bucket(&LOCAL, &bucket("gone")).await,
        };
        let Asked::Erased(receipt) = asked.unwrap() else {
            panic!("it takes no approval")
        };
        vault.close().await;
        drop(vault);
        let copies = copies.lock().unwrap().clone();
        let steps: Vec<_> = copies.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, ["cut", "drafted", "destroyed", "signed", "finished"]);
        for (step, folder) in copies {
            let has_begun = !["cut", "drafted"].contains(&step);
            look_after(step, &folder, what, has_begun).await;
        }
        look_after("acknowledged", &data, what, true).await;
        let vault = open(&data).await;
        let stored = vault.receipt(&LOCAL, &receipt.id).await.unwrap();
        assert_eq!(stored, *receipt);
    }
}

async fn look_after(step: &str, folder: &Path, what: ErasedWhat, is_complete: bool) {
    let vault = open(folder).await;
    assert_eq!(get(&vault, "kept").await.unwrap(), KEPT, "{step}");
    let left = vault.inner.system.documents::<Draft>(Kind::Erase).unwrap();
    assert!(left.is_empty(), "{step}: a draft is left");
    let receipts = vault.receipts(&LOCAL, None).await.unwrap();
    let levels = vault.inner.keystore.levels().len();
    if !is_complete {
        assert_eq!(get(&vault, "gone").await.unwrap(), DOOMED, "{step}");
        assert_eq!((receipts.len(), levels), (0, 2), "{step}");
        // Asked for again, it happens.
        let Asked::Erased(_) = vault.erase_level(&LOCAL, "doomed").await.unwrap() else {
            panic!("it takes no approval")
        };
    } else {
        let gone = get(&vault, "gone").await;
        assert!(matches!(gone, Err(VaultError::NoSuchBucket)), "{step}");
        let expected = if what == ErasedWhat::Level { 1 } else { 2 };
        assert_eq!((receipts.len(), levels), (1, expected), "{step}");
        assert_eq!((receipts[0].objects, receipts[0].bytes), (1, 9), "{step}");
        let receipt = vault.receipt(&LOCAL, &receipts[0].id).await.unwrap();
        receipt
            .verify(&vault.receipt_public_key().unwrap())
            .unwrap();
        assert_eq!(receipt.erased.buckets[0].name.as_deref(), Some("gone"));
    }
    let folders = || fs::read_dir(folder.join("buckets")).unwrap().count();
    for _ in 0..100 {
        if folders() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(folders(), 1, "{step}: the erased bucket's folder goes");
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erase_that_the_disk_refuses_has_not_begun() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let vault = scene(&data).await;
    // A new root key can't be made any more: root.key has another owner's mode.
    let key = data.join("root.key");
    let before = fs::read(&key).unwrap();
    fs::write(&key, "no key at all\n").unwrap();
    let refused = vault.erase_level(&LOCAL, "doomed").await;
    assert!(refused.is_err(), "{refused:?}");
    fs::write(&key, before).unwrap();
    match refused.unwrap_err() {
        VaultError::EraseUnsettled { .. } => {
            // Not certain then; asked for again, it is done.
            let again = vault.erase_level(&LOCAL, "doomed").await.unwrap();
            assert!(matches!(again, Asked::Erased(_)));
        }
        _ => assert_eq!(get(&vault, "gone").await.unwrap(), DOOMED),
    }
    assert_eq!(get(&vault, "kept").await.unwrap(), KEPT);
    vault.close().await;
}
