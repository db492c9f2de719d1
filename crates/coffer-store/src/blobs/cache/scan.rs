//! Which files a cache finds in its folder when it begins. None of them is read.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use coffer_seal::BucketId;

use crate::blobs::cache::index::Key;
use crate::blobs::path::{BLOBS_DIR, id_of};

/// Blobs in the folders of these buckets, with their lengths, those that were used last first. What
/// can't be looked at is left out: it is found when it is asked for.
pub(super) fn files(buckets: &Path) -> Vec<(Key, u64)> {
    let mut found = Vec::new();
    for (name, bucket) in entries(buckets) {
        let Some(id) = BucketId::from_hex(&name) else {
            continue;
        };
        for (first, folder) in entries(&bucket.join(BLOBS_DIR)) {
            for (rest, path) in entries(&folder) {
                let Some(blob) = id_of(&first, &rest) else {
                    continue;
                };
                let Ok(file) = fs::metadata(&path) else {
                    continue;
                };
                found.push(((id, blob), file.len(), used(&file)));
            }
        }
    }
    found.sort_unstable_by_key(|(_, _, used)| std::cmp::Reverse(*used));
    let files = found.into_iter().map(|(key, bytes, _)| (key, bytes));
    files.collect()
}

/// When it was used last, as far as the file system tells.
fn used(file: &fs::Metadata) -> Option<SystemTime> {
    file.accessed().ok().max(file.modified().ok())
}

fn entries(folder: &Path) -> impl Iterator<Item = (String, std::path::PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
}
