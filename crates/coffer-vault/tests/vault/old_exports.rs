//! What the holder of an export of a level can still read once the level has been rotated.

use std::path::Path;
use std::time::Duration;

use coffer_keys::LevelOptions;
use coffer_vault::*;
use futures::TryStreamExt;

use crate::door::{self, Door, bytes, name, put};
use crate::exports::{copy, identity};

const LOCAL: Actor = Actor::Local { uid: 0 };
/// As much as a catalog holds itself.
const SMALL: usize = 16 * 1_024;
const LARGE: usize = SMALL + 1;

async fn store(door: &Door, bucket: &BucketName, objects: &[(&str, usize)]) {
    for (object, length) in objects {
        let put = put(object, &bytes(*length));
        let stored = door.vault.put_object(&door.subject, bucket, put);
        stored.await.unwrap();
    }
}

async fn is_readable(door: &Door, bucket: &BucketName, object: &str, length: usize) -> bool {
    let object = name(object);
    let options = ReadOptions::default();
    let read = door
        .vault
        .read_object(&door.subject, bucket, &object, options);
    let body = match read.await {
        Ok(read) => read.body,
        Err(VaultError::NoSuchObject | VaultError::NoSuchBucket) => panic!("it is there"),
        Err(_) => return false,
    };
    match body.try_collect::<Vec<_>>().await {
        Ok(parts) => {
            assert_eq!(parts.concat(), bytes(length));
            true
        }
        Err(_) => false,
    }
}

/// Another server, with the old export and these folders.
async fn opened(folders: &Path, export: &[u8], data: &Path) -> (Door, Imported) {
    let door = door::door(data).await;
    copy(&folders.join("buckets"), &data.join("buckets"));
    let import = door
        .vault
        .import_level(&LOCAL, export.to_vec(), identity(), None, true);
    let imported = import.await.unwrap();
    (door, imported)
}

/// A level's export, and copies of the folder from before and after its rotation.
async fn scene(data: &Path, before: &Path, after: &Path) -> Vec<u8> {
    let door = door::door(data).await;
    let level = NewLevel {
        name: "exported".into(),
        label: coffer_label::Label::LOWEST,
        options: LevelOptions::default(),
        may_share_label: true,
    };
    door.vault.create_level(&LOCAL, level).await.unwrap();
    let bucket = BucketName::new("held").unwrap();
    let made = door
        .vault
        .create_bucket(&door.subject, &bucket, Some("exported"));
    made.await.unwrap();
    store(
        &door,
        &bucket,
        &[("old small", SMALL), ("old large", LARGE)],
    )
    .await;
    let to = [identity().recipient()];
    let asked = door.vault.export_level(&LOCAL, "exported", &to).await;
    let Ok(GuardedOutcome::Exported(export)) = asked else {
        panic!("it takes no approval")
    };
    door.vault.close().await;
    drop(door);
    copy(data, before);

    let door = door::door(data).await;
    door.vault.rotate_level(&LOCAL, "exported").await.unwrap();
    for _ in 0..1_000 {
        let rotation = door.vault.rotations(&LOCAL).await.unwrap().pop().unwrap();
        if rotation.ended_ms.is_some() {
            assert_eq!(rotation.failure, None);
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store(
        &door,
        &bucket,
        &[("new small", SMALL), ("new large", LARGE)],
    )
    .await;
    let later = BucketName::new("made-later").unwrap();
    let made = door
        .vault
        .create_bucket(&door.subject, &later, Some("exported"));
    made.await.unwrap();
    store(&door, &later, &[("small", SMALL)]).await;
    door.vault.close().await;
    drop(door);
    copy(data, after);
    export
}

/// The documents say so: should this become better, so should they.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_export_opens_catalogs_and_no_large_objects_of_a_later_copy() {
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    let (before, after) = (place("before"), place("after"));
    let export = scene(&place("data"), &before, &after).await;
    let held = BucketName::new("held").unwrap();

    let (door, imported) = opened(&after, &export, &place("thief")).await;
    assert_eq!(imported.buckets.len(), 1, "no bucket made later");
    let readable = async |object, length| is_readable(&door, &held, object, length).await;
    assert!(readable("old small", SMALL).await && readable("new small", SMALL).await);
    assert!(!readable("old large", LARGE).await && !readable("new large", LARGE).await);
    door.vault.close().await;

    let (door, _) = opened(&before, &export, &place("earlier-thief")).await;
    for (object, length) in [("old small", SMALL), ("old large", LARGE)] {
        assert!(is_readable(&door, &held, object, length).await, "{object}");
    }
    door.vault.close().await;
}
