//! What receipts say of data keys that clients were given.

use std::path::Path;

use coffer_keys::LevelOptions;
use coffer_keys::receipt::Receipt;
use coffer_label::Label;

use crate::access::{Actor, BucketName};
use crate::admin::NewLevel;
use crate::approvals::GuardedOutcome;
use crate::error::Result;
use crate::limits::KEY_RELEASES_STEP;
use crate::vault::{Vault, VaultOptions};

const LOCAL: Actor = Actor::Local { uid: 0 };

async fn open(data: &Path) -> Vault {
    Vault::open(VaultOptions::new(data)).await.unwrap()
}

/// A level, with these buckets.
async fn level(vault: &Vault, name: &str, sealed_transfer: bool, buckets: &[&str]) {
    let level = NewLevel {
        name: name.into(),
        label: Label::LOWEST,
        options: LevelOptions {
            sealed_transfer,
            ..LevelOptions::default()
        },
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    for bucket in buckets {
        let bucket = named(bucket);
        let made = vault.provide_bucket(&LOCAL, &bucket, Some(name));
        made.await.unwrap();
    }
}

fn named(name: &str) -> BucketName {
    BucketName::new(name).unwrap()
}

async fn give(vault: &Vault, bucket: &str, count: u64) -> Result<()> {
    let row = vault.inner.system.bucket(&named(bucket)).unwrap();
    vault.cover_key_release(&row, count).await
}

fn erased(outcome: Result<GuardedOutcome>) -> Receipt {
    match outcome.unwrap() {
        GuardedOutcome::Erased(receipt) => *receipt,
        other => panic!("{other:?}"),
    }
}

/// What a receipt says of data keys: what was verified, and what remains.
fn keys_told(receipt: &Receipt) -> (Vec<&str>, Vec<&str>) {
    let told = |all: &'_ [String]| -> Vec<usize> {
        let is_of_keys = |text: &str| text.contains("data keys") || text.starts_with("of these");
        (0..all.len())
            .filter(|place| is_of_keys(&all[*place]))
            .collect()
    };
    let [checked, left] = [&receipt.verification, &receipt.remaining];
    (
        told(checked).into_iter().map(|at| &*checked[at]).collect(),
        told(left).into_iter().map(|at| &*left[at]).collect(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_without_sealed_transfer_gave_none() {
    let data = tempfile::tempdir().unwrap();
    let vault = open(data.path()).await;
    level(&vault, "plain", false, &["notes"]).await;
    level(&vault, "unused", true, &["idle"]).await;
    let receipt = erased(vault.erase_level(&LOCAL, "plain").await);
    let (checked, left) = keys_told(&receipt);
    assert_eq!(checked.len(), 1);
    assert!(checked[0].ends_with("the level was made without sealed transfer"));
    assert!(left.is_empty());
    let receipt = erased(vault.erase_level(&LOCAL, "unused").await);
    let (checked, left) = keys_told(&receipt);
    assert!(checked[0].ends_with("though the level allows sealed transfer"));
    assert!(left.is_empty());
    let key = vault.receipt_public_key().unwrap();
    receipt.verify(&key).unwrap();
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receipt_states_what_was_given_of_each_bucket_and_of_those_that_are_gone() {
    let data = tempfile::tempdir().unwrap();
    let vault = open(data.path()).await;
    level(
        &vault,
        "video",
        true,
        &["one", "other", "idle", "deleted", "erased"],
    )
    .await;
    for (bucket, count) in [
        ("one", 3),
        ("other", 20),
        ("deleted", 100),
        ("erased", 4_000),
    ] {
        give(&vault, bucket, count).await.unwrap();
    }
    vault
        .withdraw_bucket(&LOCAL, &named("deleted"))
        .await
        .unwrap();
    let receipt = erased(vault.erase_bucket(&LOCAL, &named("erased")).await);
    let (_, left) = keys_told(&receipt);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(
        left[0].starts_with("clients were given at most 4000 data keys"),
        "{left:?}"
    );
    // A stop keeps the exact counts.
    vault.close().await;
    drop(vault);
    let vault = open(data.path()).await;
    give(&vault, "one", 1).await.unwrap();
    let id = vault.inner.system.bucket(&named("one")).unwrap().id;
    let receipt = erased(vault.erase_level(&LOCAL, "video").await);
    let (checked, left) = keys_told(&receipt);
    assert!(checked.is_empty(), "{checked:?}");
    assert!(
        left[0].starts_with("clients were given at most 4124 data keys"),
        "{left:?}"
    );
    assert!(
        left.contains(&&*format!("of these at most 4 of bucket one, {id}")),
        "{left:?}"
    );
    let gone = "of these at most 4100 of buckets that were deleted or erased before";
    assert!(left.contains(&gone), "{left:?}");
    assert_eq!(left.len(), 4, "{left:?}");
    receipt
        .verify(&vault.receipt_public_key().unwrap())
        .unwrap();
    let kept = vault
        .inner
        .system
        .level_key_releases(coffer_seal::LevelId([0; 16]));
    assert_eq!(kept.unwrap().count, 0);
    vault.close().await;
}

/// The server ends without a stop, as by `kill -9`.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_after_a_crash_is_not_less() {
    let data = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let vault = open(data.path()).await;
    level(&vault, "video", true, &["one"]).await;
    give(&vault, "one", 7).await.unwrap();
    copy_folder(data.path(), copy.path());
    vault.close().await;
    let vault = open(copy.path()).await;
    let receipt = erased(vault.erase_level(&LOCAL, "video").await);
    let (_, left) = keys_told(&receipt);
    let told = format!("at most {} data keys", 7 + KEY_RELEASES_STEP);
    assert!(left[0].contains(&told), "{left:?}");
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_older_database_was_accepted_a_receipt_says_that_some_are_not_counted() {
    let data = tempfile::tempdir().unwrap();
    let vault = open(data.path()).await;
    level(&vault, "video", true, &["one"]).await;
    vault.close().await;
    drop(vault);
    let system = data.path().join("system.db");
    let older = std::fs::read(&system).unwrap();
    let vault = open(data.path()).await;
    give(&vault, "one", 7).await.unwrap();
    vault.close().await;
    drop(vault);
    std::fs::write(&system, older).unwrap();
    let options = VaultOptions {
        accept_rollback: true,
        ..VaultOptions::new(data.path())
    };
    let vault = Vault::open(options).await.unwrap();
    let receipt = erased(vault.erase_level(&LOCAL, "video").await);
    let (checked, left) = keys_told(&receipt);
    assert!(checked.is_empty(), "{checked:?}");
    assert!(left[0].contains("at most 0 data keys"), "{left:?}");
    assert!(
        left[1].contains("not counted: the server went on from an older copy"),
        "{left:?}"
    );
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_an_erase_has_begun_no_key_is_given() {
    let data = tempfile::tempdir().unwrap();
    let vault = open(data.path()).await;
    level(&vault, "video", true, &["one"]).await;
    give(&vault, "one", 1).await.unwrap();
    let row = vault.inner.system.bucket(&named("one")).unwrap();
    erased(vault.erase_level(&LOCAL, "video").await);
    assert!(vault.cover_key_release(&row, 1).await.is_err());
    vault.close().await;
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}
