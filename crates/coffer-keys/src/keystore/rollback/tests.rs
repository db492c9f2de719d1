//! An older keystore that is accepted.

use std::fs;
use std::path::Path;

use super::*;
use crate::root::file::FileRoot;

fn open(folder: &Path, accepts_rollback: bool) -> Result<Keystore, KeysError> {
    let root = Box::new(FileRoot::elsewhere(folder.join("root.key")));
    let path = folder.join("keystore");
    Keystore::open_accepting(&path, root, accepts_rollback).map(|(keystore, _)| keystore)
}

/// A start that was stopped before it noted what follows from that finds it older once more.
#[test]
fn an_older_keystore_stays_older_until_it_is_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keystore");
    let root = Box::new(FileRoot::elsewhere(folder.path().join("root.key")));
    let keystore = Keystore::create(&path, root).unwrap();
    let older = fs::read(&path).unwrap();
    for system_commits in 1..=3 {
        let held = Held {
            system_commits,
            ..Held::default()
        };
        keystore.hold(held).unwrap();
    }
    keystore.hold_outside().unwrap();
    let newest = keystore.generation();
    drop(keystore);
    fs::write(&path, older).unwrap();

    for _ in 0..2 {
        let refused = open(folder.path(), false);
        assert!(matches!(refused, Err(KeysError::RolledBack { .. })));
        let accepted = open(folder.path(), true).unwrap();
        assert_eq!(accepted.accepted().unwrap().held.generation, newest);
    }
    let accepted = open(folder.path(), true).unwrap();
    accepted.go_on_from_older().unwrap();
    let beyond = accepted.generation();
    assert!(beyond > newest);
    accepted.go_on_from_older().unwrap();
    assert_eq!(accepted.generation(), beyond, "once");
    drop(accepted);
    let again = open(folder.path(), false).unwrap();
    assert_eq!((again.accepted(), again.generation()), (None, beyond));
    again.go_on_from_older().unwrap();
    assert_eq!(again.generation(), beyond, "none was accepted");
}
