//! Commits that fail.

use super::*;
use crate::access::Subject;

fn key() -> SecretKey {
    SecretKey::from_bytes([0x0d; 32])
}

fn subject(name: &str) -> Subject {
    Subject {
        access_key_id: format!("CF{name}"),
        name: name.to_owned(),
        is_trusted: false,
        mark: Default::default(),
        clearance: "s0".parse().unwrap(),
        roles: crate::access::Roles::all(),
        grants: None,
        is_disabled: false,
        expires_ms: None,
        created_ms: 1,
        cutoff: std::sync::Arc::default(),
    }
}

fn disabled(before: &Subject) -> Result<Subject> {
    Ok(Subject {
        is_disabled: true,
        cutoff: std::sync::Arc::default(),
        ..before.clone()
    })
}

fn system(dir: &tempfile::TempDir) -> System {
    let system = System::open(&dir.path().join("system.db"), &key()).unwrap();
    if !system.has_subjects() {
        let secret = zeroize::Zeroizing::new("secret".to_owned());
        system.add_subject(subject("ann"), secret).unwrap();
    }
    system
}

fn now() -> i64 {
    5
}

#[test]
fn an_access_key_whose_change_is_in_doubt_does_not_count() {
    for has_happened in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let system = system(&dir);
        let before = system.subject("CFann", now).unwrap();
        system.fail_next_commit(has_happened, false);
        let changed = system.change_subject("ann", disabled);
        assert!(matches!(changed, Err(VaultError::SystemInDoubt)));
        assert!(system.subject("CFann", now).is_none());
        assert!(system.is_key_in_doubt("CFann"));
        assert!(before.cutoff.is_cut());
        assert!(system.audit_anchor().is_err(), "nothing is read either");
        system.let_settle();
        system.assure_certain().unwrap();
        assert_eq!(system.subject("CFann", now).is_none(), has_happened);
        assert!(!system.is_key_in_doubt("CFann"));
        if let Some(again) = system.subject("CFann", now) {
            assert!(!again.cutoff.is_cut());
        }
    }
}

/// A change that is refused because an earlier one is in doubt has certainly not happened.
#[test]
fn what_is_refused_while_something_else_is_in_doubt_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let system = system(&dir);
    for name in ["bob", "cleo"] {
        let secret = zeroize::Zeroizing::new("secret".to_owned());
        system.add_subject(subject(name), secret).unwrap();
    }
    system.fail_next_commit(false, false);
    let changed = system.change_subject("ann", disabled);
    assert!(matches!(changed, Err(VaultError::SystemInDoubt)));
    assert!(system.change_subject("bob", disabled).is_err());
    assert!(system.remove_subject("cleo").is_err());
    for access_key_id in ["CFbob", "CFcleo"] {
        assert!(system.subject(access_key_id, now).is_some());
    }
    system.let_settle();
    system.assure_certain().unwrap();
    for access_key_id in ["CFann", "CFbob", "CFcleo"] {
        assert!(system.subject(access_key_id, now).is_some());
    }
}

#[test]
fn a_change_that_stands_although_its_commit_failed_has_happened() {
    let dir = tempfile::tempdir().unwrap();
    let system = system(&dir);
    system.fail_next_commit(true, true);
    system.change_subject("ann", disabled).unwrap();
    system.fail_next_commit(true, true);
    system.remove_subject("ann").unwrap();
    system.fail_next_commit(false, true);
    let secret = zeroize::Zeroizing::new("secret".to_owned());
    assert!(system.add_subject(subject("bob"), secret).is_err());
    assert!(system.all_subjects().is_empty());
    drop(system);
    let path = dir.path().join("system.db");
    let again = System::open(&path, &key()).unwrap();
    assert!(again.all_subjects().is_empty());
}
