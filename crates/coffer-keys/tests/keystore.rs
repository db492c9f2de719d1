//! What the vault relies on: keys that come back, changes that stay, errors that say what is wrong.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use coffer_keys::limits::SLOT_BYTES;
use coffer_keys::{Held, KeysError, Keystore, MemoryRoot, Repair, RootKey};
use coffer_seal::{BlobId, BucketId, LevelId, SecretKey};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

#[test]
fn a_new_keystore_has_a_system_key_and_the_level_default() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    assert!(!Keystore::exists(&path));
    let keystore = Keystore::create(&path, Box::new(root.clone())).unwrap();
    assert!(Keystore::exists(&path));
    assert_eq!(keystore.generation(), 1);
    let levels = keystore.levels();
    assert_eq!(levels.len(), 1);
    assert_eq!(levels[0].name, "default");
    assert_eq!(levels[0].label.to_string(), "s0");
    assert_eq!(levels[0].generation, 1);
    assert!(levels[0].created_ms > 1_700_000_000_000, "made just now");
    assert!(keystore.buckets().is_empty());

    let (again, repair) = Keystore::open(&path, Box::new(root.clone())).unwrap();
    assert_eq!(repair, Repair::None);
    assert_eq!(again.id(), keystore.id());
    assert_eq!(again.levels(), levels);
    assert_eq!(again.system_key(), keystore.system_key());
    let other = Keystore::create(&folder.path().join("other"), Box::new(root.clone())).unwrap();
    assert_ne!(other.system_key(), keystore.system_key());
}

#[test]
fn the_file_is_its_owners_sparse_and_alone() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    Keystore::create(&path, Box::new(root.clone())).unwrap();
    let metadata = fs::metadata(&path).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    assert_eq!(metadata.len(), 2 * SLOT_BYTES as u64);
    assert!(
        metadata.blocks() * 512 < 256 * 1024,
        "a small keystore takes little room"
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn nothing_is_overwritten() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    Keystore::create(&path, Box::new(root.clone())).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Keystore::create(&path, Box::new(root.clone())).unwrap_err();
    assert!(matches!(error, KeysError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
    // What a crash while creating leaves behind is cleared away.
    let other = folder.path().join("other");
    fs::write(folder.path().join("other.new"), "half").unwrap();
    Keystore::create(&other, Box::new(root.clone())).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn bucket_keys_come_back_after_a_restart() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    let keystore = Keystore::create(&path, Box::new(root.clone())).unwrap();
    let level = keystore.levels()[0].id;
    let (one, two) = (BucketId([1; 16]), BucketId([2; 16]));
    let key = keystore.add_bucket(one, level).unwrap();
    keystore.add_bucket(two, level).unwrap();
    assert_eq!(keystore.generation(), 3);
    let data_key = SecretKey::generate();
    let wrapped = key.wrap(BlobId([7; 16]), &data_key);
    drop(keystore);

    let (keystore, _) = Keystore::open(&path, Box::new(root.clone())).unwrap();
    assert_eq!(keystore.generation(), 3);
    let buckets = keystore.buckets();
    assert_eq!(
        buckets.iter().map(|bucket| bucket.id).collect::<Vec<_>>(),
        [one, two]
    );
    assert!(
        buckets
            .iter()
            .all(|bucket| bucket.level_id == level && bucket.generation == 1)
    );
    let again = keystore.bucket_key(one).unwrap();
    assert_eq!(
        again.unwrap(BlobId([7; 16]), 1, &wrapped).unwrap(),
        data_key
    );
    assert_eq!(again.catalog_key(), key.catalog_key());
    assert_eq!((again.bucket_id(), again.generation()), (one, 1));
}

#[test]
fn a_wrapped_data_key_opens_in_its_place_only() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let keystore =
        Keystore::create(&folder.path().join("keystore"), Box::new(root.clone())).unwrap();
    let level = keystore.levels()[0].id;
    let one = keystore.add_bucket(BucketId([1; 16]), level).unwrap();
    let two = keystore.add_bucket(BucketId([2; 16]), level).unwrap();
    assert_ne!(one.catalog_key(), two.catalog_key());
    let wrapped = one.wrap(BlobId([7; 16]), &SecretKey::generate());
    let did_not_open = |result| matches!(result, Err(KeysError::KeyDidNotOpen));
    assert!(
        did_not_open(one.unwrap(BlobId([8; 16]), 1, &wrapped).map(drop)),
        "another blob"
    );
    assert!(
        did_not_open(two.unwrap(BlobId([7; 16]), 1, &wrapped).map(drop)),
        "another bucket"
    );
    let mut changed = wrapped;
    changed[80] ^= 1;
    assert!(
        did_not_open(one.unwrap(BlobId([7; 16]), 1, &changed).map(drop)),
        "changed"
    );
    let other = one.unwrap(BlobId([7; 16]), 2, &wrapped).unwrap_err();
    assert!(matches!(
        other,
        KeysError::OtherGeneration { wrapped: 2, own: 1 }
    ));
}

#[test]
fn a_destroyed_bucket_is_gone_from_memory_and_both_copies() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    let keystore = Keystore::create(&path, Box::new(root.clone())).unwrap();
    let level = keystore.levels()[0].id;
    for number in 0..40 {
        keystore.add_bucket(BucketId([number; 16]), level).unwrap();
    }
    for number in 1..40 {
        keystore.destroy_bucket(BucketId([number; 16])).unwrap();
    }
    let gone = keystore.bucket_key(BucketId([5; 16])).unwrap_err();
    assert!(
        matches!(gone, KeysError::NoSuchBucket { bucket_id } if bucket_id == BucketId([5; 16]))
    );
    let again = keystore.destroy_bucket(BucketId([5; 16])).unwrap_err();
    assert!(matches!(again, KeysError::NoSuchBucket { .. }));

    let image = fs::read(&path).unwrap();
    let (a, b) = image.split_at(SLOT_BYTES);
    assert_eq!(a, b, "both copies are the same");
    let used = a.iter().rposition(|byte| *byte != 0).unwrap();
    assert!(
        used < 1_000,
        "what the shrunken copies left is zeros: {used}"
    );
    let (keystore, repair) = Keystore::open(&path, Box::new(root.clone())).unwrap();
    assert_eq!(repair, Repair::None);
    assert_eq!(keystore.buckets().len(), 1);
    assert!(keystore.bucket_key(BucketId([0; 16])).is_ok());
}

#[test]
fn changes_that_make_no_sense_change_nothing() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let keystore =
        Keystore::create(&folder.path().join("keystore"), Box::new(root.clone())).unwrap();
    let level = keystore.levels()[0].id;
    keystore.add_bucket(BucketId([1; 16]), level).unwrap();
    let twice = keystore.add_bucket(BucketId([1; 16]), level).unwrap_err();
    assert!(matches!(twice, KeysError::BucketExists { .. }));
    let nowhere = keystore
        .add_bucket(BucketId([2; 16]), LevelId([0xAB; 16]))
        .unwrap_err();
    assert!(matches!(nowhere, KeysError::NoSuchLevel { .. }));
    assert!(nowhere.to_string().contains(&"ab".repeat(16)), "{nowhere}");
    assert_eq!(keystore.generation(), 2);
    assert_eq!(keystore.buckets().len(), 1);
}

#[test]
fn another_root_key_opens_nothing_and_changes_nothing() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    Keystore::create(&path, Box::new(root.clone())).unwrap();
    let before = fs::read(&path).unwrap();
    let other = MemoryRoot::holding(RootKey::generate());
    let error = Keystore::open(&path, Box::new(other.clone())).unwrap_err();
    assert!(matches!(error, KeysError::StaleRoot(_)), "{error}");
    assert!(matches!(
        Keystore::open_read_only(&path, Box::new(other.clone())),
        Err(KeysError::StaleRoot(_))
    ));
    assert_eq!(fs::read(&path).unwrap(), before);
    let missing =
        Keystore::open(&folder.path().join("nowhere"), Box::new(root.clone())).unwrap_err();
    assert!(matches!(missing, KeysError::Missing { .. }), "{missing}");
}

#[test]
fn many_threads_change_one_keystore() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    let keystore = Keystore::create(&path, Box::new(root.clone())).unwrap();
    let level = keystore.levels()[0].id;
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let keystore = &keystore;
            threads.spawn(move || {
                for number in 0..5 {
                    let mut id = [thread; 16];
                    id[15] = number;
                    let key = keystore.add_bucket(BucketId(id), level).unwrap();
                    let again = keystore.bucket_key(BucketId(id)).unwrap();
                    assert_eq!(again.catalog_key(), key.catalog_key());
                }
            });
        }
    });
    assert_eq!(keystore.generation(), 21);
    assert_eq!(
        Keystore::open(&path, Box::new(root.clone()))
            .unwrap()
            .0
            .buckets()
            .len(),
        20
    );
}

#[test]
fn what_is_held_of_other_files_is_no_change_of_keys() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let path = folder.path().join("keystore");
    let keystore = Keystore::create(&path, Box::new(root.clone())).unwrap();
    let level = keystore.levels()[0].id;
    keystore.add_bucket(BucketId([1; 16]), level).unwrap();
    assert_eq!(keystore.keys_generation(), 2);
    keystore.hold(Held::default()).unwrap();
    assert_eq!((keystore.keys_generation(), keystore.generation()), (2, 3));
    keystore.add_bucket(BucketId([2; 16]), level).unwrap();
    assert_eq!(keystore.keys_generation(), 4);
    drop(keystore);
    let (keystore, _) = Keystore::open(&path, Box::new(root)).unwrap();
    keystore.hold(Held::default()).unwrap();
    assert_eq!(keystore.keys_generation(), 4);
}

#[test]
fn debug_output_has_no_secret() {
    let (folder, root) = (folder(), MemoryRoot::new());
    let keystore =
        Keystore::create(&folder.path().join("keystore"), Box::new(root.clone())).unwrap();
    let key = keystore
        .add_bucket(BucketId([1; 16]), keystore.levels()[0].id)
        .unwrap();
    let key_text = format!("{:?}", RootKey::generate());
    assert_eq!(key_text, "RootKey(SecretKey(redacted))");
    assert!(format!("{keystore:?}").len() < 120, "{keystore:?}");
    assert!(format!("{key:?}").len() < 120, "{key:?}");
}
