//! Buckets that could not be made.

use std::time::{Duration, SystemTime};

use crate::buckets::remove_empty_folders;
use crate::limits::EMPTY_FOLDER_AGE;
use crate::vault::VaultOptions;

use super::*;

const LOCAL: Actor = Actor::Local { uid: 0 };

fn folders(vault: &Vault) -> usize {
    let buckets = vault.inner.folder.buckets();
    std::fs::read_dir(buckets).map_or(0, Iterator::count)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_bucket_whose_row_could_not_be_added() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    vault.stop_recovery().await;
    vault.stop_holding().await;
    let name = BucketName::new("bucket").unwrap();
    vault.inner.system.fail_next_commit(false, true);
    let made = vault.provide_bucket(&LOCAL, &name, None).await;
    assert!(made.is_err(), "{made:?}");
    assert_eq!(folders(&vault), 0);
    assert!(vault.inner.keystore.buckets().is_empty());
    vault.provide_bucket(&LOCAL, &name, None).await.unwrap();
    assert_eq!(folders(&vault), 1);
    vault.close().await;
}

/// As a killed server leaves them, before there is a key.
#[tokio::test(flavor = "multi_thread")]
async fn empty_folders_without_a_key_are_removed_unless_they_may_be_on_their_way_here() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    vault.stop_recovery().await;
    let name = BucketName::new("bucket").unwrap();
    vault.provide_bucket(&LOCAL, &name, None).await.unwrap();
    let long_ago = SystemTime::now() - EMPTY_FOLDER_AGE - Duration::from_secs(9);
    let folder = |number: u8, is_old: bool| {
        let folder = vault.inner.folder.bucket(BucketId([number; 16]));
        make_bucket_folder(&vault.inner, BucketId([number; 16])).unwrap();
        if is_old {
            let opened = std::fs::File::open(&folder).unwrap();
            opened.set_modified(long_ago).unwrap();
        }
        folder
    };
    let [old, young, full] = [folder(1, true), folder(2, false), folder(3, false)];
    std::fs::write(full.join("blob"), "x").unwrap();
    let opened = std::fs::File::open(&full).unwrap();
    opened.set_modified(long_ago).unwrap();
    remove_empty_folders(&vault.inner).unwrap();
    assert!(!old.exists() && young.exists() && full.exists());
    assert_eq!(folders(&vault), 3, "a bucket's own stays");
    vault.close().await;
}
