//! In which order a rotation and the copies of keystore and catalogs go on.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::NewCopy;
use crate::limits::ROTATION_LOOKS_EVERY;
use crate::rotation::tests::{LOCAL, bucket, ended, generations, scene};
use crate::vault::Vault;

fn far(copy: &Path) -> NewCopy {
    NewCopy {
        name: "far".to_owned(),
        url: format!("file://{}", copy.display()),
        keep_ms: None,
        sync: None,
    }
}

/// Rotates the bucket's key while the copy is away, and returns when that is waited for.
async fn rotate_until_the_copy_is_waited_for(vault: &Vault) {
    vault.rotate_bucket(&LOCAL, &bucket()).await.unwrap();
    for _ in 0..600 {
        let rotations = vault.rotations(&LOCAL).await.unwrap();
        if rotations.last().unwrap().waits_for == ["far"] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the copy is not waited for");
}

/// Its catalog comes into no head any more, and the erase may be completed days later.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_ends_though_the_erase_of_a_bucket_of_it_is_only_ordered() {
    let root = tempfile::tempdir().unwrap();
    let (copy, away) = (root.path().join("copy"), root.path().join("away"));
    let (vault, _) = scene(&root.path().join("data")).await;
    let added = vault.add_copy_with_keystore(&LOCAL, &far(&copy), &[]).await;
    added.unwrap();
    let id = vault.inner.keystore.buckets()[0].id;
    for _ in 0..600 {
        if vault
            .inner
            .copies
            .without_catalogs(&[(id, 1)])
            .unwrap()
            .is_empty()
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fs::rename(&copy, &away).unwrap();
    rotate_until_the_copy_is_waited_for(&vault).await;
    let system = &vault.inner.system;
    let hidden = {
        let _changing = vault.inner.changing_buckets.lock().await;
        system.begin_erase_doubt(&[id]);
        system.set_aside(&[id], None)
    };
    let _ = fs::remove_dir_all(&copy);
    fs::rename(&away, &copy).unwrap();
    // The erase may turn out not to be ordered: then the catalog must be there without it.
    tokio::time::sleep(3 * ROTATION_LOOKS_EVERY).await;
    let rotations = vault.rotations(&LOCAL).await.unwrap();
    assert_eq!(rotations.last().unwrap().ended_ms, None);
    system.end_erase_doubt(&[id]);
    let rotation = ended(&vault).await;
    assert_eq!(rotation.failure, None);
    // It goes with the others, and nothing says that it is gone.
    assert_eq!(generations(&vault), (1, 2, Some(1)));
    assert_eq!(rotation.buckets_done, 0);
    system.put_back(hidden, None);
    vault.close().await;
}

/// A copy has one keystore, the newest: were that to come before the catalogs, and nothing after
/// it, they would not open.
#[tokio::test(flavor = "multi_thread")]
async fn older_keys_go_when_copies_with_the_keystore_have_the_catalog_without_them() {
    let root = tempfile::tempdir().unwrap();
    let (copy, away) = (root.path().join("copy"), root.path().join("away"));
    let (vault, _) = scene(&root.path().join("data")).await;
    let added = vault.add_copy_with_keystore(&LOCAL, &far(&copy), &[]).await;
    added.unwrap();
    let id = vault.inner.keystore.buckets()[0].id;
    let behind: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
    let (noted, inner) = (behind.clone(), vault.inner.clone());
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        if step == "older destroyed" {
            let commits = inner.open_buckets.last_commit(id).unwrap();
            let names = inner.copies.without_catalogs(&[(id, commits)]);
            noted.lock().push(names.unwrap());
        }
    }));
    vault.rotate_level(&LOCAL, "default").await.unwrap();
    let rotation = ended(&vault).await;
    assert_eq!((rotation.failure, rotation.waits_for), (None, Vec::new()));
    assert_eq!(generations(&vault), (2, 2, None));
    let none = vec![Vec::<String>::new()];
    assert_eq!(*behind.lock(), none, "its head had the catalog by then");
    let generation = vault.inner.keystore.generation();
    let taken = vault.inner.copies.without_keystore(generation);
    assert_eq!(taken.unwrap(), none[0], "and it has the keystore by now");

    // A copy that is away is waited for, with both generations at hand.
    fs::rename(&copy, &away).unwrap();
    vault.rotate_bucket(&LOCAL, &bucket()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let rotations = vault.rotations(&LOCAL).await.unwrap();
    let rotation = rotations.last().unwrap();
    assert_eq!(rotation.ended_ms, None);
    assert_eq!(rotation.waits_for, ["far"]);
    assert_eq!(generations(&vault), (2, 3, Some(2)));
    let _ = fs::remove_dir_all(&copy);
    fs::rename(&away, &copy).unwrap();
    assert_eq!(ended(&vault).await.failure, None);
    assert_eq!(generations(&vault), (2, 3, None));
    assert_eq!(*behind.lock(), [none.clone(), none].concat());
    vault.inner.probe.lock().take();
    vault.close().await;
}
