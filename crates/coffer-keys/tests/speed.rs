//! How long an erase takes: it doesn't follow what is erased.

use std::time::{Duration, Instant};

use coffer_keys::{FileRoot, Keystore, LevelOptions};
use coffer_label::Label;

/// `cargo test --release -p coffer-keys --test speed -- --ignored --nocapture`
#[test]
#[ignore = "makes 10,000 buckets one by one; prints figures"]
fn erase_of_a_full_keystore_takes_less_than_100_ms() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let source = Box::new(FileRoot::new(folder.path().join("root.key")));
    let keystore = Keystore::create(&folder.path().join("keystore"), source).unwrap();
    let default = keystore.levels()[0].id;
    for filled in [10_u16, 100, 1_000, 9_990] {
        for number in keystore.buckets().len() as u16..filled {
            let mut id = [0; 16];
            id[..2].copy_from_slice(&number.to_be_bytes());
            keystore.add_bucket(id, default).unwrap();
        }
        let options = LevelOptions::default();
        let level = keystore.add_level("small", Label::LOWEST, options).unwrap();
        keystore.add_bucket([0xFF; 16], level.id).unwrap();
        let begun = Instant::now();
        keystore.erase_level(level.id).unwrap();
        let took = begun.elapsed();
        println!("a level of 1 bucket, {filled} others kept: {took:?}");
        assert!(took < Duration::from_millis(100));
    }
    let begun = Instant::now();
    let erased = keystore.erase_level(default).unwrap();
    let took = begun.elapsed();
    println!("a level of {} buckets: {took:?}", erased.buckets.len());
    assert!(took < Duration::from_millis(100));
}
