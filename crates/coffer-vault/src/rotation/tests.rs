//! Rotations that are interrupted, and those that others write and read beside.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use coffer_store::record::{Details, ObjectName, Precondition, Tags};
use futures::TryStreamExt;
use parking_lot::Mutex;

use super::*;
use crate::access::{BucketName, Subject};
use crate::digest::DigestPlan;
use crate::limits::REWRAP_COMMIT;
use crate::objects::*;
use crate::vault::VaultOptions;
use crate::vault::owners::first_subject;

pub(crate) const LOCAL: Actor = Actor::Local { uid: 0 };
const COUNT: usize = 600;

pub(crate) async fn open(data: &Path) -> (Vault, Arc<Subject>) {
    let vault = Vault::open(VaultOptions::new(data)).await.unwrap();
    let subject = first_subject(&vault, data);
    (vault, subject)
}

pub(crate) fn bucket() -> BucketName {
    BucketName::new("bucket").unwrap()
}

fn data_of(number: usize) -> Bytes {
    // Longer than what catalogs hold themselves.
    Bytes::from(vec![number as u8; 16 * 1_024 + 1 + number % 7])
}

pub(crate) async fn put(vault: &Vault, subject: &Subject, number: usize) -> Result<()> {
    let data = data_of(number);
    let incoming = Incoming {
        declared_bytes: Some(data.len() as u64),
        digests: DigestPlan::default(),
        body: Box::pin(futures::stream::iter([Ok(data)])),
        check: Box::new(|_| Ok(())),
        is_proven: true,
        arrived: None,
    };
    let put = PutObject {
        encryption: Default::default(),
        lock: Default::default(),
        acl: Default::default(),
        name: ObjectName::new(number.to_string()).unwrap(),
        details: Details::default(),
        tags: Tags::new(),
        precondition: Precondition::None,
        incoming,
    };
    vault.put_object(subject, &bucket(), put).await.map(drop)
}

async fn get(vault: &Vault, subject: &Subject, number: usize) -> Bytes {
    let options = ReadOptions {
        which: coffer_store::version::Which::Current,
        customer_key: None,
        conditions: Conditions::default(),
        range: RangeRequest::All,
    };
    let name = ObjectName::new(number.to_string()).unwrap();
    let read = vault.read_object(subject, &bucket(), &name, options).await;
    let pieces: Vec<Bytes> = read.unwrap().body.try_collect().await.unwrap();
    pieces.concat().into()
}

pub(crate) async fn scene(data: &Path) -> (Vault, Arc<Subject>) {
    let (vault, subject) = open(data).await;
    vault
        .create_bucket(&subject, &bucket(), None)
        .await
        .unwrap();
    for number in 0..COUNT {
        put(&vault, &subject, number).await.unwrap();
    }
    (vault, subject)
}

pub(crate) async fn ended(vault: &Vault) -> Rotation {
    for _ in 0..6_000 {
        let rotation = vault.rotations(&LOCAL).await.unwrap().pop().unwrap();
        if rotation.ended_ms.is_some() {
            return rotation;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not end")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

pub(crate) fn generations(vault: &Vault) -> (u32, u32, Option<u32>) {
    let entry = vault.inner.keystore.buckets()[0];
    let level = vault.inner.keystore.level(entry.level_id).unwrap();
    (level.generation, entry.generation, entry.older_generation)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_goes_on_after_a_kill_between_any_two_steps() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let (vault, _) = scene(&data).await;
    let copies: Arc<Mutex<Vec<PathBuf>>> = Arc::default();
    let (from, seen, into) = (data.clone(), copies.clone(), root.path().to_owned());
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        let mut seen = seen.lock();
        let folder = into.join(format!("{} {step}", seen.len()));
        copy(&from, &folder);
        seen.push(folder);
    }));
    vault.rotate_level(&LOCAL, "default").await.unwrap();
    let again = vault.rotate_level(&LOCAL, "default").await;
    assert!(
        matches!(again, Err(VaultError::Invalid { .. })),
        "one at a time"
    );
    let rotation = ended(&vault).await;
    assert_eq!(rotation.failure, None);
    assert_eq!(
        (rotation.key_count, rotation.keys_done),
        (COUNT as u64, COUNT as u64)
    );
    assert_eq!((rotation.bucket_count, rotation.buckets_done), (1, 1));
    assert_eq!(generations(&vault), (2, 2, None));
    vault.close().await;
    drop(vault);

    let mut copies = copies.lock().clone();
    assert_eq!(
        copies.len(),
        3 + COUNT.div_ceil(REWRAP_COMMIT),
        "{copies:?}"
    );
    copies.push(data);
    for folder in copies {
        let (vault, subject) = open(&folder).await;
        for _ in 0..1_000 {
            if generations(&vault) == (2, 2, None) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(generations(&vault), (2, 2, None), "{folder:?}");
        for number in (0..COUNT).step_by(37) {
            assert_eq!(
                get(&vault, &subject, number).await,
                data_of(number),
                "{folder:?}"
            );
        }
        vault.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_and_read_during_rotations_stays_readable() {
    let root = tempfile::tempdir().unwrap();
    let (vault, subject) = scene(root.path()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writer = |first: usize| {
        let (vault, subject, stop) = (vault.clone(), subject.clone(), stop.clone());
        tokio::spawn(async move {
            let mut number = first;
            while !stop.load(Ordering::Relaxed) {
                put(&vault, &subject, number).await.unwrap();
                let other = (number - first) % COUNT;
                assert_eq!(get(&vault, &subject, other).await, data_of(other));
                number += 1;
            }
            first..number
        })
    };
    // One replaces what is there, the other adds.
    let writers = [writer(0), writer(10_000)];
    for generation in 2..5 {
        vault.rotate_bucket(&LOCAL, &bucket()).await.unwrap();
        assert_eq!(ended(&vault).await.failure, None);
        assert_eq!(generations(&vault), (1, generation, None));
        // The list shows the latest of a bucket, so wait before the next.
    }
    vault.rotate_root(&LOCAL).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        for number in writer.await.unwrap() {
            assert_eq!(get(&vault, &subject, number).await, data_of(number));
        }
    }
    let status = vault.keystore_status(&LOCAL).await.unwrap();
    assert_eq!(
        (status.source.as_str(), status.rotating_bucket_count),
        ("file", 0)
    );
    let bucket = vault
        .inner
        .open_buckets
        .get(vault.inner.keystore.buckets()[0].id);
    assert_eq!(bucket.unwrap().key().older_generation(), None);
    vault.close().await;
}

/// Neither on the catalog that it has, nor on one that it opens again.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_stops_before_an_erase_of_its_bucket_is_acknowledged() {
    let root = tempfile::tempdir().unwrap();
    let (vault, _) = scene(root.path()).await;
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let steps: Arc<Mutex<Vec<&str>>> = Arc::default();
    let noted = steps.clone();
    *vault.inner.probe.lock() = Some(Box::new(move |step| {
        noted.lock().push(step);
        begun.send(step).unwrap();
    }));
    vault.rotate_bucket(&LOCAL, &bucket()).await.unwrap();
    while begins.recv().await != Some("some rewrapped") {}
    vault.erase_bucket(&LOCAL, &bucket()).await.unwrap();
    let until = steps.lock().len();
    assert_eq!(vault.receipts(&LOCAL, None).await.unwrap().len(), 1);
    let rotation = ended(&vault).await;
    assert_eq!(rotation.failure, None, "there is nothing left to rotate");
    let after = steps.lock().split_off(until);
    assert!(after.is_empty(), "{after:?}");
    let plans: Vec<Plan> = vault.inner.system.documents(Kind::Rotation).unwrap();
    assert!(plans.is_empty());
    vault.inner.probe.lock().take();
    vault.close().await;
}
