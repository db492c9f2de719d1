//! What shows that a thing is a lab's, where its name says so.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::host::leftovers::{
    BLOCK_DEVICES, Leftover, backing, folder_of, is_gone, names, owner_of_device, owner_of_folder,
    owner_of_run, owner_of_socket,
};
use crate::host::note::{self, Note, State};

/// Whose a thing is that has a lab's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// That of the lab that noted it.
    Noted(State),
    /// Nothing but its name says so.
    Unproven,
}

/// What a lab left.
pub(super) const LEFT: Owner = Owner::Noted(State::Gone);

impl Owner {
    /// By a note, of what has this lab's number in its name. What has none may be about to have
    /// one, where a lab of that number runs.
    fn by(note: Option<&Note>, number: i32) -> Self {
        match note.filter(|note| note.lab.process == number) {
            Some(note) => Self::Noted(note.lab.state()),
            None if is_gone(number) => Self::Unproven,
            None => Self::Noted(State::Runs),
        }
    }
}

/// Of the folder that it lies in.
pub(super) fn of_folder_above(path: &Path) -> Owner {
    folder_of(path).map_or(Owner::Unproven, of_file)
}

/// Of a folder by the note in it; of a socket, of which there are no notes, by whether it takes a
/// connection; of a note by itself.
pub(super) fn of_file(path: &Path) -> Owner {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if let Some(number) = owner_of_socket(name) {
        let found = fs::symlink_metadata(path);
        let is_left = found.is_ok_and(|found| found.file_type().is_socket())
            && UnixStream::connect(path).is_err();
        return match Owner::by(None, number) {
            Owner::Unproven if is_left => LEFT,
            owner => owner,
        };
    }
    let (number, note) = match name.strip_suffix(note::ENDING) {
        Some(namespace) => (owner_of_device(namespace), path.to_owned()),
        None => {
            let number = owner_of_folder(name).or_else(|| owner_of_run(name));
            (number, path.join(note::NAME))
        }
    };
    let by = |number| Owner::by(note::read(&note).as_ref(), number);
    number.map_or(Owner::Unproven, by)
}

/// By a note of this time of the system: a namespace does not outlast it.
pub(super) fn of_namespace(name: &str) -> Owner {
    let note = note::read(&note::of_namespace(name)).filter(|note| note.lab.is_of_this_boot());
    let by = |number| Owner::by(note.as_ref(), number);
    owner_of_device(name).map_or(Owner::Unproven, by)
}

/// By the loop device that a device of dm-crypt lies on, whose file a lab made.
pub(super) fn of_mapped(name: &str) -> Owner {
    let devices = Path::new(BLOCK_DEVICES);
    let is_it = |device: &String| {
        let told = fs::read_to_string(devices.join(device).join("dm/name"));
        told.is_ok_and(|told| told.trim_end() == name)
    };
    let below = names(devices).into_iter().filter(is_it);
    let mut below = below.flat_map(|device| names(&devices.join(device).join("slaves")));
    let noted = below.find_map(|device| match of_folder_above(&backing(&device)?) {
        Owner::Unproven => None,
        noted => Some(noted),
    });
    let unnoted =
        || owner_of_device(name).map_or(Owner::Unproven, |number| Owner::by(None, number));
    noted.unwrap_or_else(unnoted)
}

/// The folders that were made for one that a lab left, where nothing lies in them but what goes.
pub(super) fn above(left: &Path, files: &[PathBuf]) -> Option<Leftover> {
    let note = note::read(&left.join(note::NAME));
    let count = note.filter(|_| of_file(left) == LEFT)?.above;
    let place = left.parent()?;
    let deepest = place.canonicalize().ok()?;
    let goes = |name: &OsStr| {
        let path = place.join(name);
        files.contains(&path) && of_file(&path) == LEFT
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
