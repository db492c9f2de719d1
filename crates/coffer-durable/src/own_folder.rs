//! Whether a folder that this process holds is still the one of its name.
//!
//! A lock is a folder's, and moves with it; what is opened, written or made by path lies in the
//! folder that has the name then, perhaps beside a process that serves it. So each such step is
//! taken after a look whether the folder of the name is the one that was opened. SQLite and most of
//! what writes know paths alone, and one process holds few folders: so they are looked up here by
//! path, and nothing that writes has to be told of them.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::RwLock;

static OWN: RwLock<Vec<Weak<Place>>> = RwLock::new(Vec::new());

/// A folder, as it was opened, for as long as this is there.
#[derive(Debug)]
pub struct OwnFolder(Arc<Place>);

struct Place {
    /// Absolute, and otherwise as it was given.
    path: PathBuf,
    /// Keeps its inode from being another's, and what was locked with it.
    folder: File,
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
    /// When the path can't be made absolute.
    pub fn hold(path: &Path, folder: File) -> io::Result<Self> {
        let place = Arc::new(Place {
            path: std::path::absolute(path)?,
            folder,
            when_lost: OnceLock::new(),
        });
        let mut own = OWN.write();
        own.retain(|other| other.strong_count() > 0);
        own.push(Arc::downgrade(&place));
        Ok(Self(place))
    }

    /// Whether another folder has its name now.
    pub fn is_another(&self) -> bool {
        self.0.is_another()
    }

    /// Has `end` called as soon as [`check_own_folder`] finds that another folder has its name,
    /// before that returns. The first that is set stays.
    pub fn when_lost(&self, end: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.when_lost.set(Box::new(end));
    }
}

impl Place {
    fn is_another(&self) -> bool {
        let id = |folder: &Metadata| (folder.dev(), folder.ino());
        let (own, there) = (self.folder.metadata(), fs::metadata(&self.path));
        matches!((own, there), (Ok(own), Ok(there)) if id(&own) != id(&there))
    }
}

/// Makes sure that what is about to be opened, written or made at `path` lies in the folder that
/// this process holds, if it is to lie in one. Where nothing has the name now, the step itself
/// finds nothing.
///
/// # Errors
///
/// When another folder has its name.
pub fn check_own_folder(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let around: Vec<Arc<Place>> = {
        let own = OWN.read();
        let places = own.iter().filter_map(Weak::upgrade);
        places
            .filter(|place| path.starts_with(&place.path))
            .collect()
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
    use std::sync::atomic::{AtomicU32, Ordering};

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
}
