//! Blobs that go out and come in as they lie: sealed.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{Opener, SecretKey, seal, sealed_bytes};
use coffer_store::limits::WRITE_BYTES;
use coffer_store::{Opening, SealedBlobWriter, SealedSegment, StoreError};

use crate::fixture::Bucket;

const SOME_CHUNKS: usize = 40 * CHUNK_BYTES;

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 7 % 251) as u8).collect()
}

/// What a client makes of a segment's bytes.
fn open_segment(
    bucket: &Bucket,
    (segment, sealed): (&SealedSegment, &[u8]),
    key: &SecretKey,
    blob_bytes: u64,
) -> Vec<u8> {
    let context = bucket.blobs.context(segment.blob);
    let length = sealed_bytes(blob_bytes).unwrap();
    let opener = Opener::new(key, &context, &segment.header, length).unwrap();
    let (mut plaintext, mut at, mut chunk) = (Vec::new(), 0, segment.first_chunk);
    let mut out = vec![0; CHUNK_BYTES];
    while at < sealed.len() {
        let end = sealed.len().min(at + SEALED_CHUNK_BYTES);
        let count = opener
            .open_chunk(chunk, &sealed[at..end], &mut out)
            .unwrap();
        plaintext.extend_from_slice(&out[..count]);
        (at, chunk) = (end, chunk + 1);
    }
    let skip = segment.skip as usize;
    plaintext[skip..skip + segment.bytes as usize].to_vec()
}

#[tokio::test]
async fn a_range_goes_out_as_the_chunks_that_hold_it() {
    let bucket = Bucket::new().await;
    let chunk = CHUNK_BYTES as u64;
    for length in [
        1,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        3 * CHUNK_BYTES,
    ] {
        let data = content(length);
        let (id, key) = bucket.write_blob(&data).await;
        let end = length as u64;
        let ranges = [
            0..end,
            0..1,
            end - 1..end,
            end / 3..end,
            end / 2..end / 2 + 1,
        ];
        for range in ranges {
            let found = bucket.blobs.sealed_segment(id, &key, end, range.clone());
            let segment = found.await.unwrap();
            assert_eq!(segment.first_chunk, range.start / chunk);
            let reaches_last = (range.end - 1) / chunk == end / chunk || range.end == end;
            assert_eq!(segment.is_last, reaches_last, "{range:?} of {length}");
            let file = bucket.blobs.open_segment(&segment).await.unwrap();
            let place = file.sealed();
            file.fetch(place.clone()).unwrap();
            assert!(file.is_cached(place.clone()), "it was just read");
            let mut sealed = vec![0; (place.end - place.start) as usize];
            file.file().read_exact_at(&mut sealed, place.start).unwrap();
            let opened = open_segment(&bucket, (&segment, &sealed), &key, end);
            assert_eq!(opened, data[range.start as usize..range.end as usize]);
        }
        let beyond = bucket.blobs.sealed_segment(id, &key, end, 0..end + 1).await;
        assert!(matches!(beyond, Err(StoreError::OutOfRange)));
        let wrong = SecretKey::generate();
        let wrong = bucket.blobs.sealed_segment(id, &wrong, end, 0..end).await;
        assert!(matches!(wrong, Err(StoreError::Damaged { .. })));
    }
}

/// Hands a message to a writer in pieces of this length. What the chunks held.
async fn arrive(
    writer: &mut SealedBlobWriter,
    message: &[u8],
    piece: usize,
) -> Result<Vec<u8>, StoreError> {
    let (mut at, mut opened) = (0, Vec::new());
    while at < message.len() {
        let room = writer.room();
        let count = room.len().min(piece).min(message.len() - at);
        if count == 0 {
            break;
        }
        room[..count].copy_from_slice(&message[at..at + count]);
        let mut each = |bytes: &[u8]| opened.extend_from_slice(bytes);
        writer.received(count, &mut each).await?;
        at += count;
    }
    Ok(opened)
}

fn begin_opened(
    bucket: &Bucket,
    plaintext_bytes: usize,
    opening: Opening,
) -> (SealedBlobWriter, SecretKey) {
    let key = SecretKey::generate();
    let length = plaintext_bytes as u64;
    let begun = bucket.blobs.receive(key.clone(), length, opening);
    (begun.unwrap(), key)
}

fn begin(bucket: &Bucket, plaintext_bytes: usize) -> (SealedBlobWriter, SecretKey) {
    begin_opened(bucket, plaintext_bytes, Opening::AsItComes)
}

fn begin_later(bucket: &Bucket, plaintext_bytes: usize) -> (SealedBlobWriter, SecretKey) {
    begin_opened(bucket, plaintext_bytes, Opening::Later)
}

#[tokio::test]
async fn what_arrives_sealed_is_a_blob_like_any_other() {
    let bucket = Bucket::new().await;
    let lengths = [
        0,
        1,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        SOME_CHUNKS,
        SOME_CHUNKS + 4711,
    ];
    for length in lengths {
        for piece in [1_448, 16_400, 65_536, usize::MAX] {
            let data = content(length);
            let (mut writer, key) = begin(&bucket, length);
            let message = seal(&key, writer.context(), &data);
            assert_eq!(writer.sealed_bytes(), message.len() as u64);
            assert_eq!(arrive(&mut writer, &message, piece).await.unwrap(), data);
            assert!(writer.missing_bytes() == 0 && writer.room().is_empty());
            let blob = writer.finish().await.unwrap();
            let id = blob.id();
            blob.keep();
            assert_eq!(fs::read(bucket.blobs.path(id)).unwrap(), message);
            let (read, ended) = bucket.read_blob(id, &key, length as u64).await;
            ended.unwrap();
            assert!(read == data, "{length} bytes in pieces of {piece}");
        }
    }
}

#[tokio::test]
async fn what_arrives_sealed_and_is_opened_later_is_as_it_came() {
    let bucket = Bucket::new().await;
    for length in [0, CHUNK_BYTES, SOME_CHUNKS + 4711] {
        for piece in [1_448, 65_536, usize::MAX] {
            let data = content(length);
            let (mut writer, key) = begin_later(&bucket, length);
            let message = seal(&key, writer.context(), &data);
            let opened = arrive(&mut writer, &message, piece).await.unwrap();
            assert!(opened.is_empty() && writer.room().is_empty());
            let blob = writer.finish().await.unwrap();
            let id = blob.id();
            blob.keep();
            assert!(
                fs::read(bucket.blobs.path(id)).unwrap() == message,
                "{length}"
            );
        }
    }
}

#[tokio::test]
async fn what_does_not_open_is_refused_and_never_written() {
    let bucket = Bucket::new().await;
    let data = content(SOME_CHUNKS);
    let last = sealed_bytes(SOME_CHUNKS as u64).unwrap() as usize - 1;
    for place in [0, 30, HEADER_BYTES, HEADER_BYTES + SEALED_CHUNK_BYTES, last] {
        let (mut writer, key) = begin(&bucket, data.len());
        let mut message = seal(&key, writer.context(), &data);
        message[place] ^= 1;
        let path = bucket.blobs.path(writer.id());
        let refused = arrive(&mut writer, &message, 50_000).await;
        assert!(
            matches!(refused, Err(StoreError::NotSealed)),
            "byte {place}"
        );
        drop(writer);
        wait_until_gone(&path).await;
    }
    // As plain bytes, and sealed for another blob.
    let (mut writer, key) = begin(&bucket, data.len());
    let path = bucket.blobs.path(writer.id());
    let refused = arrive(&mut writer, &data, 50_000).await;
    assert!(matches!(refused, Err(StoreError::NotSealed)));
    assert!(!path.exists(), "not a byte of it came to the disk");
    let other = begin(&bucket, data.len()).0;
    let message = seal(&key, other.context(), &data);
    let (mut writer, _) = begin(&bucket, data.len());
    let refused = arrive(&mut writer, &message, 50_000).await;
    assert!(matches!(refused, Err(StoreError::NotSealed)));
}

#[tokio::test]
async fn what_is_not_whole_is_refused_and_leaves_no_file() {
    let bucket = Bucket::new().await;
    let data = content(SOME_CHUNKS);
    let (mut writer, key) = begin(&bucket, data.len());
    let message = seal(&key, writer.context(), &data);
    let path = bucket.blobs.path(writer.id());
    let cut_off = &message[..message.len() - 1];
    arrive(&mut writer, cut_off, 60_000).await.unwrap();
    assert!(path.exists());
    let unfinished = writer.finish().await;
    assert!(matches!(unfinished, Err(StoreError::NotSealed)));
    wait_until_gone(&path).await;
    let (writer, _) = begin(&bucket, 1);
    assert!(writer.finish().await.is_err(), "nothing came at all");
}

/// Files are removed in the background.
async fn wait_until_gone(path: &std::path::Path) {
    for _ in 0..500 {
        if !path.exists() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the file of a blob that was refused is still there");
}

/// As much as is missing, from a socket: moved where that is possible, else read. How many bytes
/// were moved.
async fn come_from(socket: &TcpStream, writer: &mut SealedBlobWriter) -> Result<u64, StoreError> {
    let shared = Arc::new(OwnedFd::from(socket.try_clone().unwrap()));
    let mut moved = 0;
    while writer.missing_bytes() > 0 {
        if writer.may_be_moved() {
            assert_eq!(socket.peek(&mut [0]).unwrap(), 1);
            moved += writer.move_from(&shared).await? as u64;
        } else {
            let count = { socket }.read(writer.room()).unwrap();
            writer.received(count, &mut |_| ()).await?;
        }
    }
    Ok(moved)
}

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

#[tokio::test]
async fn what_is_moved_from_a_socket_is_as_it_came_and_nothing_behind_it_is_taken() {
    let bucket = Bucket::new().await;
    let first = WRITE_BYTES - HEADER_BYTES - 16;
    let lengths = [
        1,
        CHUNK_BYTES,
        first - 1,
        first,
        first + 1,
        SOME_CHUNKS - 1,
        SOME_CHUNKS + 1,
        (5 << 20) + 4711,
    ];
    for length in lengths {
        for piece in [1_448, 100_003, usize::MAX] {
            let data = content(length);
            let (mut writer, key) = begin_later(&bucket, length);
            let message = seal(&key, writer.context(), &data);
            let (mut client, mut socket) = connected();
            let sent = [&message[..], b"behind"].concat();
            let sends = std::thread::spawn(move || {
                sent.chunks(piece.min(sent.len()))
                    .for_each(|piece| client.write_all(piece).unwrap());
            });
            let moved = come_from(&socket, &mut writer).await.unwrap();
            let most = (message.len() as u64).saturating_sub(WRITE_BYTES as u64);
            assert_eq!(moved, most, "{length} bytes in pieces of {piece}");
            assert!(!writer.may_be_moved() && writer.room().is_empty());
            sends.join().unwrap();
            let mut behind = Vec::new();
            socket.read_to_end(&mut behind).unwrap();
            assert_eq!(behind, b"behind");
            let blob = writer.finish().await.unwrap();
            let id = blob.id();
            blob.keep();
            let written = fs::read(bucket.blobs.path(id)).unwrap();
            assert!(written == message, "{length} bytes in pieces of {piece}");
        }
    }
}

#[tokio::test]
async fn what_can_not_be_moved_is_read() {
    let bucket = Bucket::new().await;
    let data = content(SOME_CHUNKS);
    let (mut writer, key) = begin_later(&bucket, data.len());
    let message = seal(&key, writer.context(), &data);
    let mut at = 0;
    while !writer.may_be_moved() {
        let room = writer.room();
        let count = room.len();
        room.copy_from_slice(&message[at..at + count]);
        writer.received(count, &mut |_| ()).await.unwrap();
        at += count;
    }
    // A folder is not what bytes come from.
    let folder = fs::File::open(std::env::temp_dir()).unwrap();
    let moved = writer.move_from(&Arc::new(OwnedFd::from(folder))).await;
    assert!(moved.unwrap() == 0 && !writer.may_be_moved());
    arrive(&mut writer, &message[at..], 65_536).await.unwrap();
    let blob = writer.finish().await.unwrap();
    let id = blob.id();
    blob.keep();
    assert!(fs::read(bucket.blobs.path(id)).unwrap() == message);
}

#[tokio::test]
async fn what_is_opened_as_it_comes_is_never_moved() {
    let bucket = Bucket::new().await;
    let data = content(SOME_CHUNKS);
    let (mut writer, key) = begin(&bucket, data.len());
    let message = seal(&key, writer.context(), &data);
    for piece in message.chunks(16_400) {
        assert!(!writer.may_be_moved());
        arrive(&mut writer, piece, usize::MAX).await.unwrap();
    }
    assert!(!writer.may_be_moved());
}
