//! Commits that fail.

use super::*;
use crate::access::{NewAccessKey, Subject};

impl System {
    /// Has the next commit fail; `stands` all the same or not, which can be found out or not.
    pub(crate) fn fail_next_commit(&self, stands: bool, can_settle: bool) {
        self.held().link.faults = Faults {
            commit: Some(stands),
            is_unsettled: !can_settle,
        };
    }

    /// Forgets what was read of it.
    pub(crate) fn reopen(&self) {
        self.held().link.drop_connection();
    }

    pub(crate) fn let_settle(&self) {
        self.held().link.faults = Faults::default();
    }
}

fn key() -> SecretKey {
    SecretKey::from_bytes([0x0d; 32])
}

fn subject(name: &str) -> Subject {
    Subject {
        id: coffer_seal::SubjectId::random(),
        name: name.into(),
        access_key: None,
        is_trusted: false,
        mark: Default::default(),
        clearance: "s0".parse().unwrap(),
        roles: crate::access::Roles::all(),
        grants: None,
        is_disabled: false,
        expires_ms: None,
        created_ms: 1,
        cutoff: std::sync::Arc::default(),
        asked: None,
    }
}

fn key_of(name: &str) -> NewAccessKey {
    let mut key = NewAccessKey::random(None, 1);
    key.key.id = format!("CF{name}");
    key
}

fn id(system: &System, name: &str) -> coffer_seal::SubjectId {
    system.find_subject(name).unwrap().subject.id
}

fn disabled(before: &Subject) -> Result<Subject> {
    Ok(Subject {
        is_disabled: true,
        cutoff: std::sync::Arc::default(),
        asked: None,
        ..before.clone()
    })
}

fn system(dir: &tempfile::TempDir) -> System {
    let system = System::open(&dir.path().join("system.db"), &key()).unwrap();
    if !system.has_subjects() {
        system.add_subject(subject("ann"), key_of("ann")).unwrap();
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
        let changed = system.change_subject(id(&system, "ann"), disabled);
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
        system.add_subject(subject(name), key_of(name)).unwrap();
    }
    system.fail_next_commit(false, false);
    let changed = system.change_subject(id(&system, "ann"), disabled);
    assert!(matches!(changed, Err(VaultError::SystemInDoubt)));
    assert!(system.change_subject(id(&system, "bob"), disabled).is_err());
    assert!(
        system
            .remove_subject(id(&system, "cleo"), || Ok(()), || ())
            .is_err()
    );
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
    system.change_subject(id(&system, "ann"), disabled).unwrap();
    system.fail_next_commit(true, true);
    system
        .remove_subject(id(&system, "ann"), || Ok(()), || ())
        .unwrap();
    system.fail_next_commit(false, true);
    assert!(system.add_subject(subject("bob"), key_of("bob")).is_err());
    assert!(system.all_subjects().is_empty());
    drop(system);
    let path = dir.path().join("system.db");
    let again = System::open(&path, &key()).unwrap();
    assert!(again.all_subjects().is_empty());
}

#[test]
fn an_access_key_that_may_have_been_disabled_does_not_count() {
    for has_happened in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let system = system(&dir);
        let ann = id(&system, "ann");
        let add = |keys: &mut Vec<NewAccessKey>| {
            keys.push(key_of("other"));
            Ok(())
        };
        system.change_keys(ann, add).unwrap();
        let [one, other] = ["CFann", "CFother"].map(|key| system.subject(key, now).unwrap());
        let disable = |keys: &mut Vec<NewAccessKey>| {
            keys[0].key.is_disabled = true;
            Ok(())
        };
        system.fail_next_commit(has_happened, false);
        assert!(matches!(
            system.change_keys(ann, disable),
            Err(VaultError::SystemInDoubt)
        ));
        for key in ["CFann", "CFother"] {
            assert!(system.subject(key, now).is_none() && system.is_key_in_doubt(key));
        }
        assert!(one.cutoff.is_cut() && other.cutoff.is_cut());
        system.let_settle();
        system.assure_certain().unwrap();
        assert_eq!(system.subject("CFann", now).is_none(), has_happened);
        assert!(!system.subject("CFother", now).unwrap().cutoff.is_cut());
        drop(system);
        let path = dir.path().join("system.db");
        let again = System::open(&path, &key()).unwrap();
        assert_eq!(again.subject("CFann", now).is_none(), has_happened);
        assert_eq!(again.subject("CFother", now).unwrap().id, ann);
    }
}

#[test]
fn a_key_that_ends_takes_no_other_along() {
    let dir = tempfile::tempdir().unwrap();
    let system = system(&dir);
    let ann = id(&system, "ann");
    let add = |keys: &mut Vec<NewAccessKey>| {
        keys.push(key_of("other"));
        Ok(())
    };
    let first = system.subject("CFann", now).unwrap();
    let (_, before, after) = system.change_keys(ann, add).unwrap();
    before.cut_but(Some(&after), None);
    assert!(!first.cutoff.is_cut(), "it goes on beside a new one");
    let other = system.subject("CFother", now).unwrap();
    let delete = |keys: &mut Vec<NewAccessKey>| {
        keys.remove(0);
        Ok(())
    };
    let (_, before, after) = system.change_keys(ann, delete).unwrap();
    before.cut_but(Some(&after), None);
    assert!(first.cutoff.is_cut() && !other.cutoff.is_cut());
    assert!(system.subject("CFann", now).is_none());
    let renamed = |before: &Subject| {
        Ok(Subject {
            name: "ann.lee".into(),
            ..before.clone()
        })
    };
    let (before, after) = system.change_subject(ann, renamed).unwrap();
    before.cut_but(Some(&after), None);
    assert!(!other.cutoff.is_cut(), "a name cuts off nothing");
    for text in ["ann.lee", "CFother", &ann.to_string()] {
        assert_eq!(id(&system, text), ann, "{text}");
    }
    for gone in ["ann", "CFann"] {
        assert!(system.find_subject(gone).is_none(), "{gone}");
    }
    assert!(system.add_subject(subject("ann.lee"), key_of("x")).is_err());
}
