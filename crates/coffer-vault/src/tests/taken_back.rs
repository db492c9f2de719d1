//! Requests that a policy alone let in, and that commit after it was taken back.

use std::sync::Arc;
use std::time::Duration;

use coffer_policy::{Action, Timestamp};
use coffer_store::lock::{LockChange, Retention, RetentionMode};
use coffer_store::record::ObjectName;
use coffer_store::version::{Versioning, Which};

use crate::access::{
    Actor, Asked, AskedAction, AskedOf, BucketName, OwnValues, Right, Rights, Role, Subject,
};
use crate::admin::NewSubject;
use crate::error::{Result, VaultError};
use crate::locks::ObjectLock;
use crate::objects::{Conditions, RenameObject};
use crate::system::BucketConfiguration;
use crate::vault::{Vault, VaultOptions};

const LOCAL: Actor = Actor::Local { uid: 0 };

/// Time enough for a request to come to its commit, where it waits.
const A_WHILE: Duration = Duration::from_millis(300);

async fn subject(vault: &Vault, name: &str, grants: Option<(&BucketName, Right)>) -> Subject {
    let grants = grants.map(|(bucket, right)| {
        let rights: Rights = [right].into_iter().collect();
        vec![(bucket.clone(), rights)]
    });
    let new = NewSubject {
        name: name.into(),
        clearance: "default".into(),
        is_trusted: false,
        roles: [Role::DataUser].into_iter().collect(),
        expires_ms: None,
        grants,
    };
    let (made, _) = vault.create_subject(&LOCAL, new).await.unwrap();
    Subject::clone(&made.subject)
}

fn asking(subject: &Subject, bucket: &BucketName, actions: &[(Action, AskedOf)]) -> Arc<Subject> {
    let ask = |(action, on): &(Action, AskedOf)| AskedAction {
        bucket: bucket.clone(),
        action: *action,
        on: on.clone(),
    };
    Arc::new(subject.asking(Asked {
        actions: actions.iter().map(ask).collect(),
        time: Timestamp::from_seconds(0),
        values: Arc::new(OwnValues::default()),
    }))
}

/// What comes of a request that reached its commit before its bucket's policy went, and commits
/// after that.
async fn after_the_policy<T>(
    vault: &Vault,
    bucket: &BucketName,
    request: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T>
where
    T: Send + 'static,
{
    let row = vault.inner.system.bucket(bucket).unwrap();
    let open = vault.grant(&row).await.unwrap().bucket;
    let alone = open.commit_alone().await.unwrap();
    let requested = tokio::spawn(request);
    tokio::time::sleep(A_WHILE).await;
    assert!(!requested.is_finished(), "it does not wait to commit");
    let kind = BucketConfiguration::Policy;
    let inner = vault.inner.clone();
    let of_row = row.clone();
    let took = tokio::task::spawn_blocking(move || inner.system.configure(&of_row, kind, None));
    took.await.unwrap().unwrap();
    drop(alone);
    requested.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_right_of_several_is_asked_for_again_at_the_commit() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    let bucket = BucketName::new("bucket").unwrap();
    vault.provide_bucket(&LOCAL, &bucket, None).await.unwrap();
    let ann = Arc::new(subject(&vault, "ann", None).await);
    let writer = subject(&vault, "writer", Some((&bucket, Right::Write))).await;
    let policy = br#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::000000000000:user/writer"}, "Action": "s3:*",
        "Resource": ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"]}]}"#;
    let policy =
        String::from_utf8_lossy(policy).replace("000000000000", &vault.inner.account.to_string());
    let key = ObjectName::new("key").unwrap();
    let object = || AskedOf::Object(key.clone(), Which::Current);
    let of = |actions: &[(Action, AskedOf)]| (vault.clone(), asking(&writer, &bucket, actions));
    let expect_refusal = |operation: &str, refused: Option<VaultError>| {
        let is_denied = matches!(refused, Some(VaultError::AccessDenied));
        assert!(is_denied, "{operation}: {refused:?}");
    };
    let share = || async {
        let json = Some(policy.as_bytes());
        vault.set_bucket_policy(&ann, &bucket, json).await.unwrap();
    };

    share().await;
    let (this, by) = of(&[(Action::PutBucketVersioning, AskedOf::Bucket)]);
    let name = bucket.clone();
    let set = async move { this.set_versioning(&by, &name, Versioning::Enabled).await };
    let refused = after_the_policy(&vault, &bucket, set).await.err();
    expect_refusal("PutBucketVersioning", refused);

    share().await;
    let (this, by) = of(&[(Action::PutBucketObjectLockConfiguration, AskedOf::Bucket)]);
    let name = bucket.clone();
    let lock = ObjectLock { default: None };
    let set = async move { this.set_object_lock(&by, &name, lock).await };
    let refused = after_the_policy(&vault, &bucket, set).await.err();
    expect_refusal("PutObjectLockConfiguration", refused);

    share().await;
    let (this, by) = of(&[(Action::PutLifecycleConfiguration, AskedOf::Bucket)]);
    let (name, kind) = (bucket.clone(), BucketConfiguration::Lifecycle);
    let set = async move { this.set_bucket_configuration(&by, &name, kind, None).await };
    let refused = after_the_policy(&vault, &bucket, set).await.err();
    expect_refusal("PutBucketLifecycleConfiguration", refused);

    share().await;
    let actions = [Action::GetObject, Action::DeleteObject, Action::PutObject];
    let (this, by) = of(&actions.map(|action| (action, object())));
    let (name, source) = (bucket.clone(), key.clone());
    let rename = RenameObject {
        source,
        target: ObjectName::new("other").unwrap(),
        source_conditions: Conditions::default(),
        target_conditions: Conditions::default(),
        token: None,
    };
    let renamed = async move { this.rename_object(&by, &name, rename).await };
    let refused = after_the_policy(&vault, &bucket, renamed).await.err();
    expect_refusal("RenameObject", refused);

    // Those who have the rights by themselves lock what they like.
    vault
        .set_versioning(&ann, &bucket, Versioning::Enabled)
        .await
        .unwrap();
    let lock = ObjectLock { default: None };
    vault.set_object_lock(&ann, &bucket, lock).await.unwrap();
    share().await;
    let (this, by) = of(&[(Action::PutObjectRetention, object())]);
    let (name, which) = (bucket.clone(), Which::Current);
    let change = LockChange::Retention(Some(Retention {
        mode: RetentionMode::Governance,
        until_ms: vault.lock_now_ms() + 86_400_000,
    }));
    let object = key.clone();
    let changed = async move {
        this.change_lock(&by, &name, (&object, which), change, false)
            .await
    };
    let refused = after_the_policy(&vault, &bucket, changed).await.err();
    expect_refusal("PutObjectRetention", refused);
    vault.close().await;
}
