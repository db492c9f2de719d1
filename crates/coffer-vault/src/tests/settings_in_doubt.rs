//! What is set of buckets, while it is in doubt whether that stands.

use std::path::Path;
use std::sync::Arc;

use crate::access::{Act, Actor, BucketName, Right, Subject};
use crate::acts::Changed;
use crate::audit::On;
use crate::error::{Result, VaultError};
use crate::quotas::{Quota, QuotaOf};
use crate::system::{BucketConfiguration, BucketRow};
use crate::vault::owners::first_subject;
use crate::vault::{Vault, VaultOptions};

const LOCAL: Actor = Actor::Local { uid: 0 };

async fn scene(data: &Path) -> (Vault, Arc<Subject>, Arc<BucketRow>) {
    let vault = Vault::open(VaultOptions::new(data)).await.unwrap();
    vault.stop_recovery().await;
    vault.stop_holding().await;
    let subject = first_subject(&vault, data);
    let name = BucketName::new("bucket").unwrap();
    vault.create_bucket(&subject, &name, None).await.unwrap();
    let row = vault.inner.system.bucket(&name).unwrap();
    (vault, subject, row)
}

fn is_out<T>(answer: Result<T>) -> bool {
    matches!(answer, Err(VaultError::BucketInDoubt))
}

/// Neither what was set before nor what was to be is used or told; once it is known, what stands.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_whose_setting_is_in_doubt_is_out_of_use() {
    for has_happened in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let (vault, subject, row) = scene(data.path()).await;
        let system = &vault.inner.system;
        for kind in [
            BucketConfiguration::Policy,
            BucketConfiguration::Cors,
            BucketConfiguration::Lifecycle,
            BucketConfiguration::Encryption,
            BucketConfiguration::PublicAccessBlock,
        ] {
            system.fail_next_commit(has_happened, false);
            let set = system.configure(&row, kind, Some("[]".to_owned()));
            assert!(matches!(set, Err(VaultError::SystemInDoubt)));
            assert!(is_out(vault.grant(&row).await), "{kind:?}");
            assert!(is_out(vault.bucket(&subject, &row.name).await), "{kind:?}");
            assert!(is_out(vault.bucket_known_to(&LOCAL, &row.name).await));
            assert!(is_out(vault.buckets(&subject).await), "{kind:?}");
            assert_eq!(system.configuration(&row, kind), None);
            // Another is refused, and takes nothing back.
            let other = system.configure(&row, BucketConfiguration::Acl, None);
            assert!(matches!(other, Err(VaultError::SystemInDoubt)));
            let removed = vault.delete_bucket(&subject, &row.name).await;
            assert!(is_out(removed), "{kind:?}");
            assert!(is_out(vault.grant(&row).await), "{kind:?}");

            system.let_settle();
            system.assure_certain().unwrap();
            assert_eq!(system.configuration(&row, kind).is_some(), has_happened);
            // That may be known before the answer is.
            assert!(matches!(system.out_of_use(&row), VaultError::BucketInDoubt));
            system.configure(&row, kind, None).unwrap();
            drop(vault.grant(&row).await.unwrap());
        }
        vault.close().await;
    }
}

/// What was let in before reads what is set of the bucket once more when it commits.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_committed_in_a_bucket_whose_setting_is_in_doubt() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, row) = scene(data.path()).await;
    let system = &vault.inner.system;
    let early = vault.changeable(&subject, &row.name, Right::Write).await;
    let early = early.unwrap();
    let commit = || {
        early.change(Act::WriteObject, [On::Bucket], |_| async {
            Ok(Changed::freeing((), Vec::new()))
        })
    };
    commit().await.unwrap();
    system.fail_next_commit(false, false);
    let kind = BucketConfiguration::Policy;
    let set = system.configure(&row, kind, Some("[]".to_owned()));
    assert!(matches!(set, Err(VaultError::SystemInDoubt)));
    assert!(is_out(commit().await));
    system.let_settle();
    system.assure_certain().unwrap();
    commit().await.unwrap();
    vault.close().await;
}

/// That nothing was ended there is told: by the log, and by a count.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_whose_rules_are_in_doubt_is_left_to_the_next_run_and_counted() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, row) = scene(data.path()).await;
    vault.stop_lifecycle().await;
    let system = &vault.inner.system;
    let postponed = || vault.counters().lifecycle_postponed_count;
    system.fail_next_commit(true, false);
    let kind = BucketConfiguration::Lifecycle;
    assert!(system.configure(&row, kind, Some("[]".to_owned())).is_err());
    vault.run_lifecycle().await;
    assert_eq!(postponed(), 1);
    system.let_settle();
    system.assure_certain().unwrap();
    vault.run_lifecycle().await;
    assert_eq!(postponed(), 1);
    vault.close().await;
}

/// The server's own bounds are higher than what there is, whichever of the two holds.
#[tokio::test(flavor = "multi_thread")]
async fn a_bound_that_is_in_doubt_keeps_no_bucket_out_of_use() {
    let data = tempfile::tempdir().unwrap();
    let (vault, _subject, row) = scene(data.path()).await;
    let system = &vault.inner.system;
    system.fail_next_commit(true, false);
    let kind = BucketConfiguration::LockBound;
    assert!(system.configure(&row, kind, Some("{}".to_owned())).is_err());
    drop(vault.grant(&row).await.unwrap());
    system.let_settle();
    system.assure_certain().unwrap();
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_quota_counts_is_out_of_use_while_that_is_in_doubt() {
    for has_happened in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let (vault, subject, row) = scene(data.path()).await;
        let system = &vault.inner.system;
        let maker = subject.id();
        let of = [
            ("bucket", "bucket", QuotaOf::Bucket(row.id)),
            ("level", "default", QuotaOf::Level(row.level_id)),
            ("subject", "first", QuotaOf::Subject(maker)),
        ];
        for (kind, name, of) in of {
            let quota = Quota {
                bytes: Some(1),
                ..Quota::default()
            };
            let ledger = vault.inner.open_buckets.quotas.clone();
            vault.read_for(&[of]).await;
            system.fail_next_commit(has_happened, false);
            let settled = {
                let ledger = ledger.clone();
                move |has_happened: bool| {
                    if has_happened {
                        ledger.set(of, Some(quota));
                    }
                }
            };
            let set = system.keep_quota(of, Some(quota), settled);
            assert!(matches!(set, Err(VaultError::SystemInDoubt)));
            assert!(is_out(vault.grant(&row).await), "{kind}");
            let told = vault.quotas(&LOCAL).await;
            assert!(matches!(told, Err(VaultError::SystemInDoubt)), "{kind}");
            let removed = vault.remove_quota(&LOCAL, kind, name).await;
            assert!(matches!(removed, Err(VaultError::SystemInDoubt)), "{kind}");

            system.let_settle();
            system.assure_certain().unwrap();
            drop(vault.grant(&row).await.unwrap());
            let told = vault.quotas(&LOCAL).await.unwrap();
            assert_eq!(told.iter().any(|one| one.of == of), has_happened);
            ledger.set(of, None);
        }
        vault.close().await;
    }
}
