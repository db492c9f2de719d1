//! What needs a keystore that is fuller than a test can make it.

use coffer_seal::BucketId;

use super::*;
use crate::keystore::body::tests::fullest;
use crate::root::memory::MemoryRoot;

#[test]
fn a_full_keystore_takes_no_more_buckets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keystore");
    let root = MemoryRoot::new();
    let keystore = Keystore::create(&path, Box::new(root.clone())).unwrap();
    let level_id = keystore.levels()[0].id;
    let mut buckets = fullest().buckets;
    for bucket in buckets.values_mut() {
        bucket.level_id = level_id;
    }
    keystore.state().contents.buckets = buckets;

    let full = keystore
        .add_bucket(BucketId([0xEE; 16]), level_id)
        .unwrap_err();
    assert!(matches!(
        full,
        KeysError::TooManyBuckets {
            count: BUCKET_COUNT_MAX
        }
    ));
    assert_eq!(keystore.generation(), 1, "nothing was written");
    let one = keystore.buckets()[0].id;
    keystore.destroy_bucket(one).unwrap();
    keystore.add_bucket(BucketId([0xEE; 16]), level_id).unwrap();
    let (again, _) = Keystore::open(&path, Box::new(root.clone())).unwrap();
    assert_eq!(again.buckets().len(), BUCKET_COUNT_MAX);
    assert!(again.bucket_key(BucketId([0xEE; 16])).is_ok());
}
