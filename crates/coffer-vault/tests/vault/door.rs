//! A front door for tests.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use coffer_audit::Event;
use coffer_vault::record::{Details, ListQuery, ObjectName, Precondition, Tags};
use coffer_vault::version::Which;
use coffer_vault::*;
use futures::{StreamExt, TryStreamExt, stream};

pub(crate) struct Door {
    pub(crate) vault: Vault,
    pub(crate) subject: Arc<Subject>,
    pub(crate) bucket: BucketName,
}

pub(crate) async fn open(data: &Path) -> Vault {
    Vault::open(VaultOptions::new(data)).await.unwrap()
}

pub(crate) fn access_key_id(data: &Path) -> String {
    let text = std::fs::read_to_string(data.join("credentials")).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("aws_access_key_id"))
        .unwrap();
    line.split(" = ").nth(1).unwrap().to_owned()
}

pub(crate) async fn door(data: &Path) -> Door {
    let vault = open(data).await;
    let subject = vault.subject(&access_key_id(data)).unwrap();
    let bucket = BucketName::new("bucket").unwrap();
    match vault.create_bucket(&subject, &bucket, None).await {
        Ok(_) | Err(VaultError::BucketAlreadyOwnedByYou) => {}
        Err(error) => panic!("{error}"),
    }
    Door {
        vault,
        subject,
        bucket,
    }
}

pub(crate) fn name(name: &str) -> ObjectName {
    ObjectName::new(name).unwrap()
}

pub(crate) fn bytes(length: usize) -> Bytes {
    (0..length)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 7) as u8)
        .collect()
}

pub(crate) fn incoming(content: &Bytes, piece: usize) -> Incoming {
    let pieces: Vec<_> = content
        .chunks(piece)
        .map(|piece| Ok(content.slice_ref(piece)))
        .collect();
    Incoming {
        declared_bytes: Some(content.len() as u64),
        digests: DigestPlan::default(),
        body: Box::pin(stream::iter(pieces)),
        check: Box::new(|_| Ok(())),
        is_proven: true,
        arrived: None,
    }
}

pub(crate) fn put(object: &str, content: &Bytes) -> PutObject {
    PutObject {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        name: name(object),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming: incoming(content, 10_000),
    }
}

impl Door {
    pub(crate) async fn put(&self, object: &str, content: &Bytes) -> Result<Stored> {
        self.vault
            .put_object(&self.subject, &self.bucket, put(object, content))
            .await
    }

    pub(crate) async fn read(&self, object: &str, range: RangeRequest) -> Result<Vec<u8>> {
        let options = ReadOptions {
            which: Which::Current,
            customer_key: None,
            range,
            ..ReadOptions::default()
        };
        let read = self
            .vault
            .read_object(&self.subject, &self.bucket, &name(object), options)
            .await?;
        let parts: Vec<Bytes> = read.body.try_collect().await?;
        Ok(parts.concat())
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let query = ListQuery {
            limit: 1_000,
            ..ListQuery::default()
        };
        let page = self
            .vault
            .list_objects(&self.subject, &self.bucket, query)
            .await
            .unwrap();
        page.objects
            .iter()
            .map(|object| object.name.expose().to_owned())
            .collect()
    }
}

/// All that the audit log has recorded so far.
pub(crate) async fn recorded(vault: &Vault) -> Vec<Event> {
    let owner = Actor::Local { uid: 0 };
    let items = vault.audit_records(&owner, AuditQuery::default()).await;
    let event = |item| match item {
        AuditItem::Record(record) => record.event,
        _ => panic!("the log is sound"),
    };
    items.unwrap().map(event).collect().await
}

/// The same at the next start: a stop tells of all that repeated.
pub(crate) async fn recorded_by_the_next_start(vault: Vault, data: &Path) -> Vec<Event> {
    vault.close().await;
    drop(vault);
    let vault = open(data).await;
    let recorded = recorded(&vault).await;
    vault.close().await;
    recorded
}

/// Files under a folder, and the bytes in them.
pub(crate) fn blob_files(data: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![data.join("buckets")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.components().any(|part| part.as_os_str() == "blobs") {
                files.push(path);
            }
        }
    }
    files
}

/// Waits for what happens in the background, for five seconds at most.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

/// The deletion of the newest version.
pub(crate) fn gone(name: ObjectName, precondition: Precondition) -> DeleteObject {
    DeleteObject {
        name,
        which: Which::Current,
        precondition,
        only_if: Default::default(),
        bypasses_governance: false,
    }
}
