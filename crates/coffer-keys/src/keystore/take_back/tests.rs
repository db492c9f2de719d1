//! A rotation that ended, of which a catalog is from before.

use std::fs;
use std::path::Path;

use coffer_seal::{BlobId, SecretKey};

use super::*;
use crate::root::file::FileRoot;

const BUCKET: BucketId = BucketId([1; 16]);
const OTHER: BucketId = BucketId([2; 16]);
const BLOB: BlobId = BlobId([3; 16]);

fn open(folder: &Path) -> Keystore {
    let root = Box::new(FileRoot::new(folder.join("root.key")));
    Keystore::open(&folder.join("keystore"), root).unwrap().0
}

/// As it lies there now, in another folder.
fn state_of(folder: &Path, to: &Path) -> Keystore {
    fs::create_dir(to).unwrap();
    for name in ["keystore", "root.key"] {
        fs::copy(folder.join(name), to.join(name)).unwrap();
    }
    open(to)
}

fn made(folder: &Path) -> Keystore {
    let root = Box::new(FileRoot::new(folder.join("root.key")));
    let keystore = Keystore::create(&folder.join("keystore"), root).unwrap();
    let level_id = keystore.levels()[0].id;
    keystore.add_bucket(BUCKET, level_id).unwrap();
    keystore.add_bucket(OTHER, level_id).unwrap();
    keystore
}

/// With a new key of its level as well.
fn rotate(keystore: &Keystore) {
    keystore.rotate_level(keystore.levels()[0].id).unwrap();
    let older = keystore.rotate_bucket(BUCKET).unwrap().older_generation();
    keystore
        .retire_bucket_generation(BUCKET, older.unwrap())
        .unwrap();
}

#[test]
fn a_generation_that_was_destroyed_is_there_again_beside_the_current_one() {
    let folder = tempfile::tempdir().unwrap();
    let keystore = made(folder.path());
    let data_key = SecretKey::generate();
    let old = keystore.bucket_key(BUCKET).unwrap();
    let wrapped = old.wrap(BLOB, &data_key);
    let before = state_of(folder.path(), &folder.path().join("before"));
    rotate(&keystore);
    let now = keystore.bucket_key(BUCKET).unwrap();
    assert!(now.unwrap(BLOB, old.generation(), &wrapped).is_err());
    let newer = now.wrap(BLOB, &data_key);

    let could = keystore.could_take_back(&before, BUCKET);
    let found: Vec<_> = could
        .iter()
        .map(|entry| (entry.generation, entry.older_generation))
        .collect();
    assert_eq!(found, [(2, Some(1)), (1, None)]);
    keystore.take_back(&before, &could[0]).unwrap();
    drop(keystore);
    let keystore = open(folder.path());
    let both = keystore.bucket_key(BUCKET).unwrap();
    assert_eq!(both.unwrap(BLOB, 1, &wrapped).unwrap(), data_key);
    assert_eq!(both.unwrap(BLOB, 2, &newer).unwrap(), data_key);
    assert!(both.catalog_key() == old.catalog_key());
    // As after any rotation that was interrupted.
    keystore.retire_bucket_generation(BUCKET, 1).unwrap();
    assert!(keystore.bucket_key(BUCKET).is_ok());
}

#[test]
fn a_key_is_as_it_was_where_two_generations_are_needed_that_went() {
    let folder = tempfile::tempdir().unwrap();
    let keystore = made(folder.path());
    let data_key = SecretKey::generate();
    let first = keystore.bucket_key(BUCKET).unwrap().wrap(BLOB, &data_key);
    let second = keystore
        .rotate_bucket(BUCKET)
        .unwrap()
        .wrap(BLOB, &data_key);
    let catalog_key = keystore.bucket_key(BUCKET).unwrap().catalog_key();
    let before = state_of(folder.path(), &folder.path().join("before"));
    keystore.retire_bucket_generation(BUCKET, 1).unwrap();
    rotate(&keystore);

    let could = keystore.could_take_back(&before, BUCKET);
    keystore.take_back(&before, could.last().unwrap()).unwrap();
    let key = keystore.bucket_key(BUCKET).unwrap();
    assert_eq!((key.generation(), key.older_generation()), (2, Some(1)));
    assert_eq!(key.unwrap(BLOB, 1, &first).unwrap(), data_key);
    assert_eq!(key.unwrap(BLOB, 2, &second).unwrap(), data_key);
    assert!(key.catalog_key() == catalog_key);
}

#[test]
fn what_was_erased_and_what_another_keystore_has_does_not_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let keystore = made(folder.path());
    let entry = keystore.bucket(OTHER).unwrap();
    let before = state_of(folder.path(), &folder.path().join("before"));
    keystore.erase_bucket(OTHER).unwrap();
    assert!(keystore.could_take_back(&before, OTHER).is_empty());
    let refused = keystore.take_back(&before, &entry);
    assert!(matches!(refused, Err(KeysError::NoSuchBucket { .. })));

    let another = tempfile::tempdir().unwrap();
    let another = made(another.path());
    rotate(&keystore);
    assert!(keystore.could_take_back(&another, BUCKET).is_empty());
}
