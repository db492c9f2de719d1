//! How long an erase takes.

use std::io::{Write, stderr};
use std::time::{Duration, Instant};

use super::*;
use crate::keystore::body::tests::fullest;
use crate::root::file::FileRoot;

/// `cargo test --release -p coffer-keys --lib -- --ignored --nocapture an_erase`
#[test]
#[ignore = "measures: for a machine that does nothing else, and a release build"]
fn an_erase_takes_less_than_100_ms_whatever_is_erased() {
    let folder = tempfile::tempdir_in(".").unwrap();
    let source = Box::new(FileRoot::new(folder.path().join("root.key")));
    let keystore = Keystore::create(&folder.path().join("keystore"), source).unwrap();
    let default = keystore.levels()[0].id;
    for bucket_count in [1, 100, 1_000, 10_000] {
        for erases_all in [false, true] {
            let options = LevelOptions::default();
            let level = keystore.add_level("one", Label::LOWEST, options).unwrap();
            let owner = if erases_all { level.id } else { default };
            let mut buckets = fullest().buckets;
            for (bucket, last) in buckets.values_mut().zip((1..=bucket_count).rev()) {
                bucket.level_id = if last == 1 { level.id } else { owner };
            }
            buckets.retain(|_, bucket| [default, level.id].contains(&bucket.level_id));
            assert_eq!(buckets.len(), bucket_count);
            keystore.state().contents.buckets = buckets;
            let begun = Instant::now();
            let erased = keystore.erase_level(level.id).unwrap();
            let took = begun.elapsed();
            let count = erased.buckets.len();
            writeln!(stderr(), "{count} of {bucket_count} buckets: {took:?}").unwrap();
            assert!(took < Duration::from_millis(100));
            let all = keystore.buckets().len() + erased.buckets.len();
            assert_eq!(all, bucket_count);
        }
    }
}
