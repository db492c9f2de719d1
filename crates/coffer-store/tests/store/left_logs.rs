//! Logs that a kill or a power cut left, and that were damaged: what was acknowledged is there, or
//! it is told that it is not, and no sweep takes its blobs.

use std::fs;
use std::path::Path;

use coffer_seal::{SecretKey, random_bytes};
use coffer_store::limits::PAGE_BYTES;
use coffer_store::record::Precondition;
use coffer_store::version::Which;
use coffer_store::{BlobStore, Catalog, StoreError};

use crate::fixture::{BUCKET_ID, Bucket, blob_ref_to, in_blob, name, noise};

const OBJECTS: usize = 12;
const HEADER_BYTES: usize = 32;
const FRAME_BYTES: usize = 24 + PAGE_BYTES as usize;

/// A bucket with objects in blobs, as a kill leaves it.
struct Left {
    bucket: Bucket,
    database: Vec<u8>,
    log: Vec<u8>,
    newest: Vec<u8>,
    /// Where the frames of the last commit begin.
    last: usize,
}

impl Left {
    async fn new() -> Self {
        let bucket = Bucket::in_memory().await;
        let mut last = 0;
        for number in 0..OBJECTS {
            last =
                fs::metadata(bucket.dir.path().join("catalog.db-wal")).map_or(0, |log| log.len());
            let (id, _) = bucket.write_blob(&noise(200)).await;
            let object = in_blob(&object(number), blob_ref_to(id, 200));
            let put = bucket.catalog.put(object, Precondition::None).await;
            put.unwrap();
        }
        let file = |file: &str| fs::read(bucket.dir.path().join(file)).unwrap();
        Self {
            database: file("catalog.db"),
            log: file("catalog.db-wal"),
            newest: file("catalog.newest"),
            last: last as usize,
            bucket,
        }
    }

    /// What a start makes of this log: how many objects there are, and whether it tells that there
    /// were more; `None` when it refuses. Blobs of acknowledged objects stay in any case.
    async fn start(&self, database: &[u8], log: &[u8], with_note: bool) -> Option<(usize, bool)> {
        let copy = tempfile::tempdir().unwrap();
        copy_blobs(self.bucket.dir.path(), copy.path());
        fs::write(copy.path().join("catalog.db"), database).unwrap();
        fs::write(copy.path().join("catalog.db-wal"), log).unwrap();
        if with_note {
            fs::write(copy.path().join("catalog.newest"), &self.newest).unwrap();
        }
        let found = look(copy.path(), &self.bucket.key).await;
        if found.is_none() {
            assert!(fs::read(copy.path().join("catalog.db")).unwrap() == database);
            assert!(fs::read(copy.path().join("catalog.db-wal")).unwrap() == log);
        }
        found
    }
}

async fn look(dir: &Path, key: &SecretKey) -> Option<(usize, bool)> {
    let catalog = match Catalog::open(dir, key).await {
        Err(StoreError::Damaged { .. }) => return None,
        opened => opened.unwrap(),
    };
    let blobs = BlobStore::new(dir, BUCKET_ID);
    let swept = blobs.sweep(&catalog).await.unwrap();
    let mut there = 0;
    for number in 0..OBJECTS {
        there += usize::from(
            catalog
                .head(&name(&object(number)), Which::Current)
                .await
                .unwrap()
                .is_ok(),
        );
    }
    let is_in_doubt = catalog.is_in_doubt();
    let missing = (OBJECTS - there) as u64;
    if is_in_doubt {
        assert_eq!((swept.files, swept.kept_files), (0, missing))
    } else {
        assert_eq!((swept.files, swept.kept_files), (missing, 0))
    }
    catalog.check_structure().await.unwrap();
    catalog.close().await;
    Some((there, is_in_doubt))
}

fn object(number: usize) -> String {
    format!("{number:02}")
}

fn copy_blobs(from: &Path, to: &Path) {
    for folder in fs::read_dir(from.join("blobs")).unwrap() {
        let folder = folder.unwrap();
        let target = to.join("blobs").join(folder.file_name());
        fs::create_dir_all(&target).unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), target.join(file.file_name())).unwrap();
        }
    }
}

/// A bit of each byte of the header, and of bytes all over the first, a middle and the last frames.
fn places(log: &[u8]) -> Vec<usize> {
    let mut places: Vec<_> = (0..HEADER_BYTES).collect();
    let frames = (log.len() - HEADER_BYTES) / FRAME_BYTES;
    for frame in [0, 1, frames / 2, frames - 2, frames - 1] {
        let within = [
            0,
            3,
            4,
            7,
            8,
            12,
            16,
            20,
            23,
            24,
            300,
            2_000,
            FRAME_BYTES - 1,
        ];
        places.extend(within.map(|at| HEADER_BYTES + frame * FRAME_BYTES + at));
    }
    places.extend((0..20).map(|_| usize::from_le_bytes(random_bytes()) % log.len()));
    places
}

#[tokio::test]
async fn a_flipped_bit_in_a_left_log_loses_nothing_in_silence() {
    let left = Left::new().await;
    assert_eq!(
        left.start(&left.database, &left.log, true).await,
        Some((OBJECTS, false))
    );
    let mut refused = 0;
    for at in places(&left.log) {
        let mut altered = left.log.clone();
        altered[at] ^= 1 << (at % 8);
        let found = left.start(&left.database, &altered, true).await;
        match found {
            None => refused += 1,
            Some((there, is_in_doubt)) => {
                assert!(
                    there == OBJECTS || is_in_doubt,
                    "{at}: {there} objects, not told"
                );
                assert!(
                    there >= OBJECTS - 1,
                    "{at}: {there} objects, and it was opened"
                );
            }
        }
        // When the power went as well, the note may be lost: the last commit looks like one that
        // was under way.
        match left.start(&left.database, &altered, false).await {
            None => {}
            Some((there, _)) => assert!(there >= OBJECTS - 1, "{at}: {there} objects, not told"),
        }
    }
    assert!(refused > 20, "{refused}");
}

#[tokio::test]
async fn what_a_power_cut_leaves_of_a_commit_under_way_is_no_damage() {
    let left = Left::new().await;
    let frames = (left.log.len() - left.last).div_ceil(FRAME_BYTES);
    assert!(frames > 2);
    for seed in 0..40u64 {
        let mut torn = left.log.clone();
        // Each sector is written, or as it was before, or garbled; the file may be shorter.
        for (number, sector) in torn[left.last..].chunks_mut(512).enumerate() {
            match random_bytes::<1>()[0] % 3 {
                0 if seed % 2 == 0 || number % 5 > 0 => {}
                1 => sector.fill(0),
                _ => sector.copy_from_slice(&noise(sector.len() + seed as usize)[..sector.len()]),
            }
        }
        torn[left.last + 20] ^= 1;
        let kept = torn.len() - (seed as usize % 4) * 3_000;
        torn.truncate(kept);
        let found = left.start(&left.database, &torn, false).await;
        assert_eq!(found, Some((OBJECTS - 1, false)), "seed {seed}");
    }
}

/// The log begins anew when all of it has been copied: a power cut may tear its header then.
#[tokio::test]
async fn a_header_torn_over_a_log_that_was_copied_is_no_damage() {
    let left = Left::new().await;
    left.bucket.catalog.close().await;
    let copied = fs::read(left.bucket.dir.path().join("catalog.db")).unwrap();
    let mut torn = left.log.clone();
    torn[..512].copy_from_slice(&noise(512));
    assert_eq!(
        left.start(&copied, &torn, true).await,
        Some((OBJECTS, false))
    );
    // Nothing of it had been copied: then it is damage.
    assert_eq!(left.start(&left.database, &torn, true).await, None);
    // All of it had been copied, and the rest of the log would hide the newer pages.
    let mut broken = left.log;
    broken[left.last + 2_000] ^= 1;
    let left = Left {
        log: broken,
        ..left
    };
    assert_eq!(left.start(&copied, &left.log, false).await, None);
}

/// A checkpoint was under way when the power went: a page that it had begun to write is torn, and
/// the log has it whole.
#[tokio::test]
async fn a_page_that_the_log_makes_whole_is_no_damage() {
    let left = Left::new().await;
    left.bucket.catalog.close().await;
    let mut torn = fs::read(left.bucket.dir.path().join("catalog.db")).unwrap();
    let page = u32::from_be_bytes(left.log[left.last..left.last + 4].try_into().unwrap());
    let begin = (page as usize - 1) * PAGE_BYTES as usize;
    torn[begin + 512..begin + 1_024].copy_from_slice(&noise(512));
    let dir = tempfile::tempdir().unwrap();
    copy_blobs(left.bucket.dir.path(), dir.path());
    fs::write(dir.path().join("catalog.db"), &torn).unwrap();
    fs::write(dir.path().join("catalog.db-wal"), &left.log).unwrap();
    let catalog = Catalog::open(dir.path(), &left.bucket.key).await.unwrap();
    catalog.check_integrity().await.unwrap();
    assert!(!catalog.is_in_doubt());
    catalog.close().await;
}
