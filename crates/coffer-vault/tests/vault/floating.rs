//! Subjects whose clearance is a range: what they read high they write no lower.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coffer_keys::LevelOptions;
use coffer_vault::record::{Details, ListQuery, Precondition, Tags, UploadsQuery};
use coffer_vault::version::Which;
use coffer_vault::*;
use futures::{StreamExt, stream};
use tokio::sync::oneshot;

use crate::door::{bytes, gone, name, put, recorded};

const LOCAL: Actor = Actor::Local { uid: 0 };

/// A vault with the levels `default` and `secret`, a bucket in each that is called so, an object in
/// each, and a subject that may use both.
struct Scene {
    vault: Vault,
    subject: Arc<Subject>,
}

fn bucket(level: &str) -> BucketName {
    BucketName::new(&format!("in-{level}")).unwrap()
}

async fn subject(vault: &Vault, name: &str, clearance: &str, is_trusted: bool) -> Arc<Subject> {
    let new = NewSubject {
        name: name.into(),
        clearance: clearance.into(),
        is_trusted,
        roles: [Role::DataUser].into_iter().collect(),
        expires_ms: None,
        grants: None,
    };
    let (made, _) = vault.create_subject(&LOCAL, new).await.unwrap();
    vault.subject(&made.keys[0].id).unwrap()
}

async fn scene_with(options: VaultOptions) -> Scene {
    let vault = Vault::open(options).await.unwrap();
    let level = NewLevel {
        name: "secret".into(),
        label: "s2".parse().unwrap(),
        options: LevelOptions::default(),
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    for level in ["default", "secret"] {
        let name = bucket(level);
        let made = vault.provide_bucket(&LOCAL, &name, Some(level)).await;
        made.unwrap();
        let filler = subject(&vault, &format!("of-{level}"), level, false).await;
        let filled = vault.put_object(&filler, &name, put("there", &bytes(9)));
        filled.await.unwrap();
    }
    let subject = subject(&vault, "ann", "default..secret", false).await;
    Scene { vault, subject }
}

async fn scene(data: &Path) -> Scene {
    scene_with(VaultOptions::new(data)).await
}

impl Scene {
    async fn write(&self, level: &str) -> Result<Stored> {
        let put = put("new", &bytes(5));
        let bucket = bucket(level);
        self.vault.put_object(&self.subject, &bucket, put).await
    }

    async fn read(&self, level: &str) -> Result<ObjectRead> {
        let (bucket, name) = (bucket(level), name("there"));
        let (vault, options) = (&self.vault, ReadOptions::default());
        vault
            .read_object(&self.subject, &bucket, &name, options)
            .await
    }

    /// Settles the subject and takes it as it is then.
    async fn settle(&mut self) {
        let settled = self.vault.settle_subject(&LOCAL, "ann").await.unwrap();
        assert_eq!(settled.read, None);
        self.subject = settled.subject;
    }
}

#[track_caller]
fn is_read_above<T>(outcome: Result<T>) {
    match outcome {
        Err(VaultError::ReadAbove { read }) => assert_eq!(read, "secret"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was let through"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_high_bars_every_change_below_until_it_is_settled() {
    let data = tempfile::tempdir().unwrap();
    let mut scene = scene(data.path()).await;
    scene.read("default").await.unwrap();
    scene.write("default").await.unwrap();
    scene.write("secret").await.unwrap();
    scene.write("default").await.unwrap(); // it only wrote up
    scene.read("secret").await.unwrap();
    scene.write("secret").await.unwrap();
    is_read_above(scene.write("default").await);

    let (vault, subject, low) = (&scene.vault, &scene.subject, bucket("default"));
    let none = Precondition::None;
    is_read_above(
        vault
            .delete_object(subject, &low, gone(name("new"), none))
            .await,
    );
    let new = name("new");
    let tagged = vault.set_object_tags(subject, &low, (&new, Which::Current), Tags::new());
    is_read_above(tagged.await);
    is_read_above(vault.set_bucket_tags(subject, &low, None).await);
    is_read_above(vault.delete_bucket(subject, &low).await);
    let another = BucketName::new("another").unwrap();
    is_read_above(vault.create_bucket(subject, &another, None).await);
    let upload = NewUpload {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        acl_sent: Default::default(),
        name: name("new"),
        details: Details::default(),
        tags: Tags::new(),
        checksum: None,
    };
    is_read_above(vault.create_upload(subject, &low, upload).await);

    scene.settle().await;
    scene.write("default").await.unwrap();
    let acts = recorded(&scene.vault).await;
    let settled = acts.iter().find(|event| event.act == "subject.settle");
    assert_eq!(settled.unwrap().details["read"], "s2");
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_tells_of_a_bucket_counts_as_reading_there() {
    let data = tempfile::tempdir().unwrap();
    let mut scene = scene(data.path()).await;
    for case in 0..9 {
        let (vault, subject, high) = (&scene.vault, &scene.subject, bucket("secret"));
        let (there, absent) = (name("there"), name("absent"));
        let options = ReadOptions::default;
        let told = match case {
            0 => vault
                .head_object(subject, &high, &there, options())
                .await
                .is_ok(),
            1 => vault
                .head_object(subject, &high, &absent, options())
                .await
                .is_err(),
            2 => vault
                .object_tags(subject, &high, &there, Which::Current)
                .await
                .is_ok(),
            3 => vault.bucket_tags(subject, &high).await.is_ok(),
            4 => vault
                .list_objects(subject, &high, ListQuery::default())
                .await
                .is_ok(),
            5 => vault
                .list_uploads(subject, &high, UploadsQuery::default())
                .await
                .is_ok(),
            6 => {
                let mut put = put("there", &bytes(1));
                put.precondition = Precondition::Absent;
                vault.put_object(subject, &high, put).await.is_err()
            }
            7 => {
                let conditional = Precondition::Present;
                vault
                    .delete_object(subject, &high, gone(absent.clone(), conditional))
                    .await
                    .is_err()
            }
            _ => vault.delete_bucket(subject, &high).await.is_err(),
        };
        assert!(told, "case {case}");
        let known = vault.subject_named(&LOCAL, "ann").unwrap().read;
        assert_eq!(known.as_deref(), Some("secret"), "case {case}");
        is_read_above(scene.write("default").await);
        scene.settle().await;
    }
    // Names of buckets alone don't.
    scene.vault.buckets(&scene.subject).await.unwrap();
    let high = bucket("secret");
    scene.vault.bucket(&scene.subject, &high).await.unwrap();
    scene.write("default").await.unwrap();
}

/// An upload to `default` that waits for its bytes: what ends it, and how it ends.
fn long_put(scene: &Scene) -> (oneshot::Sender<()>, tokio::task::JoinHandle<Result<Stored>>) {
    let (go, gone) = oneshot::channel::<()>();
    let mut put = put("long", &bytes(1));
    put.incoming.declared_bytes = None;
    put.incoming.body = Box::pin(
        stream::iter([()])
            .then(|()| async { Ok(Bytes::from_static(b"begun")) })
            .chain(stream::once(async move {
                let _ = gone.await;
                Ok(Bytes::from_static(b"secret"))
            })),
    );
    let (vault, subject) = (scene.vault.clone(), scene.subject.clone());
    let put = async move { vault.put_object(&subject, &bucket("default"), put).await };
    (go, tokio::spawn(put))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_looks_again_when_it_commits() {
    let data = tempfile::tempdir().unwrap();
    let mut scene = scene(data.path()).await;
    let (go, put) = long_put(&scene);
    let low = bucket("default");
    let begun = scene.vault.create_upload(
        &scene.subject,
        &low,
        NewUpload {
            encryption: Default::default(),
            lock: Default::default(),
            acl: Default::default(),
            acl_sent: Default::default(),
            name: name("parts"),
            details: Details::default(),
            tags: Tags::new(),
            checksum: None,
        },
    );
    let upload = begun.await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(50)).await;
    scene.read("secret").await.unwrap();
    go.send(()).unwrap();
    is_read_above(put.await.unwrap());
    let complete = CompleteUpload {
        name: name("parts"),
        upload,
        parts: Vec::new(),
        checksum: None,
        size_bytes: None,
        precondition: Precondition::None,
    };
    let completed = scene.vault.complete_upload(&scene.subject, &low, complete);
    is_read_above(completed.await);

    // What was under way when it was settled may hold what was read before.
    scene.settle().await;
    let (go, put) = long_put(&scene);
    tokio::time::sleep(Duration::from_millis(50)).await;
    scene.read("secret").await.unwrap();
    scene.settle().await;
    let _ = go.send(());
    assert!(matches!(put.await.unwrap(), Err(VaultError::AccessDenied)));
    let names = |page: coffer_vault::record::ListPage| page.objects.len();
    let query = ListQuery {
        limit: 9,
        ..ListQuery::default()
    };
    let listed = scene.vault.list_objects(&scene.subject, &low, query);
    assert_eq!(names(listed.await.unwrap()), 1, "only what was there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_remembers_and_so_does_a_change_of_the_clearance() {
    let data = tempfile::tempdir().unwrap();
    let scene = scene(data.path()).await;
    scene.read("secret").await.unwrap();
    let id = scene.subject.access_key_id().unwrap().to_owned();
    scene.vault.close().await;
    drop(scene);

    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    let subject = vault.subject(&id).unwrap();
    let mut scene = Scene { vault, subject };
    is_read_above(scene.write("default").await);
    let change = SubjectChange {
        clearance: Some("default".into()),
        ..SubjectChange::default()
    };
    let changed = scene
        .vault
        .change_subject(&LOCAL, "ann", change, false)
        .await;
    scene.subject = changed.unwrap().subject;
    let refused = scene.write("default").await.err().unwrap().to_string();
    assert!(
        !refused.contains("secret"),
        "it knows of it no more: {refused}"
    );
    scene.settle().await;
    scene.write("default").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_range_does_not_float_and_only_a_range_is_trusted() {
    let data = tempfile::tempdir().unwrap();
    let mut scene = scene(data.path()).await;
    scene.subject = subject(&scene.vault, "tess", "default..secret", true).await;
    scene.read("secret").await.unwrap();
    scene.write("default").await.unwrap();
    let trust = |is_trusted, clearance: Option<&str>| SubjectChange {
        is_trusted,
        clearance: clearance.map(str::to_owned),
        ..SubjectChange::default()
    };
    // A new clearance is not trusted by itself, and what was read counts then.
    let change = trust(None, Some("default..secret"));
    let changed = scene
        .vault
        .change_subject(&LOCAL, "tess", change, false)
        .await;
    scene.subject = changed.unwrap().subject;
    assert!(!scene.subject.is_trusted());
    is_read_above(scene.write("default").await);
    let refused =
        scene
            .vault
            .change_subject(&LOCAL, "tess", trust(Some(true), Some("secret")), false);
    assert!(matches!(refused.await, Err(VaultError::Invalid { .. })));
    let acts = recorded(&scene.vault).await;
    let trusted = acts
        .iter()
        .find(|event| event.details.contains_key("trusted"));
    assert_eq!(trusted.unwrap().act, "subject.create");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_custodian_settles_itself() {
    let data = tempfile::tempdir().unwrap();
    let scene = scene(data.path()).await;
    let change = SubjectChange {
        roles: Some(Roles::all()),
        ..SubjectChange::default()
    };
    let changed = scene
        .vault
        .change_subject(&LOCAL, "ann", change, false)
        .await;
    let ann = Actor::Subject(changed.unwrap().subject);
    let itself = scene.vault.settle_subject(&ann, "ann").await;
    assert!(matches!(itself, Err(VaultError::SettlesItself)));
    scene.vault.settle_subject(&ann, "of-secret").await.unwrap();
    let none = Actor::Subject(subject(&scene.vault, "eve", "default", false).await);
    let refused = scene.vault.settle_subject(&none, "ann").await;
    let wanted = AdministrationError::RoleMissing {
        role: "key-custodian",
    };
    assert!(matches!(refused, Err(VaultError::Administration(error)) if error == wanted));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_settles_where_it_is_set_and_not_while_something_is_read() {
    let data = tempfile::tempdir().unwrap();
    let options = VaultOptions {
        settle_after: Some(Duration::from_millis(400)),
        ..VaultOptions::new(data.path())
    };
    let mut scene = scene_with(options).await;
    let body = scene.read("secret").await.unwrap().body;
    tokio::time::sleep(Duration::from_millis(800)).await;
    is_read_above(scene.write("default").await);
    drop(body);
    let id = scene.subject.access_key_id().unwrap().to_owned();
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        scene.subject = scene.vault.subject(&id).unwrap();
        if scene.subject.mark().is_none() {
            break;
        }
    }
    scene.write("default").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_outlives_its_level() {
    let data = tempfile::tempdir().unwrap();
    let scene = scene(data.path()).await;
    scene.read("secret").await.unwrap();
    scene.vault.erase_level(&LOCAL, "secret").await.unwrap();
    match scene.write("default").await {
        Err(VaultError::ReadAbove { read }) => assert_eq!(read, "s2"),
        other => panic!("{other:?}"),
    }
}
