//! What a cache held before its log is taken anew: it may be all that is left, so it is moved aside
//! until a state of the log is whole and opened, and put back where none is reached.
//!
//! ```text
//! moving     what is being moved, away from its place or back to it
//! before     all of it: what lies in its place by now is of the state that is being taken
//! ended      what is not needed any more, and is being removed
//! ```
//!
//! Each step ends with the rename of that folder, so what a crash leaves tells what is to be done.
//! Blobs stay where they are: their names are random, and they serve either state.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use coffer_durable::sync_folder;

use super::cache_files::{KEPT, empty_buckets, entries_of, remove};
use crate::backup::BACKUP_FILE;
use crate::data_folder::{ENGINE_FILE, Folder, failed};
use crate::error::Result;

/// The folder in a cache that has what was there before.
const BEFORE: &str = "before";

const MOVING: &str = "before.moving";

const ENDED: &str = "before.ended";

/// What a bucket's folder keeps.
const BLOBS: &str = "blobs";

const BUCKETS: &str = "buckets";

/// Moves aside what a cache holds of its log.
pub(super) fn set_aside(data: &Path) -> Result<()> {
    let moving = data.join(MOVING);
    remove_if_there(&data.join(ENDED))?;
    make(&moving)?;
    move_state(data, &moving)?;
    rename(&moving, &data.join(BEFORE))?;
    sync(data)
}

/// Puts back what was moved aside in the cache of a gateway, in place of what was taken of a state
/// that was not reached. Whether a state is there again. Blocks.
///
/// # Errors
/// Of the folder, and then it is gone on with at the next call; where it is in use.
pub fn put_back_cache(data: &Path) -> Result<bool> {
    let is_there = |name: &str| data.join(name).exists();
    if !is_there(ENGINE_FILE) || !(is_there(BEFORE) || is_there(MOVING)) {
        return Ok(false);
    }
    let _lock = Folder::hold(data)?;
    put_back(data)?;
    Ok(is_there("keystore"))
}

/// The same, in a folder that is held.
pub(super) fn put_back(data: &Path) -> Result<()> {
    let (before, moving) = (data.join(BEFORE), data.join(MOVING));
    if before.exists() {
        for entry in entries_of(data)? {
            if entry.file_name() == BUCKETS {
                empty_buckets(&entry.path())?;
            } else if !stays(&entry.file_name()) {
                remove(&entry.path())?;
            }
        }
        sync(data)?;
        rename(&before, &moving)?;
        sync(data)?;
    }
    if moving.exists() {
        move_state(&moving, data)?;
        remove(&moving)?;
        sync(data)?;
    }
    Ok(())
}

/// A state of the log is whole, and was opened: what was before is not needed any more. Blocks.
pub(crate) fn remove_before(data: &Path) -> Result<()> {
    let (before, ended) = (data.join(BEFORE), data.join(ENDED));
    if !before.exists() {
        return Ok(());
    }
    Folder::assure_own(data)?;
    rename(&before, &ended)?;
    // From here on a start goes by the new state.
    sync(data)?;
    remove(&ended)
}

/// Whether it is no part of a state.
fn stays(name: &OsStr) -> bool {
    let is_kept = KEPT.iter().any(|kept| name == *kept) && name != BACKUP_FILE;
    is_kept || [BEFORE, MOVING, ENDED].iter().any(|own| name == *own)
}

/// Moves all that is of a state, as far as it was not moved yet.
fn move_state(from: &Path, to: &Path) -> Result<()> {
    let (buckets, to_buckets) = (from.join(BUCKETS), to.join(BUCKETS));
    if buckets.exists() {
        make(&to_buckets)?;
        for bucket in entries_of(&buckets)? {
            let target = to_buckets.join(bucket.file_name());
            make(&target)?;
            move_entries(&bucket.path(), &target, |name| name == BLOBS)?;
        }
        sync(&to_buckets)?;
    }
    move_entries(from, to, |name| name == BUCKETS || stays(name))
}

fn move_entries(from: &Path, to: &Path, stays: impl Fn(&OsStr) -> bool) -> Result<()> {
    for entry in entries_of(from)? {
        if !stays(&entry.file_name()) {
            rename(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    // What is moved has its new name before it loses the old one.
    sync(to)?;
    sync(from)
}

fn make(folder: &Path) -> Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(failed("make", folder)),
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(failed("move", from))
}

fn sync(folder: &Path) -> Result<()> {
    sync_folder(folder).map_err(failed("sync", folder))
}

fn remove_if_there(path: &Path) -> Result<()> {
    if path.exists() { remove(path) } else { Ok(()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use super::*;

    const OF_STATE: [&str; 5] = [
        "keystore",
        "system.db",
        "audit/1",
        "buckets/00/catalog.db",
        BACKUP_FILE,
    ];

    const OF_NEITHER: [&str; 4] = [ENGINE_FILE, "credentials", "tls/ca", "buckets/00/blobs/ab"];

    fn put(data: &Path, names: &[&str], text: &str) {
        for name in names {
            let path = data.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(&path));
            } else {
                let text = fs::read_to_string(&path).unwrap();
                found.insert(path, text);
            }
        }
        found
    }

    fn cache() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), &OF_STATE, "old");
        put(folder.path(), &OF_NEITHER, "kept");
        folder
    }

    /// What is begun of another state, which has files that the one before did not have.
    fn take_new(data: &Path) {
        put(data, &["keystore", "anchor", BACKUP_FILE], "new");
        put(
            data,
            &["buckets/00/catalog.db", "standby/building/00"],
            "new",
        );
    }

    #[test]
    fn what_was_before_is_put_back_whole_wherever_that_was_interrupted() {
        let folder = cache();
        let data = folder.path();
        let all = files(data);
        assert!(!put_back_cache(data).unwrap(), "nothing is aside");
        set_aside(data).unwrap();
        assert!(!data.join("keystore").exists() && !data.join(BACKUP_FILE).exists());
        assert!(data.join("buckets/00/blobs/ab").exists() && data.join("credentials").exists());
        take_new(data);
        let lock = data.join("lock");
        let put_back_all = || {
            assert!(put_back_cache(data).unwrap());
            let _ = fs::remove_file(&lock);
            assert_eq!(files(data), all);
            assert!(!data.join(BEFORE).exists() && !data.join(MOVING).exists());
        };
        put_back_all();
        // It was ended while it moved: some is here, some there.
        set_aside(data).unwrap();
        fs::rename(data.join(BEFORE), data.join(MOVING)).unwrap();
        fs::rename(data.join(MOVING).join("keystore"), data.join("keystore")).unwrap();
        put_back_all();
        // While it removed what was taken of the other state.
        set_aside(data).unwrap();
        take_new(data);
        fs::remove_file(data.join("keystore")).unwrap();
        put_back_all();
    }

    #[test]
    fn what_was_before_goes_once_a_state_is_whole() {
        let folder = cache();
        let data = folder.path();
        set_aside(data).unwrap();
        take_new(data);
        let all = |text| files(data).values().filter(|found| *found == text).count();
        assert_eq!((all("old"), all("new"), all("kept")), (5, 5, 4));
        remove_before(data).unwrap();
        assert_eq!((all("old"), all("new"), all("kept")), (0, 5, 4));
        assert!(!put_back_cache(data).unwrap(), "nothing is aside");
        assert_eq!(all("new"), 5);
        // The removal was interrupted: a part of a state is never put back.
        put(&data.join(ENDED), &["keystore"], "old");
        put_back(data).unwrap();
        set_aside(data).unwrap();
        assert_eq!((all("old"), all("new"), all("kept")), (0, 5, 4));
    }
}
