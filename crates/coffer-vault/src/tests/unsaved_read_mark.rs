//! A read whose mark can't be kept.

use coffer_store::record::ObjectName;

use crate::access::{Actor, BucketName, Role};
use crate::admin::{NewLevel, NewSubject};
use crate::error::VaultError;
use crate::objects::ReadOptions;
use crate::vault::{Vault, VaultOptions};

const LOCAL: Actor = Actor::Local { uid: 0 };

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_cannot_be_remembered_tells_nothing() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    let level = NewLevel {
        name: "secret".into(),
        label: "s2".parse().unwrap(),
        options: Default::default(),
        may_share_label: true,
    };
    vault.create_level(&LOCAL, level).await.unwrap();
    let bucket = BucketName::new("bucket").unwrap();
    let made = vault.provide_bucket(&LOCAL, &bucket, Some("secret")).await;
    made.unwrap();
    let new = NewSubject {
        name: "ann".into(),
        clearance: "default..secret".into(),
        is_trusted: false,
        roles: [Role::DataUser].into_iter().collect(),
        expires_ms: None,
        grants: None,
    };
    let (ann, _) = vault.create_subject(&LOCAL, new).await.unwrap();
    let name = ObjectName::new("absent").unwrap();
    let head = || vault.head_object(&ann.subject, &bucket, &name, ReadOptions::default());
    vault.inner.system.fail_next_commit(false, true);
    let refused = head().await.err().unwrap();
    assert!(!matches!(refused, VaultError::NoSuchObject), "{refused}");
    assert_eq!(ann.subject.mark(), None);
    vault.inner.system.fail_next_commit(true, false);
    let in_doubt = head().await.err().unwrap();
    assert!(matches!(in_doubt, VaultError::SystemInDoubt), "{in_doubt}");
    vault.inner.system.let_settle();
    let absent = head().await.err().unwrap();
    assert!(matches!(absent, VaultError::NoSuchObject), "{absent}");
    assert_eq!(ann.subject.mark().unwrap().to_string(), "s2");
    vault.close().await;
}
