//! A disk without space: a clear error, reads go on, and all is well once there is space again.
//!
//! On a file system of its own, which needs the right to mount one; without it there is nothing to
//! test and the test says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::Bytes;
use coffer_seal::SecretKey;
use coffer_store::StoreError;
use coffer_store::record::{ListQuery, Precondition};
use futures::future::join_all;
use tempfile::TempDir;

use crate::fixture::{Bucket, blob_ref_to, in_blob, inline, name, noise};

struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(dir: &Path, mebibytes: usize) -> Option<Self> {
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

#[tokio::test]
async fn a_full_disk_is_told_and_left_behind() {
    let parent = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(parent.path(), 12) else {
        eprintln!("not tested: no right to mount a small file system");
        return;
    };
    let mut bucket = Bucket::within(TempDir::new_in(parent.path()).unwrap()).await;
    bucket.put("early", &noise(9_000)).await;
    let (blob, key) = bucket.write_blob(&noise(300_000)).await;
    let object = in_blob("early blob", blob_ref_to(blob, 300_000));
    bucket
        .catalog
        .put(object, Precondition::None)
        .await
        .unwrap();

    // With blobs until there is no room for one more; what is not finished is taken back.
    let mut kept = Vec::new();
    loop {
        match put_blob(&bucket, &noise(1 << 20)).await {
            Ok(id) => kept.push(id),
            Err(StoreError::Full) => break,
            Err(error) => panic!("{error:?}"),
        }
        assert!(kept.len() < 20);
    }
    // With small objects until there is no room at all.
    let mut acknowledged = 0;
    let mut refused = 0;
    while refused < 40 {
        let puts = (0..20).map(|number| {
            let object = inline(&format!("small {acknowledged:05} {number}"), &noise(8_000));
            bucket.catalog.put(object, Precondition::None)
        });
        for put in join_all(puts).await {
            match put {
                Ok(_) => acknowledged += 1,
                Err(StoreError::Full) => refused += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    assert!(acknowledged > 0);

    // Reads go on.
    assert_eq!(bucket.inline_data("early").await.unwrap(), noise(9_000));
    let (read, end) = bucket.read_blob(blob, &key, 300_000).await;
    end.unwrap();
    assert!(read == noise(300_000));
    // What was acknowledged is there, what was refused is not, now and after a new start.
    assert_eq!(count(&bucket).await, acknowledged + 2);

    // Space returns: writes go on with the same catalog.
    bucket.blobs.remove(kept).await;
    bucket.put("late", &noise(9_000)).await;
    put_blob(&bucket, &noise(1 << 20)).await.unwrap();
    bucket
        .catalog
        .delete(&name("early"), Precondition::Present)
        .await
        .unwrap();
    assert_eq!(count(&bucket).await, acknowledged + 2);
    bucket.reopen().await;
    assert_eq!(count(&bucket).await, acknowledged + 2);
    assert_eq!(bucket.inline_data("late").await.unwrap(), noise(9_000));
    bucket.catalog.check_integrity().await.unwrap();
    bucket.catalog.check_structure().await.unwrap();
    bucket.catalog.close().await;
}

async fn put_blob(bucket: &Bucket, data: &[u8]) -> Result<coffer_store::record::Id, StoreError> {
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
