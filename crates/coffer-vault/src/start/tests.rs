//! A start that meets what it can't use.

use coffer_store::{CATALOG, CATALOG_FILE, Database};

use crate::access::BucketName;
use crate::error::VaultError;
use crate::vault::{Vault, VaultOptions};

/// One that the start had no time to look at.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_catalog_that_a_request_meets_is_told_with_the_way_out() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    vault.stop_recovery().await;
    let name = BucketName::new("newer").unwrap();
    let local = crate::access::Actor::Local { uid: 0 };
    vault.provide_bucket(&local, &name, None).await.unwrap();
    let inner = &vault.inner;
    let row = inner.system.bucket(&name).unwrap();
    vault
        .grant(&row)
        .await
        .unwrap()
        .bucket
        .catalog
        .close()
        .await;
    inner.open_buckets.forget(row.id);
    let path = inner.folder.bucket(row.id).join(CATALOG_FILE);
    std::fs::remove_file(&path).unwrap();
    let newer = Database {
        format_version: 7,
        ..CATALOG
    };
    let key = inner.keystore.bucket_key(row.id).unwrap();
    let made = newer.create(&path, &key.catalog_key(), "CREATE TABLE t(x);");
    drop(made.unwrap());
    let met = vault.grant(&row).await.err().unwrap();
    assert!(matches!(met, VaultError::NewerCatalog { .. }), "{met}");
    let message = met.to_string();
    for part in [
        "catalog.db",
        "format 7",
        "formats up to 5",
        "start the version",
    ] {
        assert!(message.contains(part), "{message}");
    }
    vault.close().await;
}
