//! Blobs beside plain files.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;
use coffer_seal::{BlobId, BucketId, SecretKey};
use coffer_store::BlobStore;
use futures::StreamExt;

use crate::measure::{gigabytes, pieces};

const BLOB_BYTES: usize = 64 << 20;
const BLOBS: usize = 8;
const TOTAL_BYTES: usize = BLOB_BYTES * BLOBS;
const PIECE_BYTES: usize = 256 << 10;
const TASKS: usize = 32;

/// Measures plain files and what the store makes of them.
pub(crate) async fn measure(dir: &Path) {
    let bucket = dir.join("bucket");
    std::fs::create_dir_all(&bucket).unwrap();
    let store = BlobStore::new(&bucket, BucketId([7; 16]));
    let data_key = SecretKey::generate();
    let path = dir.join("plain");
    gigabytes("plain writes of 256 KiB, fdatasync", TOTAL_BYTES, async {
        let piece = vec![0x5a; PIECE_BYTES];
        for number in 0..BLOBS {
            let file = File::create(path.with_extension(number.to_string())).unwrap();
            for offset in (0..BLOB_BYTES).step_by(piece.len()) {
                file.write_all_at(&piece, offset as u64).unwrap();
            }
            file.sync_data().unwrap();
        }
    })
    .await;
    let (mut ids, mut old) = (Vec::new(), Vec::new());
    for (what, piece_bytes) in [("256 KiB", PIECE_BYTES), ("17,000 bytes", 17_000)] {
        store
            .remove(std::mem::replace(&mut old, std::mem::take(&mut ids)))
            .await;
        let what = format!("BlobWriter, pieces of {what}, durable");
        gigabytes(&what, TOTAL_BYTES, async {
            for _ in 0..BLOBS {
                ids.push(write(&store, &data_key, BLOB_BYTES, piece_bytes).await);
            }
        })
        .await;
    }
    store.remove(old).await;
    gigabytes("plain reads of 256 KiB", TOTAL_BYTES, async {
        let mut buffer = vec![0; PIECE_BYTES];
        for number in 0..BLOBS {
            let file = File::open(path.with_extension(number.to_string())).unwrap();
            for offset in (0..BLOB_BYTES).step_by(buffer.len()) {
                file.read_exact_at(&mut buffer, offset as u64).unwrap();
            }
        }
    })
    .await;
    read_all(&store, &ids, &data_key).await;
    small(&store, &ids, &data_key).await;
}

async fn read_all(store: &BlobStore, ids: &[BlobId], data_key: &SecretKey) {
    gigabytes("BlobReader, one after the other", TOTAL_BYTES, async {
        for id in ids {
            drain(store, *id, data_key).await;
        }
    })
    .await;
    gigabytes("BlobReader, 40 at once", TOTAL_BYTES * 40 / BLOBS, async {
        let readers = (0..40).map(|number| drain(store, ids[number % BLOBS], data_key));
        futures::future::join_all(readers).await;
    })
    .await;
}

async fn small(store: &BlobStore, ids: &[BlobId], data_key: &SecretKey) {
    pieces("BlobReader, 20 KiB of a blob", 20_000, async {
        for number in 0..20_000u64 {
            let id = ids[number as usize % BLOBS];
            let mut reader = store.open(id, data_key, BLOB_BYTES as u64).await.unwrap();
            reader.range(number * 1000..number * 1000 + 20_000).unwrap();
            while let Some(piece) = reader.next().await {
                piece.unwrap();
            }
        }
    })
    .await;
    pieces("BlobWriter, 20 KiB, durable, 32 at once", 2_000, async {
        let tasks = (0..TASKS).map(|_| async {
            for _ in 0..2_000 / TASKS {
                write(store, data_key, 20_000, 20_000).await;
            }
        });
        futures::future::join_all(tasks).await;
    })
    .await;
}

async fn write(
    store: &BlobStore,
    data_key: &SecretKey,
    bytes: usize,
    piece_bytes: usize,
) -> BlobId {
    let piece = Bytes::from(vec![0x5a; piece_bytes]);
    let mut writer = store.create(data_key).unwrap();
    let mut left = bytes;
    while left > 0 {
        let count = left.min(piece_bytes);
        writer.write(piece.slice(..count)).await.unwrap();
        left -= count;
    }
    let blob = writer.finish().await.unwrap();
    let id = blob.id();
    blob.keep();
    id
}

async fn drain(store: &BlobStore, id: BlobId, data_key: &SecretKey) {
    let mut reader = store.open(id, data_key, BLOB_BYTES as u64).await.unwrap();
    let mut bytes = 0;
    while let Some(piece) = reader.next().await {
        bytes += piece.unwrap().len();
        tokio::task::yield_now().await;
    }
    assert_eq!(bytes, BLOB_BYTES);
}
