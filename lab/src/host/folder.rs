//! A folder of the lab's own, which is removed whatever happens, and what it has room for.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::{Doing, Result};
use crate::host::machine::available_memory_bytes;
use crate::host::note::{self, Lab, State};
use crate::host::undo::Undo;

/// How the names of all begin that the lab makes.
pub(crate) const PREFIX: &str = "coffer-lab-";

/// What folders are for.
pub(crate) const PURPOSES: [&str; 5] = ["file", "sendfile", "net", "server", "upload"];

/// Where files lie in memory; a container may give little of it.
pub(crate) const MEMORY: &str = "/dev/shm";

/// A folder. What is mounted below it is registered later, and so is undone earlier.
pub(crate) struct Folder {
    /// Where it is, without links on the way.
    pub(crate) path: PathBuf,
    _undo: Undo,
    /// Goes after it.
    _way: Undo,
}

impl Folder {
    /// Makes it below `parent`, and `parent` where it is not there; its name says for what, and for
    /// which process.
    pub(crate) fn new(parent: &Path, purpose: &str) -> Result<Self> {
        let doing = || format!("making a folder in {}", parent.display());
        let parent = resolved(parent).doing(doing)?;
        let missing = missing(&parent);
        let above = missing.len();
        let made = || fs::create_dir_all(&parent).doing(doing);
        let (way, ()) = Undo::making(move || remove_empty(&missing), made)?;
        let path = parent.join(format!("{PREFIX}{purpose}-{}", std::process::id()));
        Ok(Self {
            _undo: make(&path, above)?,
            path,
            _way: way,
        })
    }
}

/// The path without links on the way, and without `..`: what is not there yet, and will be made,
/// has no other parent than the one before it.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for part in std::path::absolute(path)?.components() {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
        resolved = resolved.canonicalize().unwrap_or(resolved);
    }
    Ok(resolved)
}

/// Makes a folder that says that it is a lab's; so many of those above it were made for it.
pub(crate) fn make(path: &Path, above: usize) -> Result<Undo> {
    let noted = noted(path);
    if noted.is_some_and(|lab| lab == Lab::own() || lab.state() == State::Gone) {
        // That one had this number.
        let _ = remove_noted(path);
    }
    let made = || {
        fs::create_dir(path)?;
        note::write(&path.join(note::NAME), above)
    };
    let made = || made().doing(|| format!("making {}", path.display()));
    let gone = path.to_owned();
    Ok(Undo::making(move || remove(&gone), made)?.0)
}

/// The lab that it says made it.
fn noted(path: &Path) -> Option<Lab> {
    Some(note::read(&path.join(note::NAME))?.lab)
}

/// Removes a folder, and its note last: what does not go stays a lab's.
pub(crate) fn remove_noted(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != note::NAME {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(path)
}

/// What of a path is not there, the deepest first.
fn missing(path: &Path) -> Vec<PathBuf> {
    let is_missing = |place: &&Path| place.symlink_metadata().is_err();
    let all = path.ancestors().take_while(is_missing);
    all.map(Path::to_owned).collect()
}

/// The deepest first. Where others have put something, it stays, and so does what it lies in.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders {
        let _ = fs::remove_dir(folder);
    }
}

/// File systems whose files are nowhere but in memory: `TMPFS_MAGIC` and `RAMFS_MAGIC` of
/// linux/magic.h.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// What there is room for where a folder lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    free_bytes: u64,
    /// Files there are nowhere but in memory.
    pub(crate) in_memory: bool,
}

impl Room {
    /// Looks.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        let found = rustix::fs::statfs(folder);
        let found = found.doing(|| format!("looking for room in {}", folder.display()))?;
        // The number of a kind has 32 bits, whatever the width of the field.
        let in_memory = IN_MEMORY.contains(&(found.f_type as u32));
        let free_bytes = match found.f_blocks {
            // It tells nothing about itself: ramfs, and some that lie elsewhere.
            0 => u64::MAX,
            _ => found.f_bavail.saturating_mul(found.f_bsize as u64),
        };
        Ok(Self {
            free_bytes: if in_memory {
                free_bytes.min(available_memory_bytes())
            } else {
                free_bytes
            },
            in_memory,
        })
    }

    /// Whether it fits, with a quarter left: for file systems that get slow before they are full,
    /// and where files lie in memory, for those who work with them.
    pub(crate) fn has(&self, bytes: u64) -> bool {
        bytes <= self.free_bytes / 4 * 3
    }

    /// `wanted`, halved until what is `needed` for it fits: so that it is the same in runs with
    /// about the same room.
    pub(crate) fn fitting(&self, wanted: u64, needed: impl Fn(u64) -> u64) -> u64 {
        let mut amount = wanted;
        while amount > 1 && !self.has(needed(amount)) {
            amount /= 2;
        }
        amount
    }
}

/// What is still at work during an interruption could put a file there between listing and
/// removing: under another name the folder is not found any more. What was there before, and so
/// could not be made, stays.
fn remove(path: &Path) {
    if noted(path) != Some(Lab::own()) {
        let _ = fs::remove_dir(path);
        return;
    }
    let mut leaving = path.as_os_str().to_owned();
    leaving.push(".leaving");
    let found = fs::rename(path, &leaving);
    let leaving = found.map_or_else(|_| path.to_owned(), |()| leaving.into());
    // Nothing can be done about a folder that does not go.
    let _ = remove_noted(&leaving);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn amounts_are_halved_until_they_fit() {
        let room = |free_bytes| Room {
            free_bytes,
            in_memory: false,
        };
        // Of 4,000, a quarter stays free.
        assert_eq!(room(4_000).fitting(1_000, |amount| 3 * amount), 1_000);
        assert_eq!(room(3_999).fitting(1_000, |amount| 3 * amount), 500);
        assert_eq!(room(4_000).fitting(1_000, |amount| 12 * amount + 100), 125);
        // What takes more than there is in any case fails where it is made.
        assert_eq!(room(10).fitting(1_000, |_| 100), 1);
        assert_eq!(room(u64::MAX).fitting(1_000, |amount| amount << 40), 1_000);
    }

    #[test]
    fn what_lies_in_memory_has_no_more_room_than_memory() {
        assert!(!Room::of(Path::new("/proc")).unwrap().in_memory);
        if let Ok(room) = Room::of(Path::new("/dev/shm")) {
            assert!(!room.in_memory || room.free_bytes <= available_memory_bytes() * 2);
        }
        Room::of(Path::new("/no/such/folder")).unwrap_err();
    }

    #[test]
    fn what_was_made_on_the_way_goes_too_and_what_was_there_stays() {
        let there = std::env::temp_dir().join(format!("lab-way-{}", std::process::id()));
        std::fs::create_dir(&there).unwrap();
        let new = there.join("new");
        drop(Folder::new(&new.join("er"), "file").unwrap());
        assert!(!new.exists() && there.is_dir());
        // What others put there keeps its folders.
        let folder = Folder::new(&new.join("er"), "file").unwrap();
        std::fs::write(new.join("notes"), "theirs").unwrap();
        drop(folder);
        assert!(new.join("notes").is_file() && !new.join("er").exists());
        // A way there and back makes nothing, and takes nothing away.
        let kept = there.join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::os::unix::fs::symlink(&kept, there.join("link")).unwrap();
        for way in ["a/../kept", "a/b/../../kept", "link/../kept"] {
            let folder = Folder::new(&there.join(way), "file").unwrap();
            assert_eq!(folder.path.parent(), Some(&*kept.canonicalize().unwrap()));
            drop(folder);
            assert!(kept.is_dir() && !there.join("a").exists(), "{way}");
        }
        // What can't be made leaves nothing either.
        assert!(Folder::new(&there.join("a/../new/notes/b"), "file").is_err());
        assert!(!there.join("a").exists());
        std::fs::remove_dir_all(&there).unwrap();
    }

    /// Its name alone makes nothing a lab's.
    #[test]
    fn what_others_have_under_its_name_stays() {
        let there = std::env::temp_dir().join(format!("lab-theirs-{}", std::process::id()));
        let theirs = there.join(format!("coffer-lab-file-{}", std::process::id()));
        fs::create_dir_all(&theirs).unwrap();
        fs::write(theirs.join("thesis"), "theirs").unwrap();
        let error = Folder::new(&there, "file").err().unwrap().to_string();
        assert!(error.contains("coffer-lab-file-"), "{error}");
        assert!(theirs.join("thesis").is_file());
        // What an earlier lab left whose process had this number is a lab's.
        note::plant(&theirs.join(note::NAME), 0, |lab| lab.started += "0");
        drop(Folder::new(&there, "file").unwrap());
        assert!(!theirs.exists());
        // A lab in another container has it, too.
        fs::create_dir(&theirs).unwrap();
        let numbers = "pid:[1]".to_owned();
        note::plant(&theirs.join(note::NAME), 0, |lab| lab.numbers = numbers);
        Folder::new(&there, "file").err().unwrap();
        assert!(theirs.join(note::NAME).is_file());
        fs::remove_dir_all(&theirs).unwrap();
        fs::remove_dir(&there).unwrap();
    }

    #[test]
    fn it_goes_while_others_still_write_there() {
        let folder = Folder::new(&std::env::temp_dir(), "removed").unwrap();
        let (path, writes) = (folder.path.clone(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let file = |number: u32| path.join(number.to_string());
                for number in 0.. {
                    // It ends when the folder is gone, which it does not bring back.
                    if std::fs::write(file(number % 100), b"x").is_err() {
                        return;
                    }
                    writes.store(true, Ordering::Relaxed);
                }
            });
            while !writes.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            drop(folder);
        });
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let left = left.filter_map(std::result::Result::ok);
        let own =
            |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&name);
        assert_eq!(left.filter(own).count(), 0);
    }
}
