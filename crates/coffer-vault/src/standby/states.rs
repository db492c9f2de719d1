//! States on disk: data folders of one head each, which are served and then removed.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use coffer_durable::{sync_folder, write_file_atomically};
use coffer_keys::{CarriedKeystore, Keystore};
use coffer_replica::KnownHead;
use coffer_store::CATALOG_FILE;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::standby_folder;
use crate::data_folder::{Folder, failed, write_private};
use crate::error::{Result, VaultError};
use crate::replica::{KEY_FILES, OPENERS};

/// What a state says of itself.
const RECORD: &str = "state.json";

/// From a bucket's folder in a state to the folder of the standby.
const UP: &str = "../../../../..";

/// Of which head a state is.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StateRecord {
    pub(super) head: KnownHead,
    pub(super) as_of_ms: i64,
}

fn states_folder(data: &Path) -> PathBuf {
    standby_folder(data).join("states")
}

/// All that are whole, by their numbers, ascending.
fn all(data: &Path) -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(states_folder(data)).into_iter().flatten();
    let numbered = |path: PathBuf| Some((path.file_name()?.to_str()?.parse().ok()?, path));
    let mut states: Vec<_> = { entries.flatten() }
        .filter_map(|entry| numbered(entry.path()))
        .collect();
    states.sort_unstable();
    states
}

/// The newest that is there.
pub(super) fn newest(data: &Path) -> Option<(PathBuf, StateRecord)> {
    let (_, folder) = all(data).pop()?;
    let text = fs::read(folder.join(RECORD)).ok()?;
    Some((folder, serde_json::from_slice(&text).ok()?))
}

/// Removes what an earlier run left, but for the newest that is whole. Its number.
pub(super) fn clear(data: &Path) -> Result<u64> {
    let newest = all(data).pop();
    let keep = newest.as_ref().map(|(_, path)| path.clone());
    let entries = fs::read_dir(states_folder(data)).into_iter().flatten();
    for entry in entries.flatten() {
        let path = entry.path();
        if Some(&path) != keep.as_ref() {
            fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(newest.map_or(0, |(number, _)| number))
}

/// Removes states that were not made to the end.
pub(super) fn clear_unfinished(data: &Path) -> Result<()> {
    let mut paths = paths_in(&states_folder(data))?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "new"));
    for path in paths {
        fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
    }
    Ok(())
}

/// Makes a state of what the folder holds. It has its name when it is whole.
pub(super) fn make(data: &Path, number: u64, record: &StateRecord) -> Result<PathBuf> {
    Folder::assure_own(data)?;
    let folder = states_folder(data).join(number.to_string());
    let unfinished = folder.with_extension("new");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(failed("remove", &unfinished))?;
    }
    make_private(&unfinished)?;
    for name in KEY_FILES.into_iter().chain(["system.db", "anchor"]) {
        let from = data.join(name);
        let is_meant = from.is_file() && name != "lock" && !name.ends_with(".new");
        if is_meant {
            copy(&from, &unfinished.join(name))?;
        }
    }
    link_audit(&data.join("audit"), &unfinished.join("audit"))?;
    let buckets = data.join("buckets");
    for path in paths_in(&buckets)? {
        let name = path.file_name().unwrap_or_default();
        let bucket = unfinished.join("buckets").join(name);
        make_private(&bucket)?;
        let from = path.join(CATALOG_FILE);
        link(&from, &bucket.join(CATALOG_FILE))?;
        let blobs = Path::new(UP).join("buckets").join(name).join("blobs");
        let to = bucket.join("blobs");
        symlink(&blobs, &to).map_err(failed("link", &to))?;
    }
    let text = serde_json::to_string(record).map_err(|_| VaultError::Damaged)?;
    write_private(&unfinished.join(RECORD), &text)?;
    fs::rename(&unfinished, &folder).map_err(failed("rename", &unfinished))?;
    Ok(folder)
}

/// Opens a keystore in a folder of its own, by what opens the one of the folder or came with it.
/// Nothing stays of that; what a crash leaves goes with what else is unfinished.
pub(super) fn try_keys(
    data: &Path,
    carried: &CarriedKeystore,
    open: impl FnOnce(&Path) -> Result<Keystore>,
) -> Result<Keystore> {
    let folder = states_folder(data).join("keys.new");
    let remove = || match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", &folder)(error)),
        _ => Ok(()),
    };
    remove()?;
    let tried = || {
        make_private(&folder)?;
        for name in OPENERS {
            let from = data.join(name);
            if from.is_file() {
                copy(&from, &folder.join(name))?;
            }
        }
        carried.place(&folder)?;
        open(&folder)
    };
    let tried = tried();
    remove()?;
    tried
}

/// Puts the keystore of a state, and what opens it, into the folder again.
pub(super) fn put_back_keys(data: &Path, state: &Path) -> Result<()> {
    Folder::assure_own(data)?;
    for name in ["keystore"].into_iter().chain(OPENERS) {
        let from = state.join(name);
        if from.is_file() {
            let bytes = Zeroizing::new(fs::read(&from).map_err(failed("read", &from))?);
            let to = data.join(name);
            let written = write_file_atomically(&to, &bytes).map_err(std::io::Error::from);
            written.map_err(failed("write", &to))?;
        }
    }
    Ok(())
}

/// Removes the keystore of a state that is served no more, and what opens it. What is under way in
/// it has both in memory; the next keystore may lack keys that were destroyed.
pub(super) fn remove_keys(state: &Path) -> Result<()> {
    for name in ["keystore"].into_iter().chain(OPENERS) {
        let path = state.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed.map_err(failed("remove", &path))?,
        }
    }
    // A power cut brings back none of them.
    sync_folder(state).map_err(failed("sync", state))
}

/// The last segment grows, here and there, and what says how far it counts: they are copied. The
/// others stay as they are.
fn link_audit(from: &Path, to: &Path) -> Result<()> {
    make_private(to)?;
    let mut paths = paths_in(from)?;
    paths.sort_unstable();
    let is_segment = |path: &&PathBuf| path.extension().is_some_and(|end| end == "log");
    let last = paths.iter().rfind(is_segment).cloned();
    for path in paths {
        let to = to.join(path.file_name().unwrap_or_default());
        if is_segment(&&path) && Some(&path) != last.as_ref() {
            link(&path, &to)?;
        } else {
            copy(&path, &to)?;
        }
    }
    Ok(())
}

/// What is in a folder; nothing, where there is none.
pub(super) fn paths_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed("read", folder))?,
    };
    entries
        .map(|entry| Ok(entry.map_err(failed("read", folder))?.path()))
        .collect()
}

pub(super) fn make_private(folder: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    made.map_err(failed("make", folder))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(failed("copy", from))
}

fn link(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to).map_err(failed("link", from))
}
