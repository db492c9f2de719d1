//! Erases of which it is in doubt whether they are ordered.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coffer_keys::{BucketEntry, ErasedWhat, ExportIdentity, LevelEntry};
use coffer_seal::BucketId;

use crate::access::{Actor, BucketName, Subject};
use crate::admin::NewLevel;
use crate::approvals::GuardedOutcome;
use crate::erase::EraseDraft;
use crate::error::{AdministrationError, Result, VaultError};
use crate::freshness::ANCHOR_FILE;
use crate::system::{Doubts, Kind, System};
use crate::vault::{Vault, VaultOptions, owners::first_subject};

const LOCAL: Actor = Actor::Local { uid: 0 };

pub(crate) async fn scene(data: &Path) -> (Vault, Arc<Subject>, BucketName) {
    let vault = Vault::open(VaultOptions::new(data)).await.unwrap();
    vault.stop_recovery().await;
    vault.stop_holding().await;
    let subject = first_subject(&vault, data);
    let name = BucketName::new("doomed").unwrap();
    vault.provide_bucket(&LOCAL, &name, None).await.unwrap();
    (vault, subject, name)
}

/// Has the commit of the draft of the next erase fail, so that it is in doubt. Whether it stands.
fn fail_the_draft(vault: &Vault, stands: bool) {
    let inner = vault.inner.clone();
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "cut off" {
            inner.system.fail_next_commit(stands, false);
        }
    }));
}

fn identity() -> ExportIdentity {
    let text = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    text.parse().unwrap()
}

async fn export(vault: &Vault) -> Result<GuardedOutcome> {
    let recipients = [identity().recipient()];
    vault.export_level(&LOCAL, "default", &recipients).await
}

/// The draft's commit fails, and it can't be found out at once whether it stands.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_ordered_to_be_erased_is_out_of_use_until_that_is_known() {
    for is_ordered in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let (vault, subject, name) = scene(data.path()).await;
        let id = vault.inner.system.bucket(&name).unwrap().id;
        fail_the_draft(&vault, is_ordered);
        let refused = vault.erase_bucket(&LOCAL, &name).await;
        assert!(matches!(refused, Err(VaultError::SystemInDoubt)));
        vault.inner.probe.lock().take();
        let is_there = || vault.inner.system.bucket(&name).is_some();
        assert!(!is_there());
        assert!(vault.inner.system.is_an_erase_in_doubt());
        let in_doubt = vault.bucket(&subject, &name).await;
        assert!(matches!(in_doubt, Err(VaultError::BucketInDoubt)));
        // Its keys would go along.
        let exported = export(&vault).await;
        assert!(matches!(exported, Err(VaultError::Invalid { .. })));

        vault.inner.system.let_settle();
        let looks = if is_ordered { 30 } else { 500 };
        for _ in 0..looks {
            if is_there() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(is_there(), !is_ordered);
        for _ in 0..500 {
            if !vault.inner.system.is_an_erase_in_doubt() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(!vault.inner.system.is_an_erase_in_doubt());
        if is_ordered {
            let gone = vault.bucket(&subject, &name).await;
            assert!(matches!(gone, Err(VaultError::NoSuchBucket)));
            let erased = vault.erase_bucket(&LOCAL, &name).await.unwrap();
            let GuardedOutcome::Erased(receipt) = erased else {
                panic!("it takes no approval");
            };
            assert_eq!(receipt.erased.buckets[0].name.as_deref(), Some("doomed"));
            let has = |told: &[String], part: &str| told.iter().any(|one| one.contains(part));
            assert!(has(&receipt.remaining, "was not looked at when"));
            assert!(!has(&receipt.verification, "no reader"));
            assert!(!vault.inner.keystore.holds_bucket(id));
            vault.provide_bucket(&LOCAL, &name, None).await.unwrap();
        } else {
            vault.bucket(&subject, &name).await.unwrap();
            export(&vault).await.unwrap();
        }
        vault.close().await;
    }
}

/// It comes back if the level is not ordered to be erased: that it is not there would be wrong.
#[tokio::test(flavor = "multi_thread")]
async fn no_bucket_of_a_level_whose_erase_is_in_doubt_is_told_to_be_gone() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let row = vault.inner.system.bucket(&name).unwrap();
    fail_the_draft(&vault, false);
    assert!(vault.erase_level(&LOCAL, "default").await.is_err());
    vault.inner.probe.lock().take();
    let is_in_doubt = |error| matches!(error, Some(VaultError::BucketInDoubt));
    assert!(is_in_doubt(vault.bucket(&subject, &name).await.err()));
    assert!(is_in_doubt(vault.buckets(&subject).await.err()));
    assert!(is_in_doubt(
        vault.bucket_known_to(&LOCAL, &name).await.err()
    ));
    assert!(is_in_doubt(vault.buckets_known_to(&LOCAL).await.err()));
    // What had found it before.
    assert!(is_in_doubt(vault.grant(&row).await.err()));
    let other = BucketName::new("other").unwrap();
    let absent = vault.bucket(&subject, &other).await;
    assert!(matches!(absent, Err(VaultError::NoSuchBucket)));
    let known = vault.inner.system.buckets_known();
    assert_eq!(known.iter().filter(|known| known.id == row.id).count(), 1);
    {
        // Nor is the level, before it is known which drafts are kept.
        let _changing = vault.inner.changing_buckets.lock().await;
        vault.inner.system.let_settle();
        let made = vault.provide_bucket(&LOCAL, &other, None).await;
        assert!(matches!(made, Err(VaultError::SystemInDoubt)));
    }
    for _ in 0..500 {
        if !vault.inner.system.is_an_erase_in_doubt() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    vault.bucket(&subject, &name).await.unwrap();
    assert_eq!(vault.buckets(&subject).await.unwrap().len(), 1);
    vault.close().await;
}

/// The keystore has neither its key nor its level's by then.
#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_bucket_is_signed_though_its_level_was_erased_meanwhile() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(data.path()).await;
    leave_a_draft(&vault, &name).await;
    vault.inner.system.fail_next_commit(false, true);
    let unsigned = vault.erase_bucket(&LOCAL, &name).await;
    assert!(matches!(unsigned, Err(VaultError::ReceiptUnsettled { .. })));
    let level = vault.erase_level(&LOCAL, "default").await.unwrap();
    assert!(matches!(level, GuardedOutcome::Erased(_)));
    let erased = vault.erase_bucket(&LOCAL, &name).await.unwrap();
    let GuardedOutcome::Erased(receipt) = erased else {
        panic!("it takes no approval");
    };
    assert_eq!(receipt.erased.buckets[0].name.as_deref(), Some("doomed"));
    assert_eq!(vault.receipts(&LOCAL, None).await.unwrap().len(), 2);
    let again = vault.erase_bucket(&LOCAL, &name).await;
    assert!(matches!(again, Err(VaultError::NoSuchBucket)));
    vault.close().await;
}

/// Keeps the draft of an erase of a level.
fn order(vault: &Vault, level: &LevelEntry, buckets: &[BucketEntry]) {
    let buckets = buckets.iter();
    let buckets: Vec<_> = buckets
        .map(|entry| serde_json::json!({"entry": entry, "name": null}))
        .collect();
    let draft = serde_json::json!({
        "what": ErasedWhat::Level,
        "level": level,
        "buckets": buckets,
        "objects": 0,
        "bytes": 0,
        "uncounted": 0,
        "requested_ms": 0,
        "performed_by": [],
        "is_ordered": true,
    });
    let system = &vault.inner.system;
    system.keep(Kind::Erase, level.id.into(), &draft).unwrap();
}

/// Its erase is ordered, and the keystore has it no more.
#[tokio::test(flavor = "multi_thread")]
async fn no_level_takes_the_place_of_one_that_is_ordered_to_be_erased() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, _) = scene(data.path()).await;
    let identity = identity();
    let keystore = &vault.inner.keystore;
    let level = keystore.level_named("default").unwrap();
    let export = keystore.export_level(level.id, &[identity.recipient()]);
    let export = export.unwrap();
    let going = LevelEntry {
        name: "going".to_owned(),
        ..level.clone()
    };
    order(&vault, &going, &[]);
    let is_refused = |error: VaultError| match error {
        VaultError::Administration(AdministrationError::LevelGoing { level }) => level == "going",
        _ => false,
    };
    let new = NewLevel {
        name: "going".to_owned(),
        label: level.label,
        options: level.options,
        may_share_label: true,
    };
    assert!(is_refused(
        vault.create_level(&LOCAL, new).await.unwrap_err()
    ));
    // By its id, and by its name.
    for name in ["free", "going"] {
        let name = Some(name.to_owned());
        let import = vault.import_level(&LOCAL, export.clone(), identity.clone(), name, true);
        assert!(is_refused(import.await.unwrap_err()));
    }
    let system = &vault.inner.system;
    system.drop_document(Kind::Erase, level.id.into()).unwrap();
    vault.close().await;
}

/// Of two erases of a bucket, its own is not ordered after all, and that of its level is.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_order_is_of_stays_out_of_use() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, name) = scene(data.path()).await;
    let row = vault.inner.system.bucket(&name).unwrap();
    fail_the_draft(&vault, false);
    assert!(vault.erase_bucket(&LOCAL, &name).await.is_err());
    vault.inner.probe.lock().take();
    {
        let _changing = vault.inner.changing_buckets.lock().await;
        vault.inner.system.let_settle();
        let keystore = &vault.inner.keystore;
        let level = keystore.level(row.level_id).unwrap();
        order(&vault, &level, keystore.bucket(row.id).as_slice());
        assert!(vault.inner.system.is_an_erase_in_doubt());
    }
    for _ in 0..500 {
        if !vault.inner.system.is_an_erase_in_doubt() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let system = &vault.inner.system;
    assert!(!system.is_an_erase_in_doubt());
    assert!(system.bucket(&name).is_none() && system.is_going(row.id));
    vault.close().await;
}

/// Leaves the draft of an erase, and keys that it has not destroyed.
pub(super) async fn leave_a_draft(vault: &Vault, name: &BucketName) -> BucketId {
    let id = vault.inner.system.bucket(name).unwrap().id;
    fail_the_draft(vault, true);
    assert!(vault.erase_bucket(&LOCAL, name).await.is_err());
    vault.inner.probe.lock().take();
    vault.inner.system.let_settle();
    id
}

/// A receipt tells the same of locks, whatever signs it; and a start has let nothing in.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_completes_has_a_receipt_that_tells_of_locks() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    leave_a_draft(&vault, &name).await;
    vault.close().await;
    drop((vault, subject));
    let vault = open_with(data.path(), false).await;
    assert!(vault.inner.system.bucket(&name).is_none());
    let receipts = vault.receipts(&LOCAL, None).await.unwrap();
    let receipt = vault.receipt(&LOCAL, &receipts[0].id).await.unwrap();
    let tells = |part: &str| receipt.verification.iter().any(|one| one.contains(part));
    assert!(tells("no lock stood"));
    vault.close().await;
}

/// Opens a folder that was closed just now.
pub(super) async fn open_with(data: &Path, accept_rollback: bool) -> Vault {
    let options = VaultOptions {
        accept_rollback,
        ..VaultOptions::new(data)
    };
    Vault::open(options).await.unwrap()
}

async fn is_dropped(vault: &Vault, name: &BucketName) -> bool {
    let left = vault.inner.system.documents::<EraseDraft>(Kind::Erase);
    left.unwrap().is_empty() && vault.inner.system.bucket(name).is_some()
}

/// One of an earlier version may have been told of as failed, and its bucket used since.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_an_earlier_version_is_dropped_by_a_start() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let id = leave_a_draft(&vault, &name).await;
    let system = &vault.inner.system;
    let draft = system.document::<serde_json::Value>(Kind::Erase, id.into());
    let mut draft = draft.unwrap().unwrap();
    assert_eq!(draft["is_ordered"], true);
    draft.as_object_mut().unwrap().remove("is_ordered");
    system.keep(Kind::Erase, id.into(), &draft).unwrap();
    vault.close().await;
    drop((vault, subject));

    let vault = open_with(data.path(), false).await;
    assert!(is_dropped(&vault, &name).await);
    vault.close().await;
}

/// One in a database that was put back may have been called off since.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_of_another_time_is_dropped_by_a_start() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let id = leave_a_draft(&vault, &name).await;
    let key = vault.inner.keystore.system_key();
    vault.inner.system.assure_certain().unwrap();
    vault.close().await;
    drop((vault, subject));
    let path = data.path().join("system.db");
    // Copies its log into it, and removes that.
    let system = System::open(&path, &key).unwrap();
    drop(system);
    let older = std::fs::read(&path).unwrap();
    let system = System::open(&path, &key).unwrap();
    assert!(system.drop_document(Kind::Erase, id.into()).unwrap());
    drop(system);
    let vault = open_with(data.path(), false).await;
    assert!(is_dropped(&vault, &name).await);
    let other = BucketName::new("other").unwrap();
    vault.provide_bucket(&LOCAL, &other, None).await.unwrap();
    vault.close().await;
    drop(vault);

    std::fs::write(&path, older).unwrap();
    let _ = std::fs::remove_file(data.path().join("system.db-wal"));
    let refused = Vault::open(VaultOptions::new(data.path())).await;
    assert!(matches!(refused, Err(VaultError::RolledBack { .. })));
    let vault = open_with(data.path(), true).await;
    assert!(is_dropped(&vault, &name).await);
    assert!(vault.inner.keystore.holds_bucket(id));
    vault.close().await;
}

/// A start that was stopped right after it has gone on from an older database: the next one finds
/// nothing any more that is older.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_no_order_from_when_an_older_database_is_gone_on_from() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let id = leave_a_draft(&vault, &name).await;
    let system = &vault.inner.system;
    let doubts = Doubts {
        orders: true,
        ..Doubts::of_locks(&|_| true)
    };
    system.doubt(doubts).unwrap();
    let draft = system.document::<EraseDraft>(Kind::Erase, id.into());
    assert!(!draft.unwrap().unwrap().is_ordered);
    vault.close().await;
    drop((vault, subject));
    let vault = open_with(data.path(), false).await;
    assert!(is_dropped(&vault, &name).await);
    assert!(vault.inner.keystore.holds_bucket(id));
    vault.close().await;
}

/// With it may have come the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_is_dropped_where_the_anchor_was_put_back() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let path = data.path().join(ANCHOR_FILE);
    let older = std::fs::read(&path).unwrap();
    let id = leave_a_draft(&vault, &name).await;
    vault.close().await;
    drop((vault, subject));
    std::fs::write(&path, older).unwrap();
    let refused = Vault::open(VaultOptions::new(data.path())).await;
    assert!(matches!(refused, Err(VaultError::RolledBack { .. })));
    let vault = open_with(data.path(), true).await;
    assert!(is_dropped(&vault, &name).await);
    assert!(vault.inner.keystore.holds_bucket(id));
    vault.close().await;
}
