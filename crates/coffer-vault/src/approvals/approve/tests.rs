//! Requests that several people change at once, and those whose time is over.

use std::path::Path;

use super::*;
use crate::admin::{NewLevel, NewSubject};
use crate::vault::VaultOptions;

const LOCAL: Actor = Actor::Local { uid: 0 };

/// A level that takes many approvals, and custodians for it.
async fn scene(data: &Path, approvals: u8) -> (Vault, Vec<Actor>) {
    let vault = Vault::open(VaultOptions::new(data)).await.unwrap();
    let level = NewLevel {
        name: "guarded".into(),
        label: coffer_label::Label::LOWEST,
        options: coffer_keys::LevelOptions {
            approvals,
            ..Default::default()
        },
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    let mut custodians = Vec::new();
    for name in ["one", "other"] {
        let new = NewSubject {
            is_trusted: false,
            name: name.to_owned(),
            clearance: "default".to_owned(),
            roles: [Role::KeyCustodian].into_iter().collect(),
            expires_ms: None,
            grants: None,
        };
        let (info, _) = vault.create_subject(&LOCAL, new).await.unwrap();
        custodians.push(Actor::Subject(info.subject));
    }
    (vault, custodians)
}

async fn ask(vault: &Vault) -> ApprovalRequest {
    match vault.erase_level(&LOCAL, "guarded").await.unwrap() {
        GuardedOutcome::Waits(request) => request,
        other => panic!("it needs approvals: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_at_the_same_time_all_count() {
    let data = tempfile::tempdir().unwrap();
    let (vault, custodians) = scene(data.path(), 4).await;
    let request = ask(&vault).await;
    let [one, other] = &custodians[..] else {
        panic!("two custodians")
    };
    let (first, second) = tokio::join!(
        vault.approve(one, &request.id),
        vault.approve(other, &request.id)
    );
    assert!(matches!(first.unwrap(), GuardedOutcome::Waits(_)));
    assert!(matches!(second.unwrap(), GuardedOutcome::Waits(_)));
    let mut approved = vault.requests(&LOCAL).await.unwrap().remove(0).approved_by;
    approved.sort();
    let mut people = [one.to_string(), other.to_string()];
    people.sort();
    assert_eq!(approved, people);
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_withdrawn_stays_so_though_it_is_approved_meanwhile() {
    let data = tempfile::tempdir().unwrap();
    let (vault, custodians) = scene(data.path(), 4).await;
    for round in 0..20 {
        let request = ask(&vault).await;
        let (approved, withdrawn) = tokio::join!(
            vault.approve(&custodians[round % 2], &request.id),
            vault.withdraw(&LOCAL, &request.id)
        );
        withdrawn.unwrap();
        match approved {
            Ok(GuardedOutcome::Waits(_)) | Err(VaultError::NoSuchRequest) => {}
            other => panic!("{other:?}"),
        }
        assert!(vault.requests(&LOCAL).await.unwrap().is_empty());
    }
    vault.level(&LOCAL, "guarded").await.unwrap();
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_time_is_over_is_none() {
    let data = tempfile::tempdir().unwrap();
    let (vault, custodians) = scene(data.path(), 2).await;
    let mut request = ask(&vault).await;
    request.expires_ms = now_ms() - 1;
    let key = request.key().unwrap();
    let kept = vault.inner.system.keep(Kind::Request, key, &request);
    kept.unwrap();
    let approved = vault.approve(&custodians[0], &request.id).await;
    assert!(matches!(approved, Err(VaultError::NoSuchRequest)));
    let withdrawn = vault.withdraw(&custodians[0], &request.id).await;
    assert!(matches!(withdrawn, Err(VaultError::NoSuchRequest)));
    assert!(vault.requests(&LOCAL).await.unwrap().is_empty());
    vault.level(&LOCAL, "guarded").await.unwrap();

    let again = ask(&vault).await;
    assert_ne!(again.id, request.id);
    let system = &vault.inner.system;
    let kept = system.documents::<ApprovalRequest>(Kind::Request).unwrap();
    assert_eq!(kept, std::slice::from_ref(&again), "the old one is gone");
    let erased = vault.approve(&custodians[0], &again.id).await.unwrap();
    assert!(matches!(erased, GuardedOutcome::Erased(_)));
    vault.close().await;
}
