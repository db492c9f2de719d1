//! Blobs: what goes in comes out, and nothing else does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_seal::{BlobId, Context, SecretKey, limits as seal, open, sealed_bytes};
use coffer_store::StoreError;
use proptest::prelude::*;

use crate::fixture::{BUCKET_ID, Bucket, drain, noise};

const CHUNK: usize = seal::CHUNK_BYTES;

/// Drops a file from the page cache, so that reading it needs the disk.
fn evict(path: &Path) {
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_blob_of_every_length_comes_back_from_cache_and_from_disk() {
    let bucket = Bucket::new().await;
    for length in [
        0,
        1,
        CHUNK - 1,
        CHUNK,
        CHUNK + 1,
        15 * CHUNK,
        16 * CHUNK - 1,
        16 * CHUNK,
        16 * CHUNK + 1,
        17 * CHUNK,
        40 * CHUNK + 77,
    ] {
        let data = noise(length);
        let (id, key) = bucket.write_blob(&data).await;
        let path = bucket.blobs.path(id);
        assert_eq!(
            Some(fs::metadata(&path).unwrap().len()),
            sealed_bytes(length as u64)
        );
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        for is_cold in [false, true] {
            if is_cold {
                evict(&path);
            }
            let (read, end) = bucket.read_blob(id, &key, length as u64).await;
            end.unwrap();
            assert!(read == data, "{length} bytes, cold: {is_cold}");
        }
    }
}

#[tokio::test]
async fn a_file_is_one_message_bound_to_bucket_and_blob() {
    let bucket = Bucket::new().await;
    let data = noise(50_000);
    let (id, key) = bucket.write_blob(&data).await;
    let digits = id.to_string();
    let path = bucket
        .dir
        .path()
        .join("blobs")
        .join(&digits[..2])
        .join(&digits[2..]);
    let message = fs::read(path).unwrap();
    let opened = open(&key, &Context::blob(BUCKET_ID, id), &message).unwrap();
    assert!(*opened == data);
}

#[tokio::test]
async fn how_the_bytes_arrive_does_not_matter() {
    let bucket = Bucket::new().await;
    let data = Bytes::from(noise(33 * CHUNK + 5));
    for piece_bytes in [1000, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 3, data.len()] {
        let key = SecretKey::generate();
        let mut writer = bucket.blobs.create(&key).unwrap();
        for start in (0..data.len()).step_by(piece_bytes) {
            let piece = data.slice(start..data.len().min(start + piece_bytes));
            writer.write(piece).await.unwrap();
            writer.write(Bytes::new()).await.unwrap();
        }
        let blob = writer.finish().await.unwrap();
        assert_eq!(blob.plaintext_bytes(), data.len() as u64);
        let (read, end) = bucket.read_blob(blob.id(), &key, data.len() as u64).await;
        end.unwrap();
        assert!(read == data, "pieces of {piece_bytes}");
    }
}

#[tokio::test]
async fn ranges_are_exact() {
    let bucket = Bucket::new().await;
    let length = 20 * CHUNK as u64;
    let data = noise(length as usize);
    let (id, key) = bucket.write_blob(&data).await;
    let config = ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let chunk = CHUNK as u64;
    let edge = prop_oneof![
        0..=length,
        (0..=20u64).prop_map(move |index| index * chunk),
        (0..20u64).prop_map(move |index| index * chunk + 1),
        (1..=20u64).prop_map(move |index| index * chunk - 1),
    ];
    let ranges = std::cell::RefCell::new(Vec::new());
    let edges = (edge.clone(), edge);
    runner
        .run(&edges, |(a, b)| {
            ranges.borrow_mut().push(a.min(b)..a.max(b));
            Ok(())
        })
        .unwrap();
    for range in ranges.into_inner() {
        let mut reader = bucket.blobs.open(id, &key, length).await.unwrap();
        reader.range(range.clone()).unwrap();
        let (read, end) = drain(reader).await;
        end.unwrap();
        assert!(
            read == data[range.start as usize..range.end as usize],
            "{range:?}"
        );
    }
    let mut reader = bucket.blobs.open(id, &key, length).await.unwrap();
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "that it is refused is the point"
    )]
    for outside in [length..length + 1, 5..4] {
        assert!(matches!(reader.range(outside), Err(StoreError::OutOfRange)));
    }
}

/// Reads a blob whose file was altered from offset `at` on: the error comes before the chunk there.
async fn assert_damaged(bucket: &Bucket, id: BlobId, key: &SecretKey, data: &[u8], at: usize) {
    let (read, end) = bucket.read_blob(id, key, data.len() as u64).await;
    match end {
        Err(StoreError::Damaged { bucket, blob, .. }) => {
            assert_eq!((bucket, blob), (BUCKET_ID, Some(id)));
        }
        other => panic!("altered at {at}: {other:?}"),
    }
    let chunk = at.saturating_sub(seal::HEADER_BYTES) / seal::SEALED_CHUNK_BYTES;
    assert!(
        read.len() <= chunk * CHUNK,
        "altered at {at}: {} bytes given out",
        read.len()
    );
    assert!(read == data[..read.len()], "altered at {at}: wrong bytes");
}

#[tokio::test]
async fn a_flipped_bit_anywhere_is_an_error_before_its_chunk() {
    let bucket = Bucket::new().await;
    for length in [5 * CHUNK + 100, 18 * CHUNK, 10] {
        let data = noise(length);
        let (id, key) = bucket.write_blob(&data).await;
        let path = bucket.blobs.path(id);
        let message = fs::read(&path).unwrap();
        let mut places = vec![0, 23, 24, 55];
        for start in (56..message.len()).step_by(seal::SEALED_CHUNK_BYTES) {
            let end = message.len().min(start + seal::SEALED_CHUNK_BYTES);
            places.extend([start, (start + end) / 2, end - 17, end - 16, end - 1]);
        }
        for at in places.into_iter().filter(|at| *at < message.len()) {
            let mut altered = message.clone();
            altered[at] ^= 1 << (at % 8);
            fs::write(&path, &altered).unwrap();
            assert_damaged(&bucket, id, &key, &data, at).await;
        }
        fs::write(&path, &message).unwrap();
        bucket.read_blob(id, &key, length as u64).await.1.unwrap();
    }
}

#[tokio::test]
async fn what_is_cut_off_added_missing_or_swapped_is_an_error() {
    let bucket = Bucket::new().await;
    let data = noise(5 * CHUNK);
    let (id, key) = bucket.write_blob(&data).await;
    let (other, other_key) = bucket.write_blob(&data).await;
    let path = bucket.blobs.path(id);
    let message = fs::read(&path).unwrap();
    let sealed = seal::SEALED_CHUNK_BYTES;
    for length in [
        0,
        1,
        55,
        56,
        72,
        56 + sealed,
        message.len() - 16,
        message.len() - 1,
    ] {
        fs::write(&path, &message[..length]).unwrap();
        assert_damaged(&bucket, id, &key, &data, length).await;
    }
    for added in [1, 16, sealed] {
        let longer: Vec<u8> = message.iter().copied().chain(noise(added)).collect();
        fs::write(&path, longer).unwrap();
        assert_damaged(&bucket, id, &key, &data, message.len()).await;
    }
    // Chunks in another order.
    let mut reordered = message.clone();
    reordered[56..56 + 2 * sealed].rotate_left(sealed);
    fs::write(&path, reordered).unwrap();
    assert_damaged(&bucket, id, &key, &data, 56).await;
    // Another blob's file in its place, under either key.
    fs::copy(bucket.blobs.path(other), &path).unwrap();
    assert_damaged(&bucket, id, &key, &data, 0).await;
    assert_damaged(&bucket, id, &other_key, &data, 0).await;
    fs::remove_file(&path).unwrap();
    assert_damaged(&bucket, id, &key, &data, 0).await;
    // What the catalog says of its length must be true, too.
    let (read, end) = bucket
        .read_blob(other, &other_key, data.len() as u64 - 1)
        .await;
    assert!(read.is_empty() && matches!(end, Err(StoreError::Damaged { .. })));
}

#[tokio::test]
async fn a_file_cut_off_while_it_is_read_is_an_error() {
    use futures::StreamExt;
    let bucket = Bucket::new().await;
    let data = noise(64 * CHUNK);
    let (id, key) = bucket.write_blob(&data).await;
    let mut reader = bucket
        .blobs
        .open(id, &key, data.len() as u64)
        .await
        .unwrap();
    let first = reader.next().await.unwrap().unwrap();
    assert!(first[..] == data[..first.len()]);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(bucket.blobs.path(id))
        .unwrap();
    file.set_len(40 * seal::SEALED_CHUNK_BYTES as u64).unwrap();
    let (read, end) = drain(reader).await;
    assert!(matches!(end, Err(StoreError::Damaged { .. })));
    assert!(read == data[first.len()..first.len() + read.len()]);
}

#[tokio::test]
async fn what_is_not_kept_leaves_no_file() {
    let bucket = Bucket::new().await;
    let key = SecretKey::generate();
    let path_of = |id| bucket.blobs.path(id);

    let writer = bucket.blobs.create(&key).unwrap();
    let never_written = writer.id();
    drop(writer);
    let mut writer = bucket.blobs.create(&key).unwrap();
    let half_written = writer.id();
    for _ in 0..10 {
        writer.write(Bytes::from(noise(20 * CHUNK))).await.unwrap();
    }
    assert!(path_of(half_written).exists());
    drop(writer); // perhaps with a write on its way
    let mut writer = bucket.blobs.create(&key).unwrap();
    writer.write(Bytes::from(noise(20 * CHUNK))).await.unwrap();
    let finished = writer.finish().await.unwrap();
    let not_kept = finished.id();
    assert!(path_of(not_kept).exists());
    drop(finished);
    let (kept, _) = bucket.write_blob(b"kept").await;
    let gone = [never_written, half_written, not_kept];
    until("the files go", || {
        gone.iter().all(|id| !path_of(*id).exists())
    })
    .await;
    assert!(path_of(kept).exists());
}

#[tokio::test]
async fn a_removal_waits_for_those_who_began_to_read_before() {
    let bucket = Bucket::new().await;
    let data = noise(3 * CHUNK);
    let (id, key) = bucket.write_blob(&data).await;
    let (unpinned, _) = bucket.write_blob(&data).await;
    let pin = bucket.blobs.pin();
    bucket.blobs.remove(vec![id]).await;
    let later = bucket.blobs.pin();
    let (read, end) = bucket.read_blob(id, &key, data.len() as u64).await;
    end.unwrap();
    assert!(read == data);
    drop(pin);
    until("the file goes with the pin", || {
        !bucket.blobs.path(id).exists()
    })
    .await;
    // The later pin was too late for the first and holds the second.
    bucket.blobs.remove(vec![unpinned]).await;
    assert!(bucket.blobs.path(unpinned).exists());
    drop(later);
    until("so does the other", || {
        !bucket.blobs.path(unpinned).exists()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_read_and_write_at_once() {
    let bucket = Bucket::new().await;
    let work = (0..60usize).map(|number| {
        let blobs = bucket.blobs.clone();
        tokio::spawn(async move {
            let key = SecretKey::generate();
            let data = noise(number * 7_000);
            let mut writer = blobs.create(&key).unwrap();
            for piece in data.chunks(10_000) {
                writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
            }
            let blob = writer.finish().await.unwrap();
            let reader = blobs
                .open(blob.id(), &key, data.len() as u64)
                .await
                .unwrap();
            let (read, end) = drain(reader).await;
            end.unwrap();
            assert!(read == data);
        })
    });
    for done in futures::future::join_all(work.collect::<Vec<_>>()).await {
        done.unwrap();
    }
}
