//! Levels that move from one server to another.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use coffer_keys::{ExportIdentity, LevelOptions};
use coffer_vault::version::Which;
use coffer_vault::*;
use futures::TryStreamExt;

use crate::door::{self, Door, bytes, name, put};

const LOCAL: Actor = Actor::Local { uid: 0 };

pub(crate) fn identity() -> ExportIdentity {
    let text = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
    text.parse().unwrap()
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

async fn read(door: &Door, bucket: &BucketName) -> Bytes {
    let options = ReadOptions {
        which: Which::Current,
        customer_key: None,
        conditions: Conditions::default(),
        range: RangeRequest::All,
    };
    let large = name("large");
    let read = door
        .vault
        .read_object(&door.subject, bucket, &large, options);
    let pieces: Vec<Bytes> = read.await.unwrap().body.try_collect().await.unwrap();
    pieces.concat().into()
}

/// A server whose level `moving` holds two buckets; stopped, and its export.
async fn exported(data: &Path) -> Vec<u8> {
    let door = door::door(data).await;
    let level = NewLevel {
        name: "moving".into(),
        label: coffer_label::Label::LOWEST,
        options: LevelOptions::default(),
        may_share_label: true,
    };
    door.vault.create_level(&LOCAL, level).await.unwrap();
    for bucket in ["first", "bucket-2"] {
        let bucket = BucketName::new(bucket).unwrap();
        let made = door
            .vault
            .create_bucket(&door.subject, &bucket, Some("moving"));
        made.await.unwrap();
        let object = put("large", &bytes(100_000));
        door.vault
            .put_object(&door.subject, &bucket, object)
            .await
            .unwrap();
    }
    let to = [identity().recipient()];
    let GuardedOutcome::Exported(export) = door
        .vault
        .export_level(&LOCAL, "moving", &to)
        .await
        .unwrap()
    else {
        panic!("it takes no approval")
    };
    let level = door.vault.level(&LOCAL, "moving").await.unwrap().level;
    assert_eq!(level.export_count, 1);
    door.vault.close().await;
    export
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_is_brought_to_another_server_with_its_buckets() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let export = exported(from.path()).await;
    let door = door::door(to.path()).await;
    // A name that is taken here.
    let taken = BucketName::new("first").unwrap();
    door.vault
        .create_bucket(&door.subject, &taken, None)
        .await
        .unwrap();
    let folders: Vec<_> = fs::read_dir(from.path().join("buckets")).unwrap().collect();
    let folders = folders.into_iter().map(|entry| entry.unwrap().file_name());
    let copied = |folder: &std::ffi::OsString| {
        let id = Path::new("buckets").join(folder);
        copy(&from.path().join(&id), &to.path().join(&id));
    };
    folders.for_each(|folder| copied(&folder));

    let rename = Some("arrived".to_owned());
    let import = door
        .vault
        .import_level(&LOCAL, export.clone(), identity(), rename, true);
    let imported = import.await.unwrap();
    assert_eq!(
        (imported.level.name.as_str(), imported.level.imported),
        ("arrived", true)
    );
    let second = BucketName::new("bucket-2").unwrap();
    let waiting = imported
        .buckets
        .iter()
        .find_map(|(id, adoption)| match adoption {
            Adoption::NameTaken(name) => Some((*id, name.clone())),
            Adoption::Adopted(name) => {
                assert_eq!(*name, second);
                None
            }
            other => panic!("{other:?}"),
        });
    let (id, name) = waiting.expect("one name is taken");
    assert_eq!(name, taken);
    assert_eq!(read(&door, &second).await, bytes(100_000));
    let another = BucketName::new("first-again").unwrap();
    let adopted = door
        .vault
        .adopt_bucket(&LOCAL, id, Some(another.clone()))
        .await
        .unwrap();
    assert_eq!(adopted, Adoption::Adopted(another.clone()));
    assert_eq!(read(&door, &another).await, bytes(100_000));
    let twice = door.vault.adopt_bucket(&LOCAL, id, None).await;
    assert!(matches!(twice, Err(VaultError::NoSuchBucket)));
    let again = door
        .vault
        .import_level(&LOCAL, export, identity(), None, true)
        .await;
    assert!(again.is_err(), "it is here already");
    door.vault.close().await;
    drop(door);
    let door = door::door(to.path()).await;
    assert_eq!(read(&door, &another).await, bytes(100_000));
    let GuardedOutcome::Erased(receipt) = door.vault.erase_level(&LOCAL, "arrived").await.unwrap()
    else {
        panic!("it takes no approval")
    };
    let told = receipt.remaining.join("\n");
    assert!(told.contains("imported"), "{told}");
    assert_eq!(receipt.erased.objects, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_may_come_after_the_keys_and_a_restart_adopts_them() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let export = exported(from.path()).await;
    let door = door::door(to.path()).await;
    let import = door
        .vault
        .import_level(&LOCAL, export, identity(), None, true);
    let imported = import.await.unwrap();
    assert!(
        imported
            .buckets
            .iter()
            .all(|(_, found)| *found == Adoption::FolderMissing)
    );
    door.vault.close().await;
    drop(door);
    // A restart keeps the keys of folders that are still to come.
    let door = door::door(to.path()).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    door.vault.close().await;
    drop(door);
    for (id, _) in imported.buckets {
        let folder = Path::new("buckets").join(id.to_string());
        copy(&from.path().join(&folder), &to.path().join(&folder));
    }
    let door = door::door(to.path()).await;
    let first = BucketName::new("first").unwrap();
    for _ in 0..200 {
        if door.vault.bucket(&door.subject, &first).await.is_ok() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(read(&door, &first).await, bytes(100_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_exported_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let door = door::door(folder.path()).await;
    let level = NewLevel {
        name: "fixed".into(),
        label: coffer_label::Label::LOWEST,
        options: LevelOptions {
            exportable: false,
            ..LevelOptions::default()
        },
        may_share_label: true,
    };
    door.vault.create_level(&LOCAL, level).await.unwrap();
    let to = [identity().recipient()];
    let refused = door.vault.export_level(&LOCAL, "fixed", &to).await;
    let told = refused.unwrap_err().to_string();
    assert!(told.contains("fixed"), "{told}");
    let for_none = door.vault.export_level(&LOCAL, "default", &[]).await;
    assert!(matches!(for_none, Err(VaultError::Invalid { .. })));
}
