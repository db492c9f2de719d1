//! What is told of those who are refused: to themselves nothing, to auditors enough.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use coffer_audit::Event;
use coffer_keys::LevelOptions;
use coffer_vault::*;

use crate::door;

const LOCAL: Actor = Actor::Local { uid: 0 };

/// A server with buckets in a level above all that `guest` may read.
async fn scene(data: &Path, hidden: usize) -> (Vault, Arc<Subject>) {
    let vault = door::open(data).await;
    let level = NewLevel {
        name: "secret".into(),
        label: "s2".parse().unwrap(),
        options: LevelOptions::default(),
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    for number in 0..hidden {
        let name = bucket(number);
        let made = vault.provide_bucket(&LOCAL, &name, Some("secret"));
        made.await.unwrap();
    }
    let guest = subject(&vault, "guest", "default").await;
    (vault, guest)
}

async fn subject(vault: &Vault, name: &str, clearance: &str) -> Arc<Subject> {
    let new = NewSubject {
        is_trusted: false,
        name: name.into(),
        clearance: clearance.into(),
        roles: [Role::DataUser].into_iter().collect(),
        expires_ms: None,
        grants: None,
    };
    let (made, _) = vault.create_subject(&LOCAL, new).await.unwrap();
    made.subject
}

fn bucket(number: usize) -> BucketName {
    BucketName::new(&format!("hidden-{number}")).unwrap()
}

/// Details of the denials that the log has by the next start.
async fn told(vault: Vault, data: &Path) -> Vec<BTreeMap<String, String>> {
    let recorded = door::recorded_by_the_next_start(vault, data).await;
    let is_denial = |event: &Event| event.outcome.as_str() == "denied";
    let denials = recorded.into_iter().filter(is_denial);
    denials.map(|event| event.details).collect()
}

/// All may read the metrics.
#[tokio::test(flavor = "multi_thread")]
async fn counters_do_not_tell_a_hidden_bucket_from_none() {
    let data = tempfile::tempdir().unwrap();
    let (vault, guest) = scene(data.path(), 1).await;
    let mut moved = Vec::new();
    for name in [bucket(0), BucketName::new("no-such").unwrap()] {
        let before = vault.counters();
        let asked = vault.bucket(&guest, &name).await;
        assert!(matches!(asked, Err(VaultError::NoSuchBucket)));
        let object = door::name("object");
        let read = vault.read_object(&guest, &name, &object, ReadOptions::default());
        assert!(matches!(read.await.err(), Some(VaultError::NoSuchBucket)));
        let put = door::put("object", &door::bytes(10));
        let stored = vault.put_object(&guest, &name, put).await;
        assert!(matches!(stored, Err(VaultError::NoSuchBucket)));
        let deleted = vault.delete_bucket(&guest, &name).await;
        assert!(matches!(deleted, Err(VaultError::NoSuchBucket)));
        let mut after = vault.counters();
        moved.push(after.denied_count - before.denied_count);
        after.denied_count = before.denied_count;
        assert_eq!(after, before, "no other counter moves");
    }
    assert_eq!(moved, [4, 4]);
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_tries_many_buckets_is_told_with_their_names_and_fills_no_log() {
    let data = tempfile::tempdir().unwrap();
    let (vault, guest) = scene(data.path(), 20).await;
    for round in 0..5 {
        for number in 0..20 {
            let asked = vault.bucket(&guest, &bucket((number + round) % 20)).await;
            assert!(asked.is_err());
        }
    }
    let found = told(vault, data.path()).await;
    let named: Vec<_> = found
        .iter()
        .filter(|details| !details.contains_key("repeated"))
        .map(|details| details["bucket"].as_str())
        .collect();
    assert!(named.contains(&"hidden-0") && named.contains(&"hidden-1"));
    assert!((8..=9).contains(&named.len()), "{named:?}");
    assert!(found.len() <= 18, "{found:?}");
    let count = |details: &BTreeMap<String, String>| match details.get("repeated") {
        Some(count) => count.parse().unwrap(),
        None => 1,
    };
    let counted: usize = found.iter().map(count).sum();
    assert_eq!(counted, 100, "each is counted");
}

/// To say what a request asks for takes time: with a hidden bucket as little as with none.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_to_be_said_of_a_hidden_bucket_that_has_a_policy() {
    let data = tempfile::tempdir().unwrap();
    let (vault, guest) = scene(data.path(), 1).await;
    let ann = subject(&vault, "ann", "secret").await;
    let policy = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::ACCOUNT:user/ann"}, "Action": "s3:GetObject",
        "Resource": "arn:aws:s3:::hidden-0/*"}]}"#;
    let policy = policy.replace("ACCOUNT", vault.account_id().as_str());
    let name = bucket(0);
    let set = vault.set_bucket_policy(&ann, &name, Some(policy.as_bytes()));
    set.await.unwrap();
    assert!(vault.is_shared(&ann, name.as_str()));
    assert!(!vault.is_shared(&guest, name.as_str()));
    assert!(!vault.may_be_public(name.as_str()));
    vault.close().await;
}
