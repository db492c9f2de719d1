//! Copies and backups, while it is in doubt whether buckets are being erased.

use std::path::Path;
use std::time::Duration;

use coffer_replica::{Copy, CopyReader, Place};
use coffer_seal::BucketId;
use futures::StreamExt;

use crate::access::{Actor, BucketName};
use crate::backup::BackupEvent;
use crate::error::VaultError;
use crate::replica::NewCopy;
use crate::vault::{Vault, VaultOptions};

const LOCAL: Actor = Actor::Local { uid: 0 };

async fn scene(data: &Path) -> (Vault, BucketId) {
    let vault = Vault::open(VaultOptions::new(data)).await.unwrap();
    vault.stop_recovery().await;
    vault.stop_holding().await;
    let id = made(&vault, "doomed").await;
    (vault, id)
}

async fn made(vault: &Vault, name: &str) -> BucketId {
    let name = BucketName::new(name).unwrap();
    vault.provide_bucket(&LOCAL, &name, None).await.unwrap();
    vault.inner.system.bucket(&name).unwrap().id
}

/// Whether the newest head of the copy has the bucket.
async fn is_in_copy(vault: &Vault, id: BucketId) -> bool {
    let entry = vault.inner.copies.registry.get("far").unwrap();
    let place = Place::parse(&entry.url).unwrap();
    let store = tokio::task::spawn_blocking(move || place.open(false));
    let store = store.await.unwrap().unwrap();
    let key = vault.inner.keystore.system_key();
    let copy = Copy::new(store, entry.id, &key);
    let newest = CopyReader::newest(copy, entry.known.as_ref()).await;
    newest.is_ok_and(|reader| reader.head().buckets.contains_key(&id.to_string()))
}

async fn comes_into_copy(vault: &Vault, id: BucketId) -> bool {
    for _ in 0..500 {
        if is_in_copy(vault, id).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

/// A head without it would have a sweep remove all that the copy has of it.
#[tokio::test(flavor = "multi_thread")]
async fn no_copy_takes_for_gone_what_may_not_be_ordered_to_be_erased() {
    let root = tempfile::tempdir().unwrap();
    let (vault, id) = scene(&root.path().join("data")).await;
    let new = NewCopy {
        name: "far".to_owned(),
        url: format!("file://{}", root.path().join("copy").display()),
        keep_ms: None,
        sync: None,
    };
    vault.add_copy(&LOCAL, &new).await.unwrap();
    assert!(comes_into_copy(&vault, id).await);
    let system = &vault.inner.system;
    let aside = {
        let _changing = vault.inner.changing_buckets.lock().await;
        system.begin_erase_doubt(&[id]);
        system.set_aside(&[id], None)
    };
    let other = made(&vault, "other").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(is_in_copy(&vault, id).await);
    system.put_back(aside, None);
    system.end_erase_doubt(&[id]);
    assert!(comes_into_copy(&vault, other).await);
    assert!(is_in_copy(&vault, id).await);
    vault.close().await;
}

pub(super) async fn backed_up(vault: &Vault, folder: &Path) -> BackupEvent {
    let events = vault.back_up(&LOCAL, folder).await.unwrap();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        if matches!(event, BackupEvent::Done { .. } | BackupEvent::Failed(_)) {
            return event;
        }
    }
    panic!("it ends with neither");
}

/// Such a bucket is out of sight, and may not be gone: a copy without it would lose it.
#[tokio::test(flavor = "multi_thread")]
async fn no_backup_leaves_out_what_may_not_be_ordered_to_be_erased() {
    let root = tempfile::tempdir().unwrap();
    let (vault, id) = scene(&root.path().join("data")).await;
    let system = &vault.inner.system;
    let aside = system.set_aside(&[id], None);
    system.begin_erase_doubt(&[id]);
    let folder = root.path().join("backup");
    let refused = backed_up(&vault, &folder).await;
    assert!(matches!(
        refused,
        BackupEvent::Failed(VaultError::SystemInDoubt)
    ));
    system.put_back(aside, None);
    system.end_erase_doubt(&[id]);
    let BackupEvent::Done { counts, .. } = backed_up(&vault, &folder).await else {
        panic!("nothing is in doubt any more");
    };
    assert_eq!(counts.bucket_count, 1);
    vault.close().await;
}
