//! What a deletion leaves in database and log: nothing, soon.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use coffer_store::limits::{TIDY_AFTER, TIDY_AGAIN};
use coffer_store::record::{NewObject, Precondition, WRAPPED_KEY_BYTES, WrappedKey};
use futures::future::join_all;

use crate::fixture::{Bucket, blob_ref, gone, in_blob, inline};

/// The plaintext of every page in database and log, as the catalog's key opens it.
fn pages(bucket: &Bucket) -> Vec<Vec<u8>> {
    let file = fs::read(bucket.dir.path().join("catalog.db")).unwrap();
    let log = fs::read(bucket.dir.path().join("catalog.db-wal")).unwrap_or_default();
    let whole = file.chunks_exact(4096);
    let frames = log.get(32..).unwrap_or_default().chunks_exact(24 + 4096);
    whole
        .chain(frames.map(|frame| &frame[24..]))
        .map(|page| decrypted(bucket.key.expose(), page))
        .collect()
}

/// AES-256-CBC of a page, without its code; the first 16 bytes of page 1 come out as noise.
fn decrypted(key: &[u8; 32], page: &[u8]) -> Vec<u8> {
    use aws_lc_rs::cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
    let key = UnboundCipherKey::new(&AES_256, key).unwrap();
    let iv: [u8; 16] = page[4048..4064].try_into().unwrap();
    let mut out = page[..4048].to_vec();
    // Without padding: a block cipher in CBC mode, block by block, is ECB and XOR.
    let ecb = DecryptingKey::ecb(key).unwrap();
    let sealed = out.clone();
    ecb.decrypt(&mut out, DecryptionContext::None).unwrap();
    let before = iv.iter().chain(&sealed[..4032]);
    out.iter_mut()
        .zip(before)
        .for_each(|(byte, mask)| *byte ^= mask);
    out
}

/// Stands before the number of an object in its name, its bytes and its wrapped key.
const MARK: &[u8] = b"telling:";

/// The numbers of objects of which the pages tell.
fn numbers_in(pages: &[Vec<u8>]) -> BTreeSet<usize> {
    let told = |page: &Vec<u8>| -> Vec<usize> {
        let marked = page
            .windows(MARK.len() + 4)
            .filter(|at| at.starts_with(MARK));
        let digits = marked.map(|at| String::from_utf8_lossy(&at[MARK.len()..]).parse());
        digits.filter_map(Result::ok).collect()
    };
    pages.iter().flat_map(told).collect()
}

/// Whether a page has bytes between its list of cells and the first cell (SQLite, "Database File
/// Format", section 1.6).
fn is_gap_used(page: &[u8]) -> bool {
    let word = |at: usize| usize::from(page[at]) << 8 | usize::from(page[at + 1]);
    let list = match page[0] {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return false,
    };
    page[list + 2 * word(3)..word(5)]
        .iter()
        .any(|byte| *byte != 0)
}

const OBJECTS: usize = 240;

/// Those that are not deleted.
fn kept() -> BTreeSet<usize> {
    (0..OBJECTS).step_by(3).collect()
}

/// Of five objects one is in the catalog itself. `width` makes names longer.
fn object(number: usize, width: usize) -> NewObject {
    let mark = format!("telling:{number:04}");
    let name = format!("{mark}{:width$}", "");
    if number.is_multiple_of(5) {
        return inline(&name, mark.repeat(1 + number % 40).as_bytes());
    }
    let mut blob = blob_ref(9);
    let mut wrapped_key = [0xEE; WRAPPED_KEY_BYTES];
    wrapped_key[..mark.len()].copy_from_slice(mark.as_bytes());
    blob.wrapped_key = WrappedKey::Once(wrapped_key);
    in_blob(&name, blob)
}

/// Stores objects and deletes two of three, each in an order of its own: `strides` have no divisor
/// in common with [`OBJECTS`].
async fn stored_and_deleted(width: usize, strides: [usize; 2]) -> Bucket {
    let bucket = Bucket::in_memory().await;
    let orders = strides.map(|stride| (0..OBJECTS).map(move |at| at * stride % OBJECTS));
    let [puts, deletions] = orders;
    let puts = puts.map(|number| {
        let object = object(number, width);
        bucket.catalog.put(object, Precondition::None)
    });
    for done in join_all(puts).await {
        done.unwrap();
    }
    let doomed: Vec<_> = deletions.filter(|number| number % 3 != 0).collect();
    for some in doomed.chunks(20) {
        let doomed = some.iter().map(|number| object(*number, width).name);
        let doomed = doomed.map(|name| gone(&name, Precondition::Present));
        bucket.catalog.delete_many(doomed.collect()).await.unwrap();
    }
    bucket.catalog.check_structure().await.unwrap();
    bucket.catalog.close().await;
    bucket
}

#[tokio::test]
async fn a_deleted_object_s_key_and_name_are_gone_from_database_and_log_soon() {
    let bucket = Bucket::in_memory().await;
    for number in 0..OBJECTS {
        let object = object(number, 0);
        bucket
            .catalog
            .put(object, Precondition::None)
            .await
            .unwrap();
    }
    let all = (0..OBJECTS).collect();
    assert_eq!(numbers_in(&pages(&bucket)), all, "the test sees them");
    for number in (0..OBJECTS).filter(|number| number % 3 != 0) {
        let doomed = gone(&object(number, 0).name, Precondition::Present);
        bucket.catalog.delete(doomed).await.unwrap();
    }
    assert_eq!(numbers_in(&pages(&bucket)), all, "the log shows them still");
    let begun = Instant::now();
    while numbers_in(&pages(&bucket)) != kept() {
        // Readers, idle ones too, don't keep it from happening.
        bucket.catalog.totals().await.unwrap();
        let took = begun.elapsed();
        assert!(took < TIDY_AFTER + TIDY_AGAIN * 5, "still there: {took:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// SQLite moves rows from page to page, and leaves copies behind where a page then ends.
#[tokio::test]
async fn nothing_of_deleted_objects_is_left_however_their_rows_have_moved() {
    for width in 0..20 {
        for strides in [[1, 1], [1, 7], [7, 1], [101, 37], [239, 1], [101, 239]] {
            let bucket = stored_and_deleted(width, strides).await;
            let pages = pages(&bucket);
            let layout = format!("width {width}, strides {strides:?}");
            assert_eq!(numbers_in(&pages), kept(), "{layout}");
            assert!(!pages[1..].iter().any(|page| is_gap_used(page)), "{layout}");
        }
    }
}
