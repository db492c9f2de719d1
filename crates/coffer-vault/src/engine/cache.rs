//! The folder of a gateway: a cache, of which nothing is believed at a start but blobs.
//!
//! A file `engine.json` says that it is one, and of which log. Without it a folder that holds
//! anything is refused, so that no data folder is ever taken for a cache.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use coffer_durable::rfc3339;
use coffer_replica::Place;
use coffer_seal::KeystoreId;
use serde::{Deserialize, Serialize};

use crate::backup::{BACKUP_FILE, BackupRecord};
use crate::data_folder::{Folder, failed, write_private};
use crate::error::{Result, VaultError};
use crate::replica::target;
use crate::vault::VaultOptions;

/// Says that a folder is a cache.
pub(crate) const ENGINE_FILE: &str = "engine.json";

/// What stays of a cache.
const KEPT: [&str; 5] = [ENGINE_FILE, "tls", "lock", "lost+found", "credentials"];

/// What may be in a folder that becomes one.
const ALLOWED: [&str; 3] = ["tls", "lock", "lost+found"];

#[derive(Serialize, Deserialize)]
struct Mark {
    url: String,
}

/// Makes a folder the cache of a gateway, or empties one that is. Where there is a log, it is to be
/// restored into, and blobs of the same log stay: their names are random, and what is in them is
/// held against the catalog's keys at each read. Where there is none, one is to be begun there.
/// Blocks.
///
/// # Errors
/// Of a folder that is something else.
pub fn prepare_cache(data: &Path, from: &Place, has_log: bool) -> Result<()> {
    let _lock = Folder::hold(data)?;
    let path = data.join(ENGINE_FILE);
    let is_of_it = match fs::read(&path) {
        Ok(text) => {
            let mark: Option<Mark> = serde_json::from_slice(&text).ok();
            mark.is_some_and(|mark| mark.url == from.public_url())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            refuse_others(data)?;
            false
        }
        Err(error) => return Err(failed("read", &path)(error)),
    };
    let mark = Mark {
        url: from.public_url(),
    };
    let text = serde_json::to_string(&mark).map_err(|_| VaultError::Damaged)?;
    write_private(&path, &format!("{text}\n"))?;
    let keeps_blobs = has_log && is_of_it;
    if has_log {
        // Until it is a data folder again, it is a restore that is not complete.
        BackupRecord::begun(KeystoreId([0; 16]), rfc3339(0)).write(data)?;
    }
    for entry in entries_of(data)? {
        let name = entry.file_name();
        let is_kept = KEPT.iter().any(|kept| name == *kept);
        // What a first start made goes with the log that it was of.
        let is_kept = is_kept && (keeps_blobs || name != "credentials");
        if is_kept || has_log && name == BACKUP_FILE {
            continue;
        }
        if keeps_blobs && name == "buckets" {
            empty_buckets(&entry.path())?;
        } else {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Refuses to serve a cache by itself: what is put there would be lost with the next start as a
/// gateway, and the log would have two writers.
pub(crate) fn refuse_cache(options: &VaultOptions) -> Result<()> {
    let is_of_gateway = options.engine.is_some() || options.standby.is_some();
    if is_of_gateway || !options.data.join(ENGINE_FILE).exists() {
        return Ok(());
    }
    let problem = "it is the cache of a gateway: start it with --engine, or take another folder";
    Err(target(&options.data, problem))
}

fn refuse_others(data: &Path) -> Result<()> {
    for entry in entries_of(data)? {
        let name = entry.file_name();
        if !ALLOWED.iter().any(|allowed| name == *allowed) {
            let problem = "it holds something, and is no cache of an engine: take an empty folder";
            return Err(target(data, problem));
        }
    }
    Ok(())
}

/// Leaves only blobs.
fn empty_buckets(buckets: &Path) -> Result<()> {
    for bucket in entries_of(buckets)? {
        for entry in entries_of(&bucket.path())? {
            if entry.file_name() != "blobs" {
                remove(&entry.path())?;
            }
        }
    }
    Ok(())
}

fn entries_of(folder: &Path) -> Result<Vec<fs::DirEntry>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(failed("read", folder))
}

fn remove(path: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let removed = if is_folder {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.map_err(failed("remove", path))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        Place::parse(&format!("s3://{name}/log")).unwrap()
    }

    #[test]
    fn a_folder_that_holds_data_is_never_taken_for_a_cache() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("keystore"), "k").unwrap();
        assert!(prepare_cache(folder.path(), &place("a"), true).is_err());
        assert!(folder.path().join("keystore").exists());
        assert!(!folder.path().join(ENGINE_FILE).exists());
    }

    #[test]
    fn of_a_cache_only_blobs_of_the_same_log_stay() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        prepare_cache(data, &place("a"), true).unwrap();
        let bucket = data.join("buckets/00");
        let put = || {
            fs::create_dir_all(bucket.join("blobs/ab")).unwrap();
            fs::write(bucket.join("blobs/ab/cd"), "sealed").unwrap();
            for name in ["keystore", "root.key", "system.db", "buckets/00/catalog.db"] {
                fs::write(data.join(name), "x").unwrap();
            }
        };
        put();
        prepare_cache(data, &place("a"), true).unwrap();
        assert!(bucket.join("blobs/ab/cd").exists());
        assert!(!data.join("keystore").exists() && !data.join("root.key").exists());
        assert!(!data.join("system.db").exists() && !bucket.join("catalog.db").exists());
        assert!(BackupRecord::is_begun(data));
        put();
        prepare_cache(data, &place("b"), true).unwrap();
        assert!(!bucket.exists() && BackupRecord::is_begun(data));
        put();
        prepare_cache(data, &place("b"), false).unwrap();
        assert!(!bucket.exists() && !data.join(BACKUP_FILE).exists());
    }
}
