//! Policy, lists and blocks together.

use coffer_policy::{
    Action, CannedAcl, Identity, Key, ListedValues, ObjectOwnership, Policy, PublicAccessBlock,
    Request, Requester, Resource, Shared, Sharing, Timestamp, Value, decide,
};
use serde_json::{Value as Json, json};

use crate::server::{id_of, parse};

fn policy(statements: Json) -> Policy {
    parse(&json!({"Version": "2012-10-17", "Statement": statements})).unwrap()
}

fn statement(effect: &str, principal: Json, action: &str) -> Json {
    json!({"Effect": effect, "Principal": principal, "Action": action,
        "Resource": "arn:aws:s3:::films/*"})
}

/// What follows for who reads an object of `ann` that is `public-read`, where lists count.
fn read(policy: Option<&Policy>, block: PublicAccessBlock, who: &str) -> Shared {
    let (owner, ann, id) = (id_of("owner"), id_of("ann"), id_of(who));
    let bucket_acl = CannedAcl::Private.grants(Some(&owner), Some(&owner));
    let object_acl = CannedAcl::PublicRead.grants(Some(&ann), Some(&owner));
    let sharing = Sharing {
        policy,
        bucket_acl: &bucket_acl,
        object_acl: Some(&object_acl),
        ownership: ObjectOwnership::ObjectWriter,
        block,
    };
    let identity = Identity {
        id: id.as_str(),
        name: who,
        owns_bucket: who == "owner",
    };
    let mut values = ListedValues::default();
    values.insert(Key::SourceIp, Value::Address([192, 0, 2, 7].into()));
    let request = Request {
        requester: match who {
            "anonymous" => Requester::Anonymous,
            _ => Requester::Subject(identity),
        },
        action: Action::GetObject,
        resource: Resource::Object("a"),
        time: Timestamp::from_seconds(0),
        values: &values,
    };
    decide(&sharing, &request)
}

const OPEN: PublicAccessBlock = PublicAccessBlock {
    block_public_acls: false,
    ignore_public_acls: false,
    block_public_policy: false,
    restrict_public_buckets: false,
};

#[test]
fn a_policy_that_denies_beats_a_list_that_grants() {
    let denies = policy(statement("Deny", json!({"AWS": "111122223333"}), "s3:*"));
    assert_eq!(
        read(Some(&denies), OPEN, "bob"),
        Shared::Denied { statement: 1 }
    );
    assert_eq!(read(Some(&denies), OPEN, "anonymous"), Shared::ByAcl);
    let all = policy(statement("Deny", json!("*"), "s3:GetObject"));
    assert_eq!(
        read(Some(&all), OPEN, "anonymous"),
        Shared::Denied { statement: 1 }
    );
    assert_eq!(read(None, OPEN, "anonymous"), Shared::ByAcl);
}

#[test]
fn what_the_account_is_left_a_list_may_grant() {
    let delegates = policy(statement(
        "Allow",
        json!({"AWS": "111122223333"}),
        "s3:Get*",
    ));
    assert_eq!(read(Some(&delegates), OPEN, "bob"), Shared::ByAcl);
    let ignoring = PublicAccessBlock {
        ignore_public_acls: true,
        ..OPEN
    };
    assert_eq!(
        read(Some(&delegates), ignoring, "bob"),
        Shared::Delegated { statement: 1 }
    );
    assert_eq!(
        read(Some(&delegates), ignoring, "anonymous"),
        Shared::Unshared
    );
    assert_eq!(read(None, ignoring, "bob"), Shared::Unshared);
}

#[test]
fn restricted_public_policies_reach_subjects_alone() {
    let bob = json!({"AWS": "arn:aws:iam::111122223333:user/bob"});
    let public = policy(json!([
        statement("Allow", json!("*"), "s3:GetObject"),
        statement("Allow", bob, "s3:GetObject"),
    ]));
    let restricting = PublicAccessBlock {
        ignore_public_acls: true,
        restrict_public_buckets: true,
        ..OPEN
    };
    assert_eq!(
        read(Some(&public), OPEN, "anonymous"),
        Shared::ByPolicy { statement: 1 }
    );
    assert_eq!(
        read(Some(&public), restricting, "anonymous"),
        Shared::Unshared
    );
    assert_eq!(
        read(Some(&public), restricting, "bob"),
        Shared::ByPolicy { statement: 1 }
    );
    // Restricting makes no denial less of one.
    let denies = policy(json!([
        statement("Deny", json!("*"), "s3:GetObject"),
        statement("Allow", json!("*"), "s3:GetObject"),
    ]));
    assert_eq!(
        read(Some(&denies), restricting, "anonymous"),
        Shared::Denied { statement: 1 }
    );
}

#[test]
fn a_policy_that_is_not_public_is_not_restricted() {
    let mut narrow = statement("Allow", json!("*"), "s3:GetObject");
    narrow["Condition"] = json!({"IpAddress": {"aws:SourceIp": "192.0.2.0/24"}});
    let narrow = policy(narrow);
    let restricted = read(Some(&narrow), PublicAccessBlock::ALL, "anonymous");
    assert_eq!(restricted, Shared::ByPolicy { statement: 1 });
}

#[test]
fn public_policies_are_refused_where_they_are_blocked() {
    let public = policy(statement("Allow", json!("*"), "s3:GetObject"));
    let private = policy(statement("Deny", json!("*"), "s3:GetObject"));
    let error = PublicAccessBlock::ALL.check_policy(&public).unwrap_err();
    assert!(error.to_string().starts_with("the policy is public"));
    assert_eq!(PublicAccessBlock::ALL.check_policy(&private), Ok(()));
    assert_eq!(OPEN.check_policy(&public), Ok(()));
}

#[test]
fn the_stricter_of_two_blocks_holds() {
    assert_eq!(OPEN.and(PublicAccessBlock::ALL), PublicAccessBlock::ALL);
    assert_eq!(PublicAccessBlock::ALL.and(OPEN), PublicAccessBlock::ALL);
    assert_eq!(OPEN.and(OPEN), PublicAccessBlock::default());
}
