//! What goes on beside an erase that is ordered, or may be, and after it where a copy is gone on
//! from that has the order and not the bucket.

use std::fs;
use std::time::Duration;

use super::copies_in_doubt::backed_up;
use super::erase_doubts::{leave_a_draft, open_with, scene};
use crate::NewCopy;
use crate::access::BucketName;
use crate::approvals::GuardedOutcome;
use crate::backup::BackupEvent;
use crate::error::{AdministrationError, BackupError, VaultError};
use crate::rotation::tests::{LOCAL, ended};
use crate::system::Kind;
use crate::vault::Vault;

async fn doubt_is_over(vault: &Vault) {
    vault.inner.system.let_settle();
    for _ in 0..500 {
        if !vault.inner.system.is_an_erase_in_doubt() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it stays in doubt");
}

/// Has it be in doubt whether an erase is ordered, which it is.
async fn leave_in_doubt(vault: &Vault, name: &BucketName) {
    let inner = vault.inner.clone();
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "cut off" {
            inner.system.fail_next_commit(true, false);
        }
    }));
    assert!(vault.erase_bucket(&LOCAL, name).await.is_err());
    vault.inner.probe.lock().take();
}

/// The bucket would keep its keys, should it be shown again.
#[tokio::test(flavor = "multi_thread")]
async fn no_rotation_of_a_level_is_planned_while_an_erase_in_it_is_in_doubt() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(data.path()).await;
    let level = vault.inner.system.bucket(&name).unwrap().level_id;
    leave_in_doubt(&vault, &name).await;
    let planned = vault.plan_for_level(level);
    assert!(matches!(planned, Err(VaultError::SystemInDoubt)));
    doubt_is_over(&vault).await;
    assert!(vault.plan_for_level(level).is_ok(), "it is ordered");
    vault.close().await;
}

/// One that was begun before.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_passes_over_a_bucket_whose_erase_is_ordered() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(data.path()).await;
    let level = vault.inner.system.bucket(&name).unwrap().level_id;
    let plan = vault.plan_for_level(level).unwrap();
    leave_a_draft(&vault, &name).await;
    doubt_is_over(&vault).await;
    let system = &vault.inner.system;
    system.keep(Kind::Rotation, level.into(), &plan).unwrap();
    vault.resume_rotations();
    assert_eq!(ended(&vault).await.failure, None);
    vault.close().await;
}

/// It was told to be gone: neither an erase of its level that may be refused yet, nor one in doubt,
/// has it be told otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_ordered_to_be_erased_stays_gone_while_its_level_is_asked_for() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(data.path()).await;
    let other = BucketName::new("other").unwrap();
    vault.provide_bucket(&LOCAL, &other, None).await.unwrap();
    leave_a_draft(&vault, &name).await;
    doubt_is_over(&vault).await;
    let looking = vault.clone();
    let is_gone = move |name: &BucketName| match looking.looked_after(&LOCAL, name) {
        Err(VaultError::NoSuchBucket) => true,
        Err(VaultError::BucketInDoubt) => false,
        other => panic!("{other:?}"),
    };
    let (inner, asked, also) = (vault.inner.clone(), name.clone(), other.clone());
    let told = is_gone.clone();
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "cut off" {
            assert!(told(&asked) && !told(&also));
            inner.system.fail_next_commit(false, false);
        }
    }));
    let refused = vault.erase_level(&LOCAL, "default").await;
    assert!(matches!(refused, Err(VaultError::SystemInDoubt)));
    vault.inner.probe.lock().take();
    assert!(is_gone(&name) && !is_gone(&other));
    doubt_is_over(&vault).await;
    assert!(is_gone(&name));
    assert!(vault.looked_after(&LOCAL, &other).is_ok());
    vault.close().await;
}

/// What a copy may have had that was given up is told by the newest bucket of then.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_given_up_may_have_had_what_is_ordered_to_be_erased() {
    let root = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(&root.path().join("data")).await;
    let new = NewCopy {
        name: "far".to_owned(),
        url: format!("file://{}", root.path().join("copy").display()),
        keep_ms: None,
        sync: None,
    };
    vault
        .add_copy_with_keystore(&LOCAL, &new, &[])
        .await
        .unwrap();
    let created_ms = vault.inner.system.bucket(&name).unwrap().created_ms;
    let levels = vault.inner.keystore.levels();
    assert!(levels.iter().all(|level| level.created_ms < created_ms));
    leave_a_draft(&vault, &name).await;
    doubt_is_over(&vault).await;
    vault.remove_copy(&LOCAL, "far").await.unwrap();
    let entries = vault.inner.copies.registry.all();
    assert_eq!(entries[0].newest_ms, Some(created_ms));
    vault.close().await;
}

/// An attempt that came to nothing has cut off requests, and how they ended was not looked at.
#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_second_attempt_tells_of_the_first() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(data.path()).await;
    let inner = vault.inner.clone();
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "cut off" {
            inner.system.fail_next_commit(false, true);
        }
    }));
    assert!(vault.erase_bucket(&LOCAL, &name).await.is_err());
    vault.inner.probe.lock().take();
    assert!(vault.inner.system.bucket(&name).is_some(), "called off");
    let erased = vault.erase_bucket(&LOCAL, &name).await.unwrap();
    let GuardedOutcome::Erased(receipt) = erased else {
        panic!("it takes no approval");
    };
    let has = |told: &[String], part: &str| told.iter().any(|one| one.contains(part));
    assert!(!has(&receipt.verification, "no reader"));
    assert!(has(&receipt.verification, "an earlier attempt"));
    assert!(has(&receipt.remaining, "was not looked at when"));
    vault.close().await;
}

/// It is erased there, though there is no catalog to count its locks in; one whose catalog is
/// missing for another reason is not. Backups pass over the one, and over the other where the
/// backup before has nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_copy_left_out_to_be_erased_is_erased_where_the_copy_is_gone_on_from() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let (vault, subject, name) = scene(&data).await;
    let lost = BucketName::new("lost").unwrap();
    vault.provide_bucket(&LOCAL, &lost, None).await.unwrap();
    let lost_id = vault.inner.system.bucket(&lost).unwrap().id;
    let id = leave_a_draft(&vault, &name).await;
    doubt_is_over(&vault).await;
    let BackupEvent::Done { folder, .. } = backed_up(&vault, &root.path().join("kept")).await
    else {
        panic!("no backup");
    };
    vault.close().await;
    drop((vault, subject));

    let root_key = data.join("root.key");
    let copy = |to: &str| {
        let to = root.path().join(to);
        fs::rename(&folder, &to).unwrap();
        fs::copy(&root_key, to.join("root.key")).unwrap();
        to
    };
    let first = copy("first");
    let is_there = |id| first.join("buckets").join(format!("{id}")).exists();
    assert!(!is_there(id) && is_there(lost_id));
    let vault = open_with(&first, true).await;
    let (with, without) = (root.path().join("kept-2"), root.path().join("kept-3"));
    let event = backed_up(&vault, &with).await;
    assert!(matches!(event, BackupEvent::Done { .. }), "{event:?}");
    vault.close().await;
    drop(vault);
    fs::remove_dir_all(first.join("buckets").join(lost_id.to_string())).unwrap();
    let vault = open_with(&first, true).await;
    let failed = backed_up(&vault, &with).await;
    let is_named = |bucket: &str| bucket == lost.as_str();
    assert!(
        matches!(
            &failed,
            BackupEvent::Failed(VaultError::Backup(BackupError::BucketLost { bucket, .. }))
                if is_named(bucket)
        ),
        "{failed:?}"
    );
    let BackupEvent::Done { counts, .. } = backed_up(&vault, &without).await else {
        panic!("no backup");
    };
    assert_eq!((counts.left_out_count, counts.left_to_erase_count), (1, 1));
    let refused = vault.erase_bucket(&LOCAL, &lost).await;
    let is_locked = |error| {
        matches!(
            error,
            VaultError::Administration(AdministrationError::EraseLocked(_))
        )
    };
    assert!(refused.is_err_and(is_locked));
    let erased = vault.erase_bucket(&LOCAL, &name).await.unwrap();
    assert!(matches!(erased, GuardedOutcome::Erased(_)));
    assert!(!vault.inner.keystore.holds_bucket(id));
    vault.close().await;
}

/// Nor does it wait for that erase.
#[tokio::test(flavor = "multi_thread")]
async fn backups_pass_over_what_is_left_to_erase_and_say_so() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let (vault, subject, name) = scene(&data).await;
    leave_a_draft(&vault, &name).await;
    doubt_is_over(&vault).await;
    let mut event = backed_up(&vault, &root.path().join("kept-0")).await;
    vault.close().await;
    drop((vault, subject));
    // The second is one of a server that went on from the first.
    for number in 1..=2 {
        let BackupEvent::Done { folder, .. } = event else {
            panic!("no backup: {event:?}");
        };
        let to = root.path().join(format!("restored-{number}"));
        fs::rename(&folder, &to).unwrap();
        fs::copy(data.join("root.key"), to.join("root.key")).unwrap();
        let vault = open_with(&to, true).await;
        event = backed_up(&vault, &root.path().join(format!("kept-{number}"))).await;
        let BackupEvent::Done { counts, .. } = &event else {
            panic!("no backup: {event:?}");
        };
        assert_eq!((counts.bucket_count, counts.left_to_erase_count), (0, 1));
        if number == 2 {
            let erased = vault.erase_bucket(&LOCAL, &name).await.unwrap();
            assert!(matches!(erased, GuardedOutcome::Erased(_)));
            let last = backed_up(&vault, &root.path().join("kept-3")).await;
            let BackupEvent::Done { counts, .. } = &last else {
                panic!("no backup: {last:?}");
            };
            assert_eq!(counts.left_to_erase_count, 0);
        }
        vault.close().await;
    }
}
