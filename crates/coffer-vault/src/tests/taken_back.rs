//! Requests that a policy alone let in, and that commit after it was taken back.

use std::sync::Arc;
use std::time::Duration;

use coffer_policy::{Action, ObjectOwnership, Timestamp};
use coffer_store::lock::{LockChange, Retention, RetentionMode};
use coffer_store::record::{ObjectName, Tags};
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
        asks: None,
    }))
}

/// What comes of a request that reached its commit before its bucket's policy went, or became
/// another one, and commits after that.
async fn after_the_policy<T>(
    vault: &Vault,
    bucket: &BucketName,
    becomes: Option<String>,
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
    let set = move || inner.system.configure(&of_row, kind, becomes);
    let took = tokio::task::spawn_blocking(set);
    took.await.unwrap().unwrap();
    drop(alone);
    requested.await.unwrap()
}

/// A bucket that all may be asked of one who may write there by herself, and all else by policy.
struct Scene {
    _data: tempfile::TempDir,
    vault: Vault,
    bucket: BucketName,
    key: ObjectName,
    ann: Arc<Subject>,
    writer: Subject,
}

impl Scene {
    async fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
        let bucket = BucketName::new("bucket").unwrap();
        vault.provide_bucket(&LOCAL, &bucket, None).await.unwrap();
        Self {
            ann: Arc::new(subject(&vault, "ann", None).await),
            writer: subject(&vault, "writer", Some((&bucket, Right::Write))).await,
            key: ObjectName::new("key").unwrap(),
            _data: data,
            vault,
            bucket,
        }
    }

    async fn share(&self) {
        let policy = self.policy("Allow");
        let json = Some(policy.as_bytes());
        let set = self.vault.set_bucket_policy(&self.ann, &self.bucket, json);
        set.await.unwrap();
    }

    /// One that allows the writer everything, or denies it.
    fn policy(&self, effect: &str) -> String {
        let account = self.vault.inner.account.to_string();
        let policy = r#"{"Version": "2012-10-17", "Statement": [{"Effect": "EFFECT",
            "Principal": {"AWS": "arn:aws:iam::ACCOUNT:user/writer"}, "Action": "s3:*",
            "Resource": ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"]}]}"#;
        policy
            .replace("ACCOUNT", &account)
            .replace("EFFECT", effect)
    }

    /// The policy as it is kept.
    fn kept(&self) -> Option<String> {
        let row = self.vault.inner.system.bucket(&self.bucket).unwrap();
        let kept = row.documents.get(BucketConfiguration::Policy);
        kept.map(|kept| kept.to_string())
    }

    /// The writer, as it asks for these on the bucket.
    fn asks_of_bucket(&self, action: Action) -> (Vault, Arc<Subject>, BucketName) {
        let by = asking(&self.writer, &self.bucket, &[(action, AskedOf::Bucket)]);
        (self.vault.clone(), by, self.bucket.clone())
    }

    /// The writer, as it asks for these on the object.
    fn asks_of_object(&self, actions: &[Action]) -> (Vault, Arc<Subject>, BucketName) {
        let of = |action: &Action| (*action, AskedOf::Object(self.key.clone(), Which::Current));
        let actions: Vec<_> = actions.iter().map(of).collect();
        let by = asking(&self.writer, &self.bucket, &actions);
        (self.vault.clone(), by, self.bucket.clone())
    }

    /// A request that waits for its commit while the policy goes is refused.
    async fn refuses<T: Send + 'static>(
        &self,
        operation: &str,
        request: impl Future<Output = Result<T>> + Send + 'static,
    ) {
        let refused = after_the_policy(&self.vault, &self.bucket, None, request).await;
        let refused = refused.err();
        let is_denied = matches!(refused, Some(VaultError::AccessDenied));
        assert!(is_denied, "{operation}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_right_of_several_is_asked_for_again_at_the_commit_of_a_setting() {
    let scene = Scene::new().await;
    scene.share().await;
    let (this, by, name) = scene.asks_of_bucket(Action::PutBucketVersioning);
    let set = async move { this.set_versioning(&by, &name, Versioning::Enabled).await };
    scene.refuses("PutBucketVersioning", set).await;

    scene.share().await;
    let (this, by, name) = scene.asks_of_bucket(Action::PutBucketObjectLockConfiguration);
    let lock = ObjectLock { default: None };
    let set = async move { this.set_object_lock(&by, &name, lock).await };
    scene.refuses("PutObjectLockConfiguration", set).await;

    scene.share().await;
    let (this, by, name) = scene.asks_of_bucket(Action::PutLifecycleConfiguration);
    let kind = BucketConfiguration::Lifecycle;
    let set = async move { this.set_bucket_configuration(&by, &name, kind, None).await };
    scene.refuses("PutBucketLifecycleConfiguration", set).await;
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_judged_by_the_policy_that_there_is_by_then() {
    let scene = Scene::new().await;
    let asked = [(Action::PutBucketPolicy, AskedOf::Bucket)];
    let owner = asking(&scene.ann, &scene.bucket, &asked);
    let mut kept = Vec::new();
    for effect in ["Deny", "Allow"] {
        let policy = scene.policy(effect);
        let json = Some(policy.as_bytes());
        let set = scene.vault.set_bucket_policy(&owner, &scene.bucket, json);
        set.await.unwrap();
        kept.push(scene.kept());
    }
    for (becomes, is_let) in [(&kept[1], true), (&kept[0], false)] {
        let (this, by, name) = scene.asks_of_bucket(Action::PutBucketVersioning);
        let set = async move { this.set_versioning(&by, &name, Versioning::Enabled).await };
        let set = after_the_policy(&scene.vault, &scene.bucket, becomes.clone(), set).await;
        match set {
            Ok(()) => assert!(is_let),
            Err(error) => assert!(!is_let && matches!(error, VaultError::AccessDenied)),
        }
    }
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_right_of_several_is_asked_for_again_at_the_commit_of_an_object() {
    let scene = Scene::new().await;
    scene.share().await;
    let actions = [Action::GetObject, Action::DeleteObject, Action::PutObject];
    let (this, by, name) = scene.asks_of_object(&actions);
    let rename = RenameObject {
        source: scene.key.clone(),
        target: ObjectName::new("other").unwrap(),
        source_conditions: Conditions::default(),
        target_conditions: Conditions::default(),
        token: None,
    };
    let renamed = async move { this.rename_object(&by, &name, rename).await };
    scene.refuses("RenameObject", renamed).await;

    // Those who have the rights by themselves lock what they like.
    let (vault, ann, bucket) = (&scene.vault, &scene.ann, &scene.bucket);
    let set = vault.set_versioning(ann, bucket, Versioning::Enabled);
    set.await.unwrap();
    let lock = ObjectLock { default: None };
    vault.set_object_lock(ann, bucket, lock).await.unwrap();
    scene.share().await;
    let (this, by, name) = scene.asks_of_object(&[Action::PutObjectRetention]);
    let change = LockChange::Retention(Some(Retention {
        mode: RetentionMode::Governance,
        until_ms: vault.lock_now_ms() + 86_400_000,
    }));
    let key = scene.key.clone();
    let changed = async move {
        let which = Which::Current;
        this.change_lock(&by, &name, (&key, which), change, false)
            .await
    };
    scene.refuses("PutObjectRetention", changed).await;
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_lists_count_commits_wait_for_those_of_their_names_alone() {
    let scene = Scene::new().await;
    let (vault, ann, bucket) = (&scene.vault, &scene.ann, &scene.bucket);
    let asked = [(Action::PutBucketOwnershipControls, AskedOf::Bucket)];
    let owner = asking(ann, bucket, &asked);
    let set = vault.set_object_ownership(&owner, bucket, Some(ObjectOwnership::ObjectWriter));
    set.await.unwrap();
    let row = vault.inner.system.bucket(bucket).unwrap();
    let open = vault.grant(&row).await.unwrap().bucket;
    let names = ["key", "other", "another"].map(|name| ObjectName::new(name).unwrap());
    let tag = |name: &ObjectName| {
        let on = AskedOf::Object(name.clone(), Which::Current);
        let by = asking(ann, bucket, &[(Action::PutObjectTagging, on)]);
        let (vault, bucket, name) = (vault.clone(), bucket.clone(), name.clone());
        tokio::spawn(async move {
            let which = (&name, Which::Current);
            let tags = vault.set_object_tags(&by, &bucket, which, Tags::new());
            matches!(tags.await, Err(VaultError::NoSuchObject))
        })
    };
    let guard = open.commit_of(&[&names[0], &names[0], &names[1]]).await;
    let held = [tag(&names[0]), tag(&names[1])];
    assert!(tag(&names[2]).await.unwrap(), "it waits for another's");
    // What is of the whole bucket waits for all.
    let (this, name) = (vault.clone(), bucket.clone());
    let by = asking(
        ann,
        bucket,
        &[(Action::PutBucketVersioning, AskedOf::Bucket)],
    );
    let set = async move { this.set_versioning(&by, &name, Versioning::Enabled).await };
    let set = tokio::spawn(set);
    tokio::time::sleep(A_WHILE).await;
    assert!(held.iter().all(|one| !one.is_finished()) && !set.is_finished());
    drop(guard);
    for one in held {
        assert!(one.await.unwrap());
    }
    set.await.unwrap().unwrap();
    scene.vault.close().await;
}
