//! Deletions and puts that meet.

use std::path::Path;
use std::time::Duration;

use coffer_store::record::{Details, NewContent, NewObject, ObjectName, Precondition, Tags};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, block_in_place};

use crate::acts::Changed;
use crate::audit::On;
use crate::vault::Granted;

use coffer_store::version::Which;

use super::*;
use crate::vault::VaultOptions;
use crate::vault::owners::first_subject;

async fn scene(data: &Path) -> (Vault, Arc<Subject>, BucketName) {
    let vault = Vault::open(VaultOptions::new(data)).await.unwrap();
    vault.stop_recovery().await;
    let subject = first_subject(&vault, data);
    let name = BucketName::new("doomed").unwrap();
    vault.create_bucket(&subject, &name, None).await.unwrap();
    (vault, subject, name)
}

/// As a put ends: nothing is acknowledged that this does not commit.
async fn commit(granted: &Granted) -> Result<()> {
    let object = object_named(ObjectName::new("object").unwrap());
    let _guard = granted.bucket.commit_guard().await?;
    let put = granted.bucket.catalog.put(object, Precondition::None);
    put.await?;
    Ok(())
}

fn object_named(name: ObjectName) -> NewObject {
    NewObject {
        name,
        etag: "etag".to_owned(),
        modified_ms: 1,
        details: Details::default(),
        tags: Tags::new(),
        lock: Default::default(),
        access: Default::default(),
        content: NewContent::Inline("content".into()),
    }
}

/// Puts that looked the bucket up before its deletion, and those that were let in before, too.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_put_into_a_bucket_whose_deletion_has_begun() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let row = vault.inner.system.bucket(&name).unwrap();
    let early = vault.grant(&row).await.unwrap();
    let steps: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let (this, late, noted) = (vault.clone(), row.clone(), steps.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "takes no commits" {
            return;
        }
        let all = async {
            let granted = this.grant(&late).await;
            assert!(
                matches!(granted.err(), Some(VaultError::NoSuchBucket)),
                "{step}"
            );
            let put = commit(&early).await;
            assert!(matches!(put, Err(VaultError::NoSuchBucket)), "{step}");
        };
        block_in_place(|| Handle::current().block_on(all));
        noted.lock().push(step);
    }));
    vault.delete_bucket(&subject, &name).await.unwrap();
    let steps = steps.lock().clone();
    assert_eq!(steps, ["row removed", "catalog closed", "key destroyed"]);
    vault.inner.probe.lock().take();
    let granted = vault.grant(&row).await;
    assert!(matches!(granted.err(), Some(VaultError::NoSuchBucket)));
    assert_eq!(vault.counters().damage_count, 0, "it is gone, not damaged");
    assert!(!vault.inner.folder.bucket(row.id).exists());
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_a_put_came_to_first_stays() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let row = vault.inner.system.bucket(&name).unwrap();
    let granted = vault.grant(&row).await.unwrap();
    let guard = granted.bucket.commit_guard().await.unwrap();
    let deletion = tokio::spawn({
        let (vault, subject, name) = (vault.clone(), subject.clone(), name.clone());
        async move { vault.delete_bucket(&subject, &name).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!deletion.is_finished(), "it waits for the commit");
    let object = ObjectName::new("object").unwrap();
    assert!(
        granted
            .bucket
            .catalog
            .head(&object, Which::Current)
            .await
            .unwrap()
            .is_err()
    );
    let put = granted
        .bucket
        .catalog
        .put(object_named(object), Precondition::None);
    put.await.unwrap();
    drop(guard);
    let refused = deletion.await.unwrap();
    assert!(matches!(refused, Err(VaultError::BucketNotEmpty)));
    commit(&vault.grant(&row).await.unwrap()).await.unwrap();
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_fails_leaves_the_bucket_in_use() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let row = vault.inner.system.bucket(&name).unwrap();
    let only_read = |is_so: bool| {
        let set = move |connection: &rusqlite::Connection| {
            connection.pragma_update(None, "query_only", is_so).unwrap();
            Ok(())
        };
        vault.inner.system.held().read(set).unwrap();
    };
    only_read(true);
    assert!(vault.delete_bucket(&subject, &name).await.is_err());
    only_read(false);
    let granted = vault.grant(&row).await.unwrap();
    drop(granted.bucket.commit_guard().await.unwrap());
    drop(granted);
    vault.delete_bucket(&subject, &name).await.unwrap();
    let gone = vault.bucket(&subject, &name).await;
    assert!(matches!(gone, Err(VaultError::NoSuchBucket)));
    vault.close().await;
}

/// Until the row is removed the deletion may be refused: who writes waits for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_meets_a_deletion_is_not_told_that_the_bucket_is_gone_before_it_is() {
    for is_refused in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let (vault, subject, name) = scene(data.path()).await;
        let early = vault.changeable(&subject, &name, Right::Write).await;
        let early = Mutex::new(Some(early.unwrap()));
        let writing: Arc<Mutex<Option<JoinHandle<Result<()>>>>> = Arc::default();
        let (inner, noted) = (vault.inner.clone(), writing.clone());
        *vault.inner.probe.lock() = Some(Box::new(move |step| {
            if step != "takes no commits" {
                return;
            }
            let early = early.lock().take().unwrap();
            let write = tokio::spawn(async move {
                let commit = |_| async { Ok(Changed::freeing((), Vec::new())) };
                early.change(Act::WriteObject, [On::Bucket], commit).await
            });
            block_in_place(|| std::thread::sleep(Duration::from_millis(50)));
            assert!(!write.is_finished());
            *noted.lock() = Some(write);
            if is_refused {
                inner.system.fail_next_commit(false, true);
            }
        }));
        let deleted = vault.delete_bucket(&subject, &name).await;
        vault.inner.probe.lock().take();
        assert_eq!(deleted.is_err(), is_refused);
        let write = writing.lock().take().unwrap();
        let told = write.await.unwrap().unwrap_err();
        assert_eq!(matches!(told, VaultError::NoSuchBucket), !is_refused);
        assert_eq!(matches!(told, VaultError::BucketInDoubt), is_refused);
        vault.close().await;
    }
}

/// A deletion whose commit failed, and it can't be found out at once whether it stands.
#[tokio::test(flavor = "multi_thread")]
async fn while_a_deletion_is_in_doubt_nothing_is_put_into_the_bucket() {
    for has_happened in [false, true] {
        let data = tempfile::tempdir().unwrap();
        let (vault, subject, name) = scene(data.path()).await;
        let system = &vault.inner.system;
        let row = system.bucket(&name).unwrap();
        let early = vault.grant(&row).await.unwrap();
        system.fail_next_commit(has_happened, false);
        let answer = vault.delete_bucket(&subject, &name).await;
        assert!(
            matches!(answer, Err(VaultError::SystemInDoubt)),
            "{answer:?}"
        );
        let in_doubt = |error: Option<VaultError>| matches!(error, Some(VaultError::BucketInDoubt));
        assert!(in_doubt(vault.grant(&row).await.err()));
        assert!(in_doubt(vault.bucket(&subject, &name).await.err()));
        assert!(in_doubt(vault.buckets(&subject).await.err()));
        let local = Actor::Local { uid: 0 };
        assert!(in_doubt(vault.bucket_known_to(&local, &name).await.err()));
        assert!(in_doubt(vault.buckets_known_to(&local).await.err()));
        assert!(commit(&early).await.is_err());
        let other = BucketName::new("other").unwrap();
        let refused = vault.create_bucket(&subject, &other, None).await;
        assert!(matches!(refused, Err(VaultError::SystemInDoubt)));

        system.let_settle();
        system.assure_certain().unwrap();
        assert_eq!(system.bucket(&name).is_none(), has_happened);
        assert_eq!(commit(&early).await.is_err(), has_happened);
        drop(early);
        vault.create_bucket(&subject, &other, None).await.unwrap();
        vault.close().await;
        drop(vault);
        let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
        assert_eq!(vault.inner.system.bucket(&name).is_none(), has_happened);
        vault.close().await;
    }
}

/// The same, but it can be found out at once: then the answer is a yes or a no.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_whose_commit_failed_is_told_as_it_turned_out() {
    let data = tempfile::tempdir().unwrap();
    let (vault, subject, name) = scene(data.path()).await;
    let system = &vault.inner.system;
    system.fail_next_commit(false, true);
    assert!(vault.delete_bucket(&subject, &name).await.is_err());
    let granted = vault.grant(&system.bucket(&name).unwrap()).await.unwrap();
    drop(granted.bucket.commit_guard().await.unwrap());
    drop(granted);
    system.fail_next_commit(true, true);
    vault.delete_bucket(&subject, &name).await.unwrap();
    assert!(system.bucket(&name).is_none());
    vault.close().await;
}

/// What was granted before, and reads after the catalog was closed under it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reading_that_a_deletion_or_a_stop_overtakes_is_told_which_it_was() {
    for is_deleted in [true, false] {
        let data = tempfile::tempdir().unwrap();
        let (vault, subject, name) = scene(data.path()).await;
        let grant = vault.readable(&subject, &name, Right::List).await.unwrap();
        if is_deleted {
            vault.delete_bucket(&subject, &name).await.unwrap();
        } else {
            vault.close().await;
        }
        let look = |bucket: UsedBucket| async move { Ok(bucket.catalog.totals().await?) };
        let read = grant.read(Act::ListObjects, On::Bucket, look).await;
        match read.err() {
            Some(VaultError::NoSuchBucket) => assert!(is_deleted),
            Some(VaultError::ShuttingDown) => assert!(!is_deleted),
            other => panic!("{other:?}"),
        }
        vault.close().await;
    }
}
