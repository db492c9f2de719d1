//! Requests that look for a bucket when an erase has begun: none opens it any more.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coffer_keys::LevelOptions;
use coffer_label::Label;
use coffer_seal::BucketId;
use coffer_store::lock::Lock;
use coffer_store::{Change, Settled};
use parking_lot::Mutex;
use tokio::task::{JoinHandle, block_in_place};

use crate::access::{Actor, BucketName};
use crate::admin::NewLevel;
use crate::approvals::GuardedOutcome;
use crate::error::{AdministrationError, VaultError};
use crate::limits::COUNTED_BY_OPENING_MAX;
use crate::quotas::QuotaOf;
use crate::vault::{Vault, VaultOptions};

const LOCAL: Actor = Actor::Local { uid: 0 };

/// More than an erase opens to count them.
const COUNT: usize = COUNTED_BY_OPENING_MAX + 4;

async fn open(data: &Path) -> Vault {
    Vault::open(VaultOptions::new(data)).await.unwrap()
}

/// A level with buckets that were not opened since the start.
async fn scene(data: &Path) -> (Vault, Vec<BucketId>) {
    let vault = open(data).await;
    let level = NewLevel {
        name: "doomed".into(),
        label: Label::LOWEST,
        options: LevelOptions::default(),
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    for number in 0..COUNT {
        let name = BucketName::new(&format!("bucket-{number}")).unwrap();
        let made = vault.provide_bucket(&LOCAL, &name, Some("doomed"));
        made.await.unwrap();
    }
    vault.close().await;
    drop(vault);
    let vault = open(data).await;
    // Counting opens them one by one.
    vault.stop_recovery().await;
    let buckets = vault.inner.keystore.buckets();
    let ids: Vec<_> = buckets.iter().map(|bucket| bucket.id).collect();
    for id in &ids {
        vault.inner.open_buckets.forget(*id);
    }
    (vault, ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_erase_has_cut_off_is_not_opened() {
    let data = tempfile::tempdir().unwrap();
    let (vault, ids) = scene(data.path()).await;
    let refused: Arc<Mutex<Vec<bool>>> = Arc::default();
    let (inner, noted) = (vault.inner.clone(), refused.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        assert_eq!(step, "cut off");
        let all = async {
            for id in &ids {
                let buckets = &inner.open_buckets;
                let opened = buckets.open(&inner.folder, &inner.keystore, *id).await;
                let is_refused = matches!(opened, Err(VaultError::NoSuchBucket));
                noted.lock().push(is_refused);
            }
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(all));
    }));
    let erased = vault.erase_level(&LOCAL, "doomed").await.unwrap();
    assert!(matches!(erased, GuardedOutcome::Erased(_)));
    assert_eq!(*refused.lock(), [true; COUNT]);
    assert_eq!(vault.inner.open_buckets.count(), 0);
    vault.inner.probe.lock().take();
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lock_spares_at_the_last_look_still_counts() {
    let data = tempfile::tempdir().unwrap();
    let (vault, ids) = scene(data.path()).await;
    let rows = vault.inner.system.buckets();
    let row = rows.iter().find(|row| row.id == ids[0]).unwrap().clone();
    let quotas = vault.inner.open_buckets.quotas.clone();
    quotas.place(row.id, row.level_id, None);
    let (inner, locked) = (vault.inner.clone(), row.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |_| {
        let change = Change {
            objects: 1,
            bytes: 900,
            uploads: 0,
        };
        let admission = inner.open_buckets.quotas.admission(locked.id);
        admission.admit(change).unwrap();
        admission.settle(change, Settled::Done);
        let held = Lock {
            has_hold: true,
            ..Lock::default()
        };
        drop(inner.system.cover_lock(&locked, held).unwrap());
    }));
    let refused = vault.erase_bucket(&LOCAL, &row.name).await;
    assert!(matches!(
        refused,
        Err(VaultError::Administration(
            AdministrationError::EraseLocked(_)
        ))
    ));
    let used = quotas.usage(QuotaOf::Level(row.level_id));
    assert_eq!((used.bytes, used.buckets), (900, 1));
    vault.inner.probe.lock().take();
    vault.close().await;
}

/// A lock may spare it, and readers would have been told that it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn an_erase_that_may_be_refused_yet_is_told_neither_way() {
    let data = tempfile::tempdir().unwrap();
    let (vault, ids) = scene(data.path()).await;
    let row = vault.inner.system.bucket_of_id(ids[0]).unwrap();
    let (looking, looked_for) = (vault.clone(), row.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |_| {
        let found = looking.looked_after(&LOCAL, &looked_for.name);
        assert!(matches!(found, Err(VaultError::BucketInDoubt)), "{found:?}");
        let out_of_use = looking.inner.system.out_of_use(&looked_for);
        assert!(matches!(out_of_use, VaultError::BucketInDoubt));
        let held = Lock {
            has_hold: true,
            ..Lock::default()
        };
        drop(looking.inner.system.cover_lock(&looked_for, held).unwrap());
    }));
    assert!(vault.erase_bucket(&LOCAL, &row.name).await.is_err());
    vault.inner.probe.lock().take();
    assert!(vault.looked_after(&LOCAL, &row.name).is_ok());
    vault.close().await;
}

/// It would name the bucket, or leave it out.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_waits_until_an_erase_is_ordered_or_refused() {
    let data = tempfile::tempdir().unwrap();
    let (vault, ids) = scene(data.path()).await;
    let row = vault.inner.system.bucket_of_id(ids[0]).unwrap();
    let listing: Arc<Mutex<Option<JoinHandle<_>>>> = Arc::default();
    let (looking, noted) = (vault.clone(), listing.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "cut off" {
            let looking = looking.clone();
            let list = tokio::spawn(async move { looking.buckets_known_to(&LOCAL).await });
            block_in_place(|| std::thread::sleep(Duration::from_millis(50)));
            assert!(!list.is_finished());
            *noted.lock() = Some(list);
        }
    }));
    vault.erase_bucket(&LOCAL, &row.name).await.unwrap();
    vault.inner.probe.lock().take();
    let list = listing.lock().take().unwrap();
    let listed = list.await.unwrap().unwrap();
    assert_eq!(listed.len(), COUNT - 1);
    assert!(listed.iter().all(|one| one.bucket.name != row.name));
    vault.close().await;
}

/// Nothing below that count is told of it, to gateways that follow neither.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_spared_bucket_committed_last_is_known() {
    let data = tempfile::tempdir().unwrap();
    let (vault, ids) = scene(data.path()).await;
    vault.stop_holding().await;
    let rows = vault.inner.system.buckets();
    let row = rows.iter().find(|row| row.id == ids[0]).unwrap().clone();
    let bucket = vault.grant(&row).await.unwrap().bucket;
    let commits = &vault.inner.freshness.commits;
    bucket.catalog.raise_commit_count(90).await.unwrap();
    let last = bucket.catalog.last_commit();
    assert!(commits.of_met(row.id).unwrap() < last);
    drop(bucket);
    let (inner, locked) = (vault.inner.clone(), row.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |_| {
        let held = Lock {
            has_hold: true,
            ..Lock::default()
        };
        drop(inner.system.cover_lock(&locked, held).unwrap());
    }));
    assert!(vault.erase_bucket(&LOCAL, &row.name).await.is_err());
    vault.inner.probe.lock().take();
    assert_eq!(commits.highest_of(row.id), last);
    assert_eq!(commits.of_met(row.id), None, "it is opened first");
    drop(vault.grant(&row).await.unwrap());
    assert_eq!(commits.of_met(row.id), Some(last));
    vault.close().await;
}
