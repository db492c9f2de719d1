//! Whether a folder that this process holds is still the one of its name.
//!
//! A lock is a folder's, and moves with it; what is opened, written or made by path lies in the
//! folder that has the name then, perhaps beside a process that serves it. So each such step is
//! taken after a look whether the folder of the name is the one that was opened. SQLite and most of
//! what writes know paths alone, and one process holds few folders: so they are looked up here by
//! path, and nothing that writes has to be told of them.

use std::borrow::Cow;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::RwLock;

static OWN: RwLock<Vec<Known>> = RwLock::new(Vec::new());

/// A folder that may be held: of most that are looked for, its path says that it is not around.
struct Known {
    path: Arc<Path>,
    place: Weak<Place>,
}

/// A folder, as it was opened, for as long as this is there.
#[derive(Debug)]
pub struct OwnFolder {
    place: Arc<Place>,
    /// Keeps its inode from being another's, and what was locked with it. It is closed with this:
    /// a look that is under way keeps nothing locked.
    _folder: File,
}

struct Place {
    /// Absolute, and otherwise as it was given.
    path: Arc<Path>,
    /// Its device and inode.
    id: (u64, u64),
    when_lost: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Place").field(&self.path).finish()
    }
}

impl OwnFolder {
    /// Holds the folder that was opened at `path`.
    ///
    /// # Errors
    ///
    /// When the path can't be made absolute, or nothing is known of the folder.
    pub fn hold(path: &Path, folder: File) -> io::Result<Self> {
        let path: Arc<Path> = std::path::absolute(path)?.into();
        let place = Arc::new(Place {
            path: path.clone(),
            id: id_of(&folder.metadata()?),
            when_lost: OnceLock::new(),
        });
        let known = Known {
            path,
            place: Arc::downgrade(&place),
        };
        let mut own = OWN.write();
        own.retain(|other| other.place.strong_count() > 0);
        own.push(known);
        Ok(Self {
            place,
            _folder: folder,
        })
    }

    /// Whether another folder has its name now.
    pub fn is_another(&self) -> bool {
        self.place.is_another()
    }

    /// Has `end` called as soon as [`check_own_folder`] finds that another folder has its name,
    /// before that returns. The first that is set stays.
    pub fn when_lost(&self, end: impl Fn() + Send + Sync + 'static) {
        let _ = self.place.when_lost.set(Box::new(end));
    }
}

impl Place {
    fn is_another(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|there| id_of(&there) != self.id)
    }
}

fn id_of(folder: &Metadata) -> (u64, u64) {
    (folder.dev(), folder.ino())
}

/// Makes sure that what is about to be opened, written or made at `path` lies in the folder that
/// this process holds, if it is to lie in one. Where nothing has the name now, the step itself
/// finds nothing.
///
/// # Errors
///
/// When another folder has its name.
pub fn check_own_folder(path: &Path) -> io::Result<()> {
    let path = if path.is_absolute() {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(std::path::absolute(path)?)
    };
    let around: Vec<Arc<Place>> = {
        let own = OWN.read();
        let known = own.iter().filter(|known| path.starts_with(&known.path));
        known.filter_map(|known| known.place.upgrade()).collect()
    };
    let lost = around.iter().find(|place| {
        // One that was opened later under the same name, by the same process, is another's.
        let is_held = |other: &Arc<Place>| other.path == place.path && !other.is_another();
        place.is_another() && !around.iter().any(is_held)
    });
    let Some(lost) = lost else {
        return Ok(());
    };
    if let Some(end) = lost.when_lost.get() {
        end();
    }
    Err(io::Error::other(
        "the data folder was moved away, and another one has its name",
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use parking_lot::Mutex;

    use super::*;
    use crate::disk::{Access, Disk};
    use crate::folder::Folder;
    use crate::new_file::write_atomically;

    #[test]
    fn nothing_is_written_into_a_folder_that_took_the_name() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir(&data).unwrap();
        let own = OwnFolder::hold(&data, File::open(&data).unwrap()).unwrap();
        let ended = Arc::new(AtomicU32::new(0));
        let counted = ended.clone();
        own.when_lost(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let disk = Folder::new(&data);
        write_atomically(&disk, "note", b"ours").unwrap();

        fs::rename(&data, root.path().join("moved")).unwrap();
        assert!(write_atomically(&disk, "note", b"lost").is_err());
        assert_eq!(ended.load(Ordering::SeqCst), 0, "nothing is there");

        fs::create_dir(&data).unwrap();
        fs::write(data.join("note"), b"theirs").unwrap();
        assert!(own.is_another());
        for failed in [
            write_atomically(&disk, "note", b"lost").is_err(),
            disk.open("note", Access::Write).is_err(),
            disk.create_new("other").is_err(),
            disk.rename("note", "other").is_err(),
            disk.rename_to_new("note", "other").is_err(),
            disk.remove("note").is_err(),
            check_own_folder(&data.join("deep/below")).is_err(),
        ] {
            assert!(failed);
        }
        assert_eq!(fs::read(data.join("note")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(&data).unwrap().count(), 1);
        assert!(ended.load(Ordering::SeqCst) > 0);
        check_own_folder(root.path()).unwrap();
        check_own_folder(&root.path().join("data-of-another")).unwrap();

        let later = OwnFolder::hold(&data, File::open(&data).unwrap()).unwrap();
        write_atomically(&disk, "note", b"later").unwrap();
        drop((own, later));
        check_own_folder(&data).unwrap();
    }

    #[test]
    fn a_look_under_way_keeps_no_folder_locked() {
        let root = tempfile::tempdir().unwrap();
        let (data, moved) = (root.path().join("data"), root.path().join("moved"));
        fs::create_dir(&data).unwrap();
        let folder = File::open(&data).unwrap();
        folder.try_lock().unwrap();
        let own = OwnFolder::hold(&data, folder).unwrap();
        let held = Arc::new(Mutex::new(Some(own)));
        let is_free = Arc::new(AtomicBool::new(false));
        let (ended, told, at) = (held.clone(), is_free.clone(), moved.clone());
        let end = move || {
            drop(ended.lock().take());
            let again = File::open(&at).unwrap();
            told.store(again.try_lock().is_ok(), Ordering::SeqCst);
        };
        held.lock().as_ref().unwrap().when_lost(end);
        fs::rename(&data, &moved).unwrap();
        fs::create_dir(&data).unwrap();
        assert!(check_own_folder(&data).is_err());
        assert!(is_free.load(Ordering::SeqCst));
        assert!(held.lock().is_none());
    }

    #[test]
    fn a_path_is_taken_as_it_means_whatever_its_form() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        fs::create_dir(&data).unwrap();
        let _own = OwnFolder::hold(&data.join("."), File::open(&data).unwrap()).unwrap();
        fs::rename(&data, root.path().join("moved")).unwrap();
        fs::create_dir(&data).unwrap();
        let text = data.display();
        for path in [
            format!("{text}//./below"),
            format!("{text}/"),
            format!("{text}"),
        ] {
            assert!(check_own_folder(Path::new(&path)).is_err(), "{path}");
        }
    }
}
