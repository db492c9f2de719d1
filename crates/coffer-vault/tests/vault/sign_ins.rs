//! Who fails to sign in, as the audit log tells of them.

use std::collections::BTreeMap;
use std::path::Path;

use coffer_audit::Event;
use coffer_vault::*;

use crate::door;

const LOCAL: Actor = Actor::Local { uid: 0 };

/// A record of a sign-in: the access key's id, or else the actor; and details.
type Told = (String, BTreeMap<String, String>);

/// What the log has of failed sign-ins, after a stop, which tells of all that repeated.
async fn told(vault: Vault, data: &Path) -> Vec<Told> {
    told_with("denied", vault, data).await
}

/// What the log has of sign-ins that ended so.
async fn told_with(outcome: &str, vault: Vault, data: &Path) -> Vec<Told> {
    let recorded = door::recorded_by_the_next_start(vault, data).await;
    let is_wanted =
        |event: &Event| event.act == "server.sign-in" && event.outcome.as_str() == outcome;
    let sign_ins = recorded.into_iter().filter(is_wanted);
    sign_ins
        .map(|event| (event.access_key_id.unwrap_or(event.actor), event.details))
        .collect()
}

fn details<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    pairs.into_iter().map(owned).collect()
}

#[tokio::test]
async fn refused_signatures_are_told_with_reasons_and_counts() {
    let folder = tempfile::tempdir().unwrap();
    let vault = door::open(folder.path()).await;
    let first = door::access_key_id(folder.path());
    let new = NewSubject {
        is_trusted: false,
        name: "guest".into(),
        clearance: "default".into(),
        roles: [Role::DataUser].into_iter().collect(),
        expires_ms: None,
        grants: None,
    };
    let (guest, _) = vault.create_subject(&LOCAL, new).await.unwrap();
    let guest = guest.keys[0].id.clone();
    let fails = |id: &str, failure| vault.sign_in_failed(Some(id), failure, None);
    for _ in 0..5 {
        fails(&first, SignInFailure::Signature);
    }
    fails(&first, SignInFailure::Clock);
    let disabled = SubjectChange {
        is_disabled: Some(true),
        ..SubjectChange::default()
    };
    vault
        .change_subject(&LOCAL, "guest", disabled, false)
        .await
        .unwrap();
    fails(&guest, SignInFailure::AccessKey);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let soon_ms = now.unwrap().as_millis() as i64 + 1_000;
    let expired = SubjectChange {
        is_disabled: Some(false),
        expires_ms: Some(Some(soon_ms)),
        ..SubjectChange::default()
    };
    vault
        .change_subject(&LOCAL, "guest", expired, false)
        .await
        .unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    fails(&guest, SignInFailure::AccessKey);
    vault.sign_in_failed(None, SignInFailure::Unsigned, None);

    let found = told(vault, folder.path()).await;
    let expected = [
        (&first, details([("reason", "wrong signature")])),
        (
            &first,
            details([("reason", "wrong signature"), ("repeated", "4")]),
        ),
        (&first, details([("reason", "wrong time")])),
        (&guest, details([("reason", "disabled access key")])),
        (&guest, details([("reason", "expired access key")])),
        (&"unknown".to_owned(), details([("reason", "unsigned")])),
    ];
    for (actor, details) in &expected {
        let one = ((*actor).clone(), details.clone());
        assert!(found.contains(&one), "{one:?} in {found:?}");
    }
    assert_eq!(found.len(), expected.len(), "{found:?}");
}

#[tokio::test]
async fn invented_ids_fill_neither_memory_nor_log() {
    let folder = tempfile::tempdir().unwrap();
    let vault = door::open(folder.path()).await;
    let fails = |id: &str| vault.sign_in_failed(Some(id), SignInFailure::AccessKey, None);
    for round in 0..2 {
        for number in 0..20_000 {
            fails(&format!("AKINVENTED{:010}", number * (round + 1)));
        }
    }
    // What is no id is never told: it may be a secret in the wrong place.
    fails("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    fails("line\nbreak");
    let found = told(vault, folder.path()).await;
    let claims = |told: &&Told| told.1.contains_key("claimed");
    let claimed: Vec<_> = found.iter().filter(claims).collect();
    assert!((8..=16).contains(&claimed.len()), "{claimed:?}");
    assert!(found.len() <= 18, "{}", found.len());
    let counted: u64 = found
        .iter()
        .map(|(_, details)| match details.get("repeated") {
            Some(count) => count.parse().unwrap(),
            None => 1,
        })
        .sum();
    assert_eq!(counted, 40_002, "each is counted");
    let text = format!("{found:?}");
    assert!(!text.contains("wJalr") && !text.contains("break"), "{text}");
}

/// Another client may use the same access key, from elsewhere, within the same minute.
#[tokio::test]
async fn sign_ins_are_told_with_each_address() {
    let folder = tempfile::tempdir().unwrap();
    let vault = door::open(folder.path()).await;
    let first = door::access_key_id(folder.path());
    let secret = vault.secret_access_key(&first).unwrap();
    let from = |address: &str| {
        let signed_in = vault.sign_in(&first, &secret, address.parse().unwrap());
        signed_in.unwrap();
    };
    for address in ["192.0.2.1", "192.0.2.1", "198.51.100.7", "192.0.2.1"] {
        from(address);
    }
    let found = told_with("done", vault, folder.path()).await;
    let expected = [
        details([("from", "192.0.2.1")]),
        details([("from", "198.51.100.7")]),
        details([("from", "192.0.2.1"), ("repeated", "2")]),
    ];
    assert_eq!(found, expected.map(|details| (first.clone(), details)));
}

#[tokio::test]
async fn many_addresses_fill_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let vault = door::open(folder.path()).await;
    let first = door::access_key_id(folder.path());
    for number in 0..2_000_u16 {
        let [high, low] = number.to_be_bytes();
        let from = Some([10, 0, high, low].into());
        vault.sign_in_failed(Some(&first), SignInFailure::Secret, from);
    }
    let found = told(vault, folder.path()).await;
    assert!((9..=18).contains(&found.len()), "{}", found.len());
    let last = details([("reason", "wrong secret"), ("repeated", "1991")]);
    assert!(found.contains(&(first, last)), "{found:?}");
}
