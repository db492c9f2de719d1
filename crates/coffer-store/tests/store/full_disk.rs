//! A disk without space: a clear error, reads go on, and all is well once there is space again.
//!
//! On a file system of its own, which needs the right to mount one; without it there is nothing to
//! test and the test says so.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use coffer_seal::{BlobId, SecretKey};
use coffer_store::StoreError;
use coffer_store::record::{ListQuery, Precondition};
use coffer_store::version::Which;
use futures::future::join_all;
use tempfile::TempDir;

use crate::fixture::{Bucket, blob_ref_to, gone, in_blob, inline, name, noise};

pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn mount(dir: &Path, mebibytes: usize) -> Option<Self> {
        let options = format!("size={mebibytes}m,mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(dir)
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Self(dir.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A bucket on a disk of its own, with an object and a blob in it.
struct SmallBucket {
    bucket: Bucket,
    blob: BlobId,
    key: SecretKey,
    _disk: SmallDisk,
    parent: TempDir,
}

impl SmallBucket {
    async fn new(mebibytes: usize) -> Option<Self> {
        let parent = tempfile::tempdir().unwrap();
        let Some(disk) = SmallDisk::mount(parent.path(), mebibytes) else {
            eprintln!("not tested: no right to mount a small file system");
            return None;
        };
        let bucket = Bucket::within(TempDir::new_in(parent.path()).unwrap()).await;
        bucket.put("early", &noise(9_000)).await;
        let (blob, key) = bucket.write_blob(&noise(300_000)).await;
        let object = in_blob("early blob", blob_ref_to(blob, 300_000));
        bucket
            .catalog
            .put(object, Precondition::None)
            .await
            .unwrap();
        Some(Self {
            bucket,
            blob,
            key,
            _disk: disk,
            parent,
        })
    }

    async fn assert_reads_go_on(&self) {
        assert_eq!(
            self.bucket.inline_data("early").await.unwrap(),
            noise(9_000)
        );
        let (read, end) = self.bucket.read_blob(self.blob, &self.key, 300_000).await;
        end.unwrap();
        assert!(read == noise(300_000));
    }
}

/// Stores small objects until so many were refused in a row; how many were stored.
async fn fill(bucket: &Bucket, prefix: &str) -> usize {
    let (mut stored, mut refused) = (0, 0);
    while refused < 40 {
        let puts = (0..20).map(|number| {
            let object = inline(&format!("{prefix} {stored:05} {number}"), &noise(8_000));
            bucket.catalog.put(object, Precondition::None)
        });
        for put in join_all(puts).await {
            match put {
                Ok(_) => (stored, refused) = (stored + 1, 0),
                Err(StoreError::Full) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    stored
}

#[tokio::test]
async fn a_full_disk_is_told_and_deleting_makes_space() {
    let Some(mut small) = SmallBucket::new(24).await else {
        return;
    };
    let bucket = &small.bucket;
    // With blobs until there is no room for one more; what is not finished is taken back.
    let mut kept = Vec::new();
    loop {
        match put_blob(bucket, &noise(1 << 20)).await {
            Ok(id) => kept.push(id),
            Err(StoreError::Full) => break,
            Err(error) => panic!("{error:?}"),
        }
        assert!(kept.len() < 30);
    }
    let stored = fill(bucket, "small").await;
    small.assert_reads_go_on().await;
    assert_eq!(count(bucket).await, stored + 2);

    // No space has returned, and deletions are possible: of all small objects, one by one.
    let query = ListQuery {
        prefix: "small".into(),
        limit: 1000,
        ..ListQuery::default()
    };
    for object in bucket.catalog.list(query).await.unwrap().objects {
        let deleted = bucket
            .catalog
            .delete(gone(&object.name, Precondition::Present))
            .await;
        assert!(deleted.unwrap().existed);
    }
    assert_eq!(count(bucket).await, 2);

    bucket.blobs.remove(kept).await;
    bucket.put("late", &noise(9_000)).await;
    put_blob(bucket, &noise(1 << 20)).await.unwrap();
    small.bucket.reopen().await;
    assert_eq!(count(&small.bucket).await, 3);
    small.assert_reads_go_on().await;
    small.bucket.catalog.check_integrity().await.unwrap();
    small.bucket.catalog.check_structure().await.unwrap();
    small.bucket.catalog.close().await;
}

/// A catalog never gives its pages back to the disk, but uses them again.
#[tokio::test]
async fn what_small_objects_leave_free_is_for_small_objects_even_on_a_full_disk() {
    let Some(small) = SmallBucket::new(24).await else {
        return;
    };
    let stored = fill(&small.bucket, "first").await;
    let query = ListQuery {
        prefix: "first".into(),
        limit: 1000,
        ..ListQuery::default()
    };
    // A few at once: each transaction has to find room in the log for all that it overwrites.
    let doomed = small.bucket.catalog.list(query).await.unwrap().objects;
    for few in doomed.chunks(10) {
        let few = few
            .iter()
            .map(|object| gone(&object.name, Precondition::None));
        small
            .bucket
            .catalog
            .delete_many(few.collect())
            .await
            .unwrap();
    }
    let again = fill(&small.bucket, "second").await;
    assert!(again > stored / 2, "{stored} and then {again}");
    small.assert_reads_go_on().await;
    small.bucket.catalog.close().await;
}

/// Others have taken the last byte, so that SQLite itself meets the end of the disk.
#[tokio::test]
async fn a_disk_without_any_space_is_left_behind() {
    let Some(mut small) = SmallBucket::new(12).await else {
        return;
    };
    let filler = small.parent.path().join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&noise(4096)).is_ok() {}
    drop(file);
    let bucket = &small.bucket;
    let put = bucket
        .catalog
        .put(inline("refused", b""), Precondition::None)
        .await;
    assert!(matches!(put, Err(StoreError::Full)));
    assert!(matches!(
        put_blob(bucket, b"refused").await,
        Err(StoreError::Full)
    ));
    let mut stood = 0;
    let refused = loop {
        let tags = vec![("tag".to_owned(), format!("{stood}"))];
        match bucket
            .catalog
            .set_object_tags(&name("early"), Which::Current, tags)
            .await
        {
            Ok(there) => assert!(there.is_ok()),
            Err(error) => break error,
        }
        stood += 1;
        assert!(stood < 100_000);
    };
    assert!(matches!(refused, StoreError::Full), "{refused:?}");
    small.assert_reads_go_on().await;
    let tags = bucket
        .catalog
        .object_tags(&name("early"), Which::Current)
        .await
        .unwrap()
        .unwrap();
    let expected = (stood > 0).then(|| ("tag".to_owned(), format!("{}", stood.max(1) - 1)));
    assert_eq!(tags.0, expected.into_iter().collect::<Vec<_>>());

    std::fs::remove_file(&filler).unwrap();
    bucket.put("late", &noise(9_000)).await;
    bucket
        .catalog
        .delete(gone(&name("early blob"), Precondition::Present))
        .await
        .unwrap();
    small.bucket.reopen().await;
    assert_eq!(count(&small.bucket).await, 2);
    assert_eq!(
        small.bucket.inline_data("late").await.unwrap(),
        noise(9_000)
    );
    small.bucket.catalog.check_integrity().await.unwrap();
    small.bucket.catalog.check_structure().await.unwrap();
    small.bucket.catalog.close().await;
}

async fn put_blob(bucket: &Bucket, data: &[u8]) -> Result<BlobId, StoreError> {
    let mut writer = bucket.blobs.create(&SecretKey::generate())?;
    for piece in data.chunks(100_000) {
        writer.write(Bytes::copy_from_slice(piece)).await?;
    }
    let blob = writer.finish().await?;
    let id = blob.id();
    blob.keep();
    Ok(id)
}

async fn count(bucket: &Bucket) -> usize {
    let mut query = ListQuery {
        limit: 1000,
        ..ListQuery::default()
    };
    let mut count = 0;
    loop {
        let page = bucket.catalog.list(query.clone()).await.unwrap();
        count += page.objects.len();
        query.start_after = page.next;
        if query.start_after.is_none() {
            return count;
        }
    }
}
