//! Never fewer are told than were given, whatever a stop or a failed commit does.

use std::sync::OnceLock;

use coffer_seal::{BucketId, SecretKey};

use super::*;
use crate::access::BucketName;
use crate::error::VaultError;
use crate::system::BucketDocuments;

const LEVEL: LevelId = LevelId([5; 16]);

fn open(dir: &tempfile::TempDir) -> System {
    let key = SecretKey::from_bytes([0x0d; 32]);
    System::open(&dir.path().join("system.db"), &key).unwrap()
}

fn add(system: &System, name: &str) -> Arc<BucketRow> {
    let row = BucketRow {
        id: BucketId::random(),
        name: BucketName::new(name).unwrap(),
        level_id: LEVEL,
        created_ms: 1,
        level: OnceLock::new(),
        is_hidden: Arc::default(),
        made_by: None,
        documents: Arc::new(BucketDocuments::first(Vec::new())),
    };
    system.add_bucket(row).unwrap();
    find(system, name)
}

fn find(system: &System, name: &str) -> Arc<BucketRow> {
    system.bucket_named(name).unwrap()
}

fn count(system: &System, name: &str) -> u64 {
    system.key_releases(&find(system, name)).count
}

/// As a server does it: without waiting where that can be.
fn give(system: &System, row: &Arc<BucketRow>, keys: u64) {
    if !system.covers_key_release(row, keys) {
        system.cover_key_release(row, keys).unwrap();
    }
}

#[test]
fn few_releases_are_written_and_none_is_above_the_bound() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    let row = add(&system, "notes");
    let before = system.commit_count().unwrap();
    for number in 1..=3_500 {
        give(&system, &row, 1);
        assert_eq!(
            system.key_releases(&row).count,
            number,
            "exact while it runs"
        );
    }
    assert_eq!(system.commit_count().unwrap() - before, 4);
    give(&system, &row, 10_000);
    drop(system);
    let system = open(&dir);
    let after = count(&system, "notes");
    assert!(
        (13_500..=13_500 + KEY_RELEASES_STEP).contains(&after),
        "{after}"
    );
    let row = find(&system, "notes");
    give(&system, &row, 1);
    assert_eq!(
        system.key_releases(&row).count,
        after + 1,
        "on top of what may have been"
    );
}

#[test]
fn a_stop_leaves_the_exact_count() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    let (row, other) = (add(&system, "notes"), add(&system, "other"));
    give(&system, &row, 7);
    give(&system, &other, 2_000);
    add(&system, "unused");
    system.settle_key_releases().unwrap();
    // Should any come after it all the same.
    give(&system, &row, 1);
    drop(system);
    let system = open(&dir);
    assert_eq!(count(&system, "other"), 2_000);
    assert_eq!(count(&system, "notes"), 8 + KEY_RELEASES_STEP);
    assert_eq!(count(&system, "unused"), 0);
}

#[test]
fn a_commit_that_fails_gives_no_key_and_is_below_none() {
    for (stands, can_settle) in [(true, true), (true, false), (false, true), (false, false)] {
        let dir = tempfile::tempdir().unwrap();
        let system = open(&dir);
        let row = add(&system, "notes");
        system.fail_next_commit(stands, can_settle);
        let first = system.cover_key_release(&row, 5);
        assert_eq!(first.is_ok(), stands && can_settle);
        let given = if first.is_ok() { 5 } else { 0 };
        if !can_settle {
            assert!(matches!(first, Err(VaultError::SystemInDoubt)));
            assert!(!system.covers_key_release(&row, 1));
            assert!(
                system.cover_key_release(&row, 1).is_err(),
                "as long as it is in doubt"
            );
        }
        system.let_settle();
        give(&system, &row, 1);
        assert_eq!(system.key_releases(&row).count, given + 1);
        drop(system);
        assert!(count(&open(&dir), "notes") > given);
    }
}

/// The lower bound may be the one that is on the disk.
#[test]
fn a_lowering_in_doubt_is_covered_before_the_next_release() {
    for stands in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let system = open(&dir);
        let row = add(&system, "notes");
        give(&system, &row, 3);
        system.fail_next_commit(stands, false);
        assert!(system.settle_key_releases().is_err());
        assert!(
            !system.covers_key_release(&row, 1),
            "the bound in memory may be too high"
        );
        system.let_settle();
        give(&system, &row, 1);
        assert_eq!(system.key_releases(&row).count, 4);
        drop(system);
        assert!(count(&open(&dir), "notes") >= 4);
    }
}

#[test]
fn a_bucket_that_goes_leaves_its_count_to_its_level() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    let (one, other) = (add(&system, "one"), add(&system, "other"));
    give(&system, &one, 30);
    give(&system, &other, 12);
    // Those who looked it up before.
    let late = one.clone();
    system.remove_bucket(&one, || ()).unwrap();
    assert!(!system.covers_key_release(&late, 1));
    assert!(system.cover_key_release(&late, 1).is_err());
    assert_eq!(system.level_key_releases(LEVEL).unwrap().count, 30);
    drop(system);
    let system = open(&dir);
    assert_eq!(system.level_key_releases(LEVEL).unwrap().count, 30);
    let other = find(&system, "other");
    system.remove_bucket(&other, || ()).unwrap();
    let all = system.level_key_releases(LEVEL).unwrap().count;
    assert!((42..=42 + KEY_RELEASES_STEP).contains(&all), "{all}");
    let none = system.level_key_releases(LevelId([6; 16])).unwrap();
    assert_eq!(none, KeyReleases::default());
}

#[test]
fn a_bucket_that_does_not_go_after_all_gives_on() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    let row = add(&system, "notes");
    give(&system, &row, 4);
    system.fail_next_commit(false, true);
    assert!(system.remove_bucket(&row, || ()).is_err());
    give(&system, &row, 1);
    assert_eq!(system.key_releases(&row).count, 5);
    assert_eq!(system.level_key_releases(LEVEL).unwrap().count, 0);
}
