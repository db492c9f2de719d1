//! What is in doubt is noted all together, or not at all.

use std::sync::{Arc, OnceLock};

use coffer_label::{Clearance, Label};
use coffer_seal::{SecretKey, SubjectId};

use super::*;
use crate::access::{BucketName, NewAccessKey, Roles, Subject};
use crate::system::{BucketDocuments, Kind};

const LEVEL: LevelId = LevelId([5; 16]);

fn open(dir: &tempfile::TempDir) -> System {
    let key = SecretKey::from_bytes([0x0d; 32]);
    System::open(&dir.path().join("system.db"), &key).unwrap()
}

fn add_bucket(system: &System, name: &str, bound: LockBound) -> BucketId {
    let bound = bound.to_document();
    let documents = bound.map(|bound| (BucketConfiguration::LockBound, bound));
    let id = BucketId::random();
    let row = BucketRow {
        id,
        name: BucketName::new(name).unwrap(),
        level_id: LEVEL,
        created_ms: 1,
        level: OnceLock::new(),
        is_hidden: Arc::default(),
        made_by: None,
        documents: Arc::new(BucketDocuments::first(documents.into_iter().collect())),
    };
    system.add_bucket(row).unwrap();
    id
}

fn add_subject(system: &System) {
    let label: Label = "s0".parse().unwrap();
    let subject = Subject {
        id: SubjectId::random(),
        name: "ada".into(),
        access_key: None,
        clearance: Clearance::new(label, label).unwrap(),
        is_trusted: false,
        mark: Arc::default(),
        roles: Roles::all(),
        grants: None,
        is_disabled: false,
        expires_ms: None,
        created_ms: 1,
        cutoff: Arc::default(),
        asked: None,
    };
    let key = NewAccessKey::random(None, 1);
    system.add_subject(subject, key).unwrap();
}

fn bound(system: &System, name: &str) -> LockBound {
    system
        .lock_bound(&system.bucket_named(name).unwrap())
        .unwrap()
}

const GOVERNANCE: LockBound = LockBound {
    count: 3,
    compliance_until_ms: None,
    governance_until_ms: Some(7),
    has_hold: false,
    is_left_to_erase: false,
    is_key_destroyed: false,
};

/// What it says of orders, locks, keys and subjects.
fn said(system: &System) -> (bool, LockBound, bool, [bool; 2]) {
    let drafts = system.documents::<serde_json::Value>(Kind::Erase).unwrap();
    let keys = system.level_key_releases(LEVEL).unwrap();
    let entry = system.find_subject("ada").unwrap();
    let mut access_keys = entry.access_keys();
    let is_disabled = [
        entry.subject.is_disabled,
        access_keys.all(|key| key.is_disabled),
    ];
    (
        drafts[0]["is_ordered"] == true,
        bound(system, "kept"),
        keys.is_incomplete,
        is_disabled,
    )
}

#[test]
fn a_stop_leaves_all_of_it_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    let kept = add_bucket(&system, "kept", GOVERNANCE);
    add_subject(&system);
    let draft = serde_json::json!({"is_ordered": true});
    system.keep(Kind::Erase, kept.into(), &draft).unwrap();
    let doubts = || Doubts {
        orders: true,
        ordered: HashSet::from([kept]),
        key_releases: vec![LEVEL],
        subjects: true,
        commit_count: 1_000,
        ..Doubts::of_locks(&|_| true)
    };
    let before = (true, GOVERNANCE, false, [false; 2]);
    let after = (false, LockBound::UNKNOWN, true, [true; 2]);
    assert_eq!(said(&system), before);
    let count = system.commit_count().unwrap();
    system.fail_next_commit(false, true);
    assert!(system.doubt(doubts()).is_err());
    assert_eq!(said(&system), before);
    system.doubt(doubts()).unwrap();
    assert_eq!(said(&system), after);
    assert!(count < 900);
    assert_eq!(
        system.commit_count().unwrap(),
        1_001,
        "raised in one commit"
    );
    drop(system);
    assert_eq!(said(&open(&dir)), after);
}

#[test]
fn what_was_left_out_to_be_erased_has_the_locks_of_its_order_until_it_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    let ids = ["ordered", "lost", "there"].map(|name| add_bucket(&system, name, GOVERNANCE));
    let [ordered, lost, there] = ids;
    let doubt = |ordered: &[BucketId], there: &[BucketId]| {
        let is_there = |id| there.contains(&id);
        let doubts = Doubts {
            orders: true,
            ordered: ordered.iter().copied().collect(),
            ..Doubts::of_locks(&is_there)
        };
        system.doubt(doubts).unwrap();
        ["ordered", "lost", "there"].map(|name| bound(&system, name))
    };
    let left = LockBound {
        is_left_to_erase: true,
        ..GOVERNANCE
    };
    let unknown = LockBound::UNKNOWN;
    let all = [left, unknown, unknown];
    assert_eq!(doubt(&[ordered, there], &[there]), all);
    // Its draft has been dropped by now.
    assert_eq!(doubt(&[], &[there]), all);
    system.doubt_found(|id| id != ordered).unwrap();
    assert_eq!(bound(&system, "ordered"), left);
    system.doubt_found(|id| id != lost).unwrap();
    assert_eq!(bound(&system, "ordered"), unknown);
    assert_eq!(doubt(&[], &[there]), [unknown; 3]);
}

/// A keystore that is not of after the database may be of before the bucket was made.
#[test]
fn a_key_that_is_lacking_was_destroyed_where_the_keystore_is_the_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    add_bucket(&system, "kept", GOVERNANCE);
    let doubt = |lacks_key: bool, is_keystore_later: bool| {
        let doubts = Doubts {
            lacks_key: &|_| lacks_key,
            is_keystore_later,
            ..Doubts::of_locks(&|_| true)
        };
        system.doubt(doubts).unwrap();
        bound(&system, "kept")
    };
    let destroyed = LockBound {
        is_key_destroyed: true,
        ..LockBound::UNKNOWN
    };
    assert_eq!(doubt(true, false), LockBound::UNKNOWN);
    assert_eq!(doubt(false, true), LockBound::UNKNOWN);
    assert_eq!(doubt(true, true), destroyed);
    assert_eq!(doubt(true, false), destroyed, "it was known before");
    assert_eq!(doubt(false, false), LockBound::UNKNOWN, "it is there again");
}

#[test]
fn what_was_not_counted_is_not_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let system = open(&dir);
    add_bucket(&system, "notes", LockBound::default());
    let row = system.bucket_named("notes").unwrap();
    system.cover_key_release(&row, 4).unwrap();
    let doubts = Doubts {
        key_releases: vec![LEVEL],
        ..Doubts::of_locks(&|_| true)
    };
    system.doubt(doubts).unwrap();
    system.remove_bucket(&row, || ()).unwrap();
    drop(system);
    let kept = open(&dir).level_key_releases(LEVEL).unwrap();
    assert_eq!((kept.count, kept.is_incomplete), (4, true));
}
