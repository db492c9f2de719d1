//! What one subject may take of the vault.

use std::path::Path;
use std::sync::Arc;

use coffer_vault::record::{Details, Tags};
use coffer_vault::*;
use futures::future::join_all;

use crate::door::{access_key_id, eventually, name};

async fn open(data: &Path, subject_limits: SubjectLimits) -> (Vault, Arc<Subject>) {
    let mut options = VaultOptions::new(data);
    options.subject_limits = subject_limits;
    let vault = Vault::open(options).await.unwrap();
    let subject = vault.subject(&access_key_id(data)).unwrap();
    (vault, subject)
}

fn uploads(uploads: usize) -> SubjectLimits {
    SubjectLimits {
        uploads,
        ..SubjectLimits::default()
    }
}

fn bucket(name: &str) -> BucketName {
    BucketName::new(name).unwrap()
}

/// Begins as many uploads at once, in turn in each of the buckets; gives those that were begun.
async fn begin(
    vault: &Vault,
    subject: &Arc<Subject>,
    buckets: &[BucketName],
    count: usize,
) -> Vec<(BucketName, UploadId)> {
    let tasks = (0..count).map(|number| {
        let (vault, subject) = (vault.clone(), subject.clone());
        let bucket = buckets[number % buckets.len()].clone();
        tokio::spawn(async move {
            let new = NewUpload {
                encryption: Default::default(),
                lock: Default::default(),
                acl: Default::default(),
                acl_sent: Default::default(),
                name: name("o"),
                details: Details::default(),
                tags: Tags::new(),
                checksum: None,
            };
            match vault.create_upload(&subject, &bucket, new).await {
                Ok(begun) => Some((bucket, begun.id)),
                Err(VaultError::SubjectLimit(SubjectLimit::Uploads { .. })) => None,
                Err(error) => panic!("{error}"),
            }
        })
    });
    let ended = join_all(tasks).await;
    ended.into_iter().filter_map(|task| task.unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_uploads_at_once_never_pass_the_limit_nor_does_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let buckets = [bucket("one"), bucket("two")];
    let (vault, subject) = open(data.path(), uploads(7)).await;
    for bucket in &buckets {
        vault.create_bucket(&subject, bucket, None).await.unwrap();
    }
    let begun = begin(&vault, &subject, &buckets, 100).await;
    assert_eq!(begun.len(), 7);
    assert_eq!(vault.counters().open_upload_count, 7);
    for (bucket, id) in &begun[..3] {
        let object = name("o");
        let aborted = vault.abort_upload(&subject, bucket, &object, *id);
        aborted.await.unwrap();
    }
    assert_eq!(begin(&vault, &subject, &buckets, 100).await.len(), 3);
    vault.close().await;
    drop(vault);

    let (vault, subject) = open(data.path(), uploads(9)).await;
    let all = || vault.counters().open_upload_count == 7;
    eventually("all are counted", all).await;
    assert_eq!(begin(&vault, &subject, &buckets, 100).await.len(), 2);
    // Nor does an upload that is ended twice make room for two.
    let (bucket, id) = &begun[4];
    for _ in 0..2 {
        let _ = vault
            .abort_upload(&subject, bucket, &name("o"), *id)
            .await
            .err();
    }
    assert_eq!(begin(&vault, &subject, &buckets, 100).await.len(), 1);
    vault.close().await;
}

/// Makes as many buckets at once; gives the names of those that were made.
async fn make(
    vault: &Vault,
    subject: &Arc<Subject>,
    prefix: &str,
    count: usize,
) -> Vec<BucketName> {
    let tasks = (0..count).map(|number| {
        let (vault, subject) = (vault.clone(), subject.clone());
        let name = bucket(&format!("{prefix}-{number}"));
        tokio::spawn(async move {
            match vault.create_bucket(&subject, &name, None).await {
                Ok(_) => Some(name),
                Err(VaultError::SubjectLimit(SubjectLimit::Buckets { .. })) => None,
                // Those that passed the first look and failed at the second, sixty times.
                Err(VaultError::TooManyFailures) => None,
                Err(error) => panic!("{error}"),
            }
        })
    });
    let ended = join_all(tasks).await;
    ended.into_iter().filter_map(|task| task.unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_buckets_at_once_never_pass_the_limit_nor_does_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let buckets = |buckets| SubjectLimits {
        buckets,
        ..SubjectLimits::default()
    };
    let (vault, subject) = open(data.path(), buckets(4)).await;
    let made = make(&vault, &subject, "first", 100).await;
    assert_eq!(made.len(), 4);
    vault.close().await;
    drop(vault);

    let (vault, subject) = open(data.path(), buckets(6)).await;
    // What administrators make is no one's.
    let local = Actor::Local { uid: 0 };
    for name in ["by-admin", "by-admin-2"] {
        vault
            .provide_bucket(&local, &bucket(name), None)
            .await
            .unwrap();
    }
    assert_eq!(make(&vault, &subject, "second", 20).await.len(), 2);
    vault.delete_bucket(&subject, &made[0]).await.unwrap();
    assert_eq!(make(&vault, &subject, "third", 20).await.len(), 1);
    vault.close().await;
}
