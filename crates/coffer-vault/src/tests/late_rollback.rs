//! What is found late, in a bucket alone.

use coffer_store::CATALOG_FILE;

use crate::access::{Actor, BucketName};
use crate::error::VaultError;
use crate::open_buckets::see_commits;
use crate::vault::{Vault, VaultOptions};

async fn close(vault: &Vault, name: &BucketName) {
    let row = vault.inner.system.bucket(name).unwrap();
    let granted = vault.grant(&row).await.unwrap();
    let catalog = &granted.bucket.catalog;
    see_commits(row.id, catalog, &vault.inner.freshness.commits).await;
    catalog.close().await;
    vault.inner.open_buckets.forget(row.id);
}

/// One whose catalog was put back while it was closed, under a server that runs.
#[tokio::test(flavor = "multi_thread")]
async fn an_older_catalog_is_refused_and_other_buckets_are_served() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    vault.stop_recovery().await;
    vault.stop_holding().await;
    let [mine, other] = ["mine", "other"].map(|name| BucketName::new(name).unwrap());
    for name in [&mine, &other] {
        let local = Actor::Local { uid: 0 };
        vault.provide_bucket(&local, name, None).await.unwrap();
    }
    let row = vault.inner.system.bucket(&mine).unwrap();
    let path = vault.inner.folder.bucket(row.id).join(CATALOG_FILE);
    close(&vault, &mine).await;
    let older = std::fs::read(&path).unwrap();
    let granted = vault.grant(&row).await.unwrap();
    granted.bucket.catalog.raise_commit_count(3).await.unwrap();
    drop(granted);
    close(&vault, &mine).await;
    let newest = std::fs::read(&path).unwrap();

    std::fs::write(&path, older).unwrap();
    let refused = vault.grant(&row).await.err().unwrap();
    assert!(
        matches!(&refused, VaultError::CatalogRolledBack(rollback) if rollback.held == 4),
        "{refused}"
    );
    let file = format!("buckets/{}/catalog.db", row.id);
    assert!(refused.to_string().contains(&file), "{refused}");
    assert!(!refused.to_string().contains("mine"), "no name is told");
    let another = vault.inner.system.bucket(&other).unwrap();
    vault.grant(&another).await.unwrap();
    std::fs::write(&path, newest).unwrap();
    vault.grant(&row).await.unwrap();
    vault.close().await;
}

/// An older copy that is written over one that is open, and whose log had been copied.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_catalog_that_became_an_older_one_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    vault.stop_recovery().await;
    vault.stop_holding().await;
    let mine = BucketName::new("mine").unwrap();
    let local = Actor::Local { uid: 0 };
    vault.provide_bucket(&local, &mine, None).await.unwrap();
    let row = vault.inner.system.bucket(&mine).unwrap();
    let path = vault.inner.folder.bucket(row.id).join(CATALOG_FILE);
    close(&vault, &mine).await;
    let older = std::fs::read(&path).unwrap();
    let granted = vault.grant(&row).await.unwrap();
    granted.bucket.catalog.raise_commit_count(3).await.unwrap();
    drop(granted);
    close(&vault, &mine).await;

    let granted = vault.grant(&row).await.unwrap();
    let catalog = &granted.bucket.catalog;
    let commits = &vault.inner.freshness.commits;
    see_commits(row.id, catalog, commits).await;
    catalog.totals().await.unwrap();
    std::fs::write(&path, older).unwrap();
    see_commits(row.id, catalog, commits).await;
    let refused = catalog.totals().await.map_err(VaultError::from);
    assert!(matches!(refused, Err(VaultError::CatalogReplaced)));
    vault.close().await;
}

/// A folder of before has nothing that holds anything; so has one whose server never acted.
#[tokio::test(flavor = "multi_thread")]
async fn starts_and_stops_raise_what_is_held_and_find_it_again() {
    let data = tempfile::tempdir().unwrap();
    let mut before = coffer_keys::Held::default();
    for turn in 0..3 {
        let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
        let keystore = &vault.inner.keystore;
        let held = keystore.held();
        assert!(held.audit_record > before.audit_record, "the start is held");
        assert!(held.anchor_number > before.anchor_number);
        let name = BucketName::new(&format!("bucket-{turn}")).unwrap();
        let local = Actor::Local { uid: 0 };
        vault.provide_bucket(&local, &name, None).await.unwrap();
        let acted = keystore.held();
        assert!(acted.system_commits > held.system_commits);
        assert!(acted.audit_record >= held.audit_record + 2);
        vault.close().await;
        before = keystore.held();
        assert!(before.audit_record > acted.audit_record, "the stop is held");
    }
}
