//! What shows that a thing is a lab's, where its name says so.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::host::leftovers::{
    BLOCK_DEVICES, Leftover, backing, folder_of, names, owner_of_device, owner_of_folder,
    owner_of_run,
};
use crate::host::note;

/// Whether it lies in a folder that a lab made.
pub(super) fn is_in_own(path: &Path) -> bool {
    folder_of(path).is_some_and(is_own)
}

/// Whether what has this name is a lab's: a folder, by the note in it; a socket that takes no
/// connection, since there are no notes of those; a note itself.
pub(super) fn is_own(path: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else {
        return false;
    };
    if found.file_type().is_socket() {
        return UnixStream::connect(path).is_err();
    }
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let (owner, note) = match name.strip_suffix(note::ENDING) {
        Some(namespace) => (owner_of_device(namespace), path.to_owned()),
        None => {
            let owner = owner_of_folder(name).or_else(|| owner_of_run(name));
            (owner, path.join(note::NAME))
        }
    };
    let noted = note::read(&note).map(|note| note.process);
    noted.is_some() && noted == owner
}

/// Whether a lab noted it since the system started.
pub(super) fn is_own_namespace(name: &str) -> bool {
    let note = note::read(&note::of_namespace(name));
    note.is_some_and(|note| {
        Some(note.process) == owner_of_device(name) && note.boot == note::boot()
    })
}

/// Whether a device of dm-crypt lies on a loop device whose file a lab made.
pub(super) fn is_own_mapped(name: &str) -> bool {
    let devices = Path::new(BLOCK_DEVICES);
    let is_it = |device: &String| {
        let told = fs::read_to_string(devices.join(device).join("dm/name"));
        told.is_ok_and(|told| told.trim_end() == name)
    };
    let below = names(devices).into_iter().filter(is_it);
    let mut below = below.flat_map(|device| names(&devices.join(device).join("slaves")));
    below.any(|device| backing(&device).is_some_and(|file| is_in_own(&file)))
}

/// The folders that were made for one that a lab left, where nothing lies in them but what goes.
pub(super) fn above(left: &Path, files: &[PathBuf]) -> Option<Leftover> {
    let count = note::read(&left.join(note::NAME))
        .filter(|_| is_own(left))?
        .above;
    let place = left.parent()?;
    let deepest = place.canonicalize().ok()?;
    let goes = |name: &OsStr| {
        let path = place.join(name);
        files.contains(&path) && is_own(&path)
    };
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in deepest.ancestors().take(count) {
        let below = folders.last().and_then(|one| one.file_name());
        let mut entries = fs::read_dir(folder).ok()?.flatten();
        let is_empty = entries.all(|one| match below {
            None => goes(&one.file_name()),
            Some(below) => one.file_name() == below,
        });
        if !is_empty {
            break;
        }
        folders.push(folder.to_owned());
    }
    (!folders.is_empty()).then(|| Leftover::Above(place.to_owned(), folders))
}
