//! The folder of a gateway: a cache, of which nothing is believed at a start but blobs.
//!
//! A file `engine.json` says that it is one, and of which log. Without it a folder that holds
//! anything is refused, so that no data folder is ever taken for a cache.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use coffer_durable::rfc3339;
use coffer_keys::{CopyView, inspect_keystore};
use coffer_replica::{CopyRecord, Place, ReplicaError};
use coffer_seal::KeystoreId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::before::{put_back, set_aside};
use super::cache_files::{entries_of, remove};
use crate::backup::BackupRecord;
use crate::blocking::blocking;
use crate::data_folder::{ENGINE_FILE, Folder, failed, write_private};
use crate::error::{CopyError, Result, VaultError};

/// What stays in any case.
const KEPT_ANYHOW: [&str; 4] = [ENGINE_FILE, "tls", "lock", "lost+found"];

/// What may be in a folder that becomes one.
const ALLOWED: [&str; 3] = ["tls", "lock", "lost+found"];

#[derive(Serialize, Deserialize)]
struct Mark {
    url: String,
    /// Whether the log is known to have been there.
    had_log: bool,
    /// What the log said of itself when its heads were opened last: its store may lose that, and
    /// nothing else there tells by which key they open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    record: Option<Value>,
}

impl Mark {
    fn kept(&self) -> Option<CopyRecord> {
        self.record.as_ref().and_then(CopyRecord::kept)
    }

    /// That of a folder, as far as there is one that can be read.
    fn kept_in(data: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(data.join(ENGINE_FILE)).ok()?).ok()
    }

    fn write(&self, data: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|_| VaultError::Damaged)?;
        write_private(&data.join(ENGINE_FILE), &format!("{text}\n"))
    }

    /// That of a folder; none, where it is none yet and may become a cache.
    fn read(data: &Path) -> Result<Option<Self>> {
        let path = data.join(ENGINE_FILE);
        match fs::read(&path) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(mark) => Ok(Some(mark)),
                Err(_) => Err(target(
                    data,
                    "its engine.json is damaged: where copy.json lies in the store, take another \
                     folder; else this may be all that tells what opens the log, so keep it",
                )),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                refuse_others(data)?;
                Ok(None)
            }
            Err(error) => Err(failed("read", &path)(error)),
        }
    }
}

/// Makes a folder the cache of a gateway, or empties one that is. Where there is a log, it is to be
/// restored into: what was there is moved aside until that is done, and blobs stay, for their names
/// are random, and what is in them is held against the catalog's keys at each read. Where there is
/// none, one is to be begun there. Blocks.
///
/// # Errors
/// Of a folder that is something else, the cache of another log, or of one that was there: it may
/// be the last that there is of it, and nothing is removed.
pub fn prepare_cache(data: &Path, from: &Place, has_log: bool) -> Result<()> {
    let _lock = Folder::hold(data)?;
    check_cache(data, from, has_log)?;
    let mark = Mark::read(data)?;
    let mark = Mark {
        url: from.public_url(),
        had_log: has_log,
        record: mark.and_then(|mark| mark.record).filter(|_| has_log),
    };
    mark.write(data)?;
    if has_log {
        put_back(data)?;
        set_aside(data)?;
        // Until it is a data folder again, it is a restore that is not complete.
        return BackupRecord::begun(KeystoreId([0; 16]), rfc3339(0)).write(data);
    }
    for entry in entries_of(data)? {
        // What a first start left that was interrupted is of no log.
        if !KEPT_ANYHOW.iter().any(|kept| entry.file_name() == *kept) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Refuses a folder that [`prepare_cache`] refuses, and changes nothing. Blocks.
pub(super) fn check_cache(data: &Path, from: &Place, has_log: bool) -> Result<()> {
    if !data.exists() {
        return Ok(());
    }
    let Some(mark) = Mark::read(data)? else {
        return Ok(());
    };
    if mark.url != from.public_url() {
        let problem = "it is the cache of the log at another URL: take another folder, or \
                       remove it";
        return Err(target(data, problem));
    }
    if mark.had_log && !has_log {
        let problem = "it is the cache of a log that this store does not have any more, and \
                       may be all that is left of it: put the store back; to begin a new \
                       engine, take another folder and another URL";
        return Err(target(data, problem));
    }
    Ok(())
}

/// Refuses a cache whose log is not the one that its store shows now: what is in it may be all that
/// is left of its own. One that noted nothing of its log knows it by the keystore that it holds.
/// Where the store lost what the log says of itself, nothing tells.
///
/// # Errors
/// [`ReplicaError::OtherCopy`]; of the folder; of the store.
pub async fn check_own_log(data: &Path, from: &Place) -> Result<()> {
    let (folder, place) = (data.to_owned(), from.clone());
    let opened = move || Ok((KnownLog::of(&folder), place.open(false)?));
    let (Some(known), store) = blocking(opened).await? else {
        return Ok(());
    };
    match CopyRecord::read(&*store).await {
        Ok(found) => known.check(&found, data),
        Err(ReplicaError::NoCopy | ReplicaError::RecordLost | ReplicaError::RecordUnreadable) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// What a cache knows its log by.
enum KnownLog {
    /// What the log said of itself.
    Noted(CopyRecord),
    /// The ids of the keystore that it left here.
    Left(Vec<String>),
}

impl KnownLog {
    /// None of a folder that holds nothing of a log. Blocks.
    fn of(data: &Path) -> Option<Self> {
        let mark = Mark::kept_in(data)?;
        if let Some(record) = mark.kept() {
            return Some(Self::Noted(record));
        }
        // What a first start left that did not make its log is of none.
        let copies = mark
            .had_log
            .then(|| inspect_keystore(&data.join("keystore")));
        let copies = copies?.ok()?;
        let ids = copies.into_iter().filter_map(|copy| match copy {
            CopyView::Whole { id, .. } => Some(id.to_string()),
            CopyView::Newer { .. } | CopyView::Damaged => None,
        });
        let ids: Vec<_> = ids.collect();
        (!ids.is_empty()).then_some(Self::Left(ids))
    }

    fn check(&self, found: &CopyRecord, data: &Path) -> Result<()> {
        match self {
            Self::Noted(record) => Ok(record.check_own(found)?),
            Self::Left(ids) if ids.contains(&found.keystore) => Ok(()),
            Self::Left(_) => Err(target(data, OTHER_ENGINE)),
        }
    }
}

const OTHER_ENGINE: &str = "its keystore is of another engine than copy.json in this store says, \
                            and may be all that is left of that one: put back what was there; for \
                            the engine that is there now take another folder";

/// Notes that the log is there now that was begun in this folder, and what it says of itself.
pub(super) fn note_log(data: &Path, from: &Place, record: CopyRecord) -> Result<()> {
    let mark = Mark {
        url: from.public_url(),
        had_log: true,
        record: Some(value_of(&record)?),
    };
    mark.write(data)
}

/// What the log said of itself that a cache is of, as far as it was noted. Blocks.
pub(crate) fn noted_record(data: &Path) -> Option<CopyRecord> {
    Mark::kept_in(data)?.kept()
}

fn value_of(record: &CopyRecord) -> Result<Value> {
    serde_json::to_value(record).map_err(|_| VaultError::Damaged)
}

/// Notes what the log says of itself that this cache is of, and opens by; of a folder that is no
/// cache nothing. Blocks.
pub(crate) fn note_record(data: &Path, record: CopyRecord) -> Result<()> {
    if !data.join(ENGINE_FILE).exists() {
        return Ok(());
    }
    match Mark::read(data)? {
        Some(mark) if mark.kept().as_ref() != Some(&record) => Mark {
            record: Some(value_of(&record)?),
            ..mark
        }
        .write(data),
        _ => Ok(()),
    }
}

/// Refuses to serve a cache by itself: what is put there would be lost with the next start as a
/// gateway, and the log would have two writers.
pub(crate) fn refuse_cache(data: &Path) -> Result<()> {
    if !data.join(ENGINE_FILE).exists() {
        return Ok(());
    }
    let path = data.display().to_string();
    let problem = "it is the cache of a gateway: start it with --engine, or take another folder";
    Err(CopyError::Served { path, problem }.into())
}

/// Of a folder that can't be the cache, or is that of another log.
fn target(data: &Path, problem: &'static str) -> VaultError {
    let path = data.display().to_string();
    CopyError::Cache { path, problem }.into()
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

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use super::*;
    use crate::backup::BACKUP_FILE;

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
    fn of_a_cache_only_blobs_stay_and_none_is_emptied_whose_log_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        let blob = data.join("buckets/00/blobs/ab/cd");
        let put = || {
            fs::create_dir_all(blob.parent().unwrap()).unwrap();
            fs::write(&blob, "sealed").unwrap();
            for name in [
                "keystore",
                "root.key",
                "credentials",
                "buckets/00/catalog.db",
            ] {
                fs::write(data.join(name), "x").unwrap();
            }
        };
        let is_there = |name: &str| data.join(name).exists();
        let record = CopyRecord::of_engine(KeystoreId([1; 16]));
        // A first start that was interrupted leaves nothing that counts.
        prepare_cache(data, &place("a"), false).unwrap();
        put();
        prepare_cache(data, &place("a"), false).unwrap();
        assert!(!blob.exists() && !is_there("keystore") && !is_there("credentials"));
        assert!(!is_there(BACKUP_FILE));
        put();
        note_log(data, &place("a"), record.clone()).unwrap();
        for (elsewhere, has_log) in [("a", false), ("b", true), ("b", false)] {
            assert!(prepare_cache(data, &place(elsewhere), has_log).is_err());
            assert!(blob.exists() && is_there("keystore"), "nothing is removed");
        }
        prepare_cache(data, &place("a"), true).unwrap();
        assert_eq!(noted_record(data), Some(record), "the store may lose it");
        assert!(blob.exists() && is_there("credentials"));
        assert!(!is_there("keystore") && !is_there("root.key"));
        assert!(!is_there("buckets/00/catalog.db") && BackupRecord::is_begun(data));
        assert!(prepare_cache(data, &place("a"), false).is_err());
    }

    #[test]
    fn a_log_that_is_another_is_told_before_a_cache_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let (data, store) = (folder.path().join("cache"), folder.path().join("store"));
        fs::create_dir_all(&data).unwrap();
        fs::create_dir_all(&store).unwrap();
        let place = Place::parse(&format!("file://{}", store.display())).unwrap();
        let (own, other) = (
            CopyRecord::of_engine(KeystoreId([1; 16])),
            CopyRecord::of_engine(KeystoreId([1; 16])),
        );
        let shows = |record: &CopyRecord| {
            let text = serde_json::to_vec(record).unwrap();
            fs::write(store.join("copy.json"), text).unwrap();
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let check = || runtime.block_on(check_own_log(&data, &place));
        shows(&other);
        check().unwrap();
        note_log(&data, &place, own.clone()).unwrap();
        let told = check().unwrap_err().to_string();
        assert!(told.contains("another URL"), "{told}");
        shows(&own);
        check().unwrap();
        fs::remove_file(store.join("copy.json")).unwrap();
        check().unwrap();
    }

    #[test]
    fn what_a_later_version_noted_is_kept_and_not_gone_by() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path();
        note_log(
            data,
            &place("a"),
            CopyRecord::of_engine(KeystoreId([1; 16])),
        )
        .unwrap();
        let path = data.join(ENGINE_FILE);
        let noted = fs::read_to_string(&path).unwrap();
        for odd in [
            noted.replace("\"format\":1", "\"format\":999"),
            noted.replace("\"format\":1", "\"format\":\"?\""),
        ] {
            assert_ne!(odd, noted);
            fs::write(&path, odd).unwrap();
            assert_eq!(noted_record(data), None);
            prepare_cache(data, &place("a"), true).unwrap();
            assert!(prepare_cache(data, &place("b"), true).is_err());
        }
    }

    #[test]
    fn a_cache_is_served_by_a_gateway_alone() {
        let folder = tempfile::tempdir().unwrap();
        refuse_cache(folder.path()).unwrap();
        prepare_cache(folder.path(), &place("a"), false).unwrap();
        assert!(refuse_cache(folder.path()).is_err());
    }
}
