//! What survives when the process is killed: everything it has acknowledged.
//!
//! The test runs this very program once more, as the one to be killed.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use coffer_seal::SecretKey;
use coffer_store::record::{Content, Precondition};
use coffer_store::{BlobStore, Catalog};

use crate::fixture::{BUCKET_ID, Bucket, blob_ref_to, in_blob, inline, noise, read};

const DIR_VARIABLE: &str = "COFFER_STORE_KILLED_DIR";
const KEY: [u8; 32] = [0x11; 32];
const ROUNDS: usize = 6;

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill() {
    let mut dir = tempfile::tempdir().unwrap();
    let key = SecretKey::from_bytes(KEY);
    Catalog::create(dir.path(), &key, "bucket")
        .await
        .unwrap()
        .close()
        .await;
    let mut acknowledged = BTreeSet::new();
    for round in 0..ROUNDS {
        let before = acknowledged.len();
        run_and_kill(dir.path(), round, &mut acknowledged);
        assert!(
            acknowledged.len() > before,
            "round {round} acknowledged nothing"
        );

        let catalog = Catalog::open(dir.path(), &key).await.unwrap();
        let blobs = BlobStore::new(dir.path(), BUCKET_ID);
        blobs.sweep(&catalog).await.unwrap();
        let bucket = Bucket {
            dir,
            key: key.clone(),
            catalog,
            blobs,
        };
        for name in &acknowledged {
            assert_whole(&bucket, name, &key).await;
        }
        bucket.catalog.check_integrity().await.unwrap();
        bucket.catalog.check_structure().await.unwrap();
        assert_eq!(bucket.blobs.sweep(&bucket.catalog).await.unwrap().files, 0);
        bucket.catalog.close().await;
        dir = bucket.dir;
    }
}

async fn assert_whole(bucket: &Bucket, name: &str, key: &SecretKey) {
    let found = read(&bucket.catalog, name).await.unwrap();
    let (head, content) = found.unwrap_or_else(|| panic!("{name} is lost"));
    match content {
        Content::Inline(data) => assert!(data == noise(data.len()), "{name}"),
        Content::Blobs { blobs, .. } => {
            let (data, end) = bucket.read_blob(blobs[0].id, key, head.size_bytes).await;
            end.unwrap();
            assert!(data == noise(data.len()), "{name}");
        }
    }
}

/// Starts the writer, collects what it acknowledges, and kills it after a while.
fn run_and_kill(dir: &std::path::Path, round: usize, acknowledged: &mut BTreeSet<String>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "killed::the_one_to_be_killed",
            "--nocapture",
        ])
        .env(DIR_VARIABLE, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // From the first acknowledgement on, however long that took.
    let (acknowledges, begun) = mpsc::channel();
    let patience = Duration::from_millis(20 + 130 * round as u64);
    let killer = std::thread::spawn(move || {
        begun.recv().expect("something is acknowledged");
        std::thread::sleep(patience);
        child.kill().unwrap();
        child.wait().unwrap();
    });
    for line in lines {
        // The last line may be cut off: then it was not acknowledged.
        if let Some(name) = line
            .unwrap()
            .strip_prefix("done ")
            .and_then(|rest| rest.strip_suffix('.'))
        {
            acknowledged.insert(name.to_owned());
            let _ = acknowledges.send(());
        }
    }
    drop(acknowledges);
    killer.join().unwrap();
}

#[test]
#[ignore = "runs only as the child of the test above"]
fn the_one_to_be_killed() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let key = SecretKey::from_bytes(KEY);
        let catalog = Catalog::open(dir.as_ref(), &key).await.unwrap();
        let blobs = BlobStore::new(dir.as_ref(), BUCKET_ID);
        let writers = (0..8).map(|task| {
            let (catalog, blobs, key) = (catalog.clone(), blobs.clone(), key.clone());
            tokio::spawn(async move {
                for number in 0.. {
                    let name = format!("{}-{task}-{number}", std::process::id());
                    if number % 4 == 3 {
                        put_blob(&catalog, &blobs, &name, &key).await;
                    } else {
                        let object = inline(&name, &noise(number * 131 % 9_000));
                        catalog.put(object, Precondition::None).await.unwrap();
                    }
                    let line = format!("done {name}.\n");
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            })
        });
        futures::future::join_all(writers.collect::<Vec<_>>()).await;
    });
}

async fn put_blob(catalog: &Catalog, blobs: &BlobStore, name: &str, key: &SecretKey) {
    let data = noise(30_000);
    let mut writer = blobs.create(key).unwrap();
    writer.write(Bytes::from(data)).await.unwrap();
    let blob = writer.finish().await.unwrap();
    let object = in_blob(name, blob_ref_to(blob.id(), blob.plaintext_bytes()));
    catalog.put(object, Precondition::None).await.unwrap();
    blob.keep();
}
