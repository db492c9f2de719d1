//! Folders below the one that objects are fetched to. They are opened one in the other and through
//! no link: one that another user put there may lead to where only this user writes. What is
//! fetched to one is fetched by its descriptor: another may take its name meanwhile.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::mover::error::MoverError;
use crate::mover::target::is_trusted;

/// A folder that is held open, and the name that it had.
#[derive(Debug)]
pub(super) struct Folder {
    held: OwnedFd,
    name: PathBuf,
}

impl Folder {
    /// A path to a file in it that leads to this folder, whatever has its name by now. Good as long
    /// as this lives.
    ///
    /// # Errors
    /// [`MoverError::Local`] where the system has no such paths.
    pub(super) fn path_of(&self, file: &OsStr) -> Result<PathBuf, MoverError> {
        let here = self.here();
        let found = fs::metadata(&here);
        found.map_err(MoverError::local("finding the folder in /proc", &self.name))?;
        Ok(here.join(file))
    }

    /// What failed there, told by the names that the user knows.
    pub(super) fn told(&self, error: MoverError) -> MoverError {
        error.of_path(|path| Some(self.name.join(path.strip_prefix(self.here()).ok()?)))
    }

    fn here(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
    }
}

/// Has the folder `root` and the folders of a path below it, where they are not there yet; gives
/// the last of them.
///
/// # Errors
/// [`MoverError::Unsuitable`] for a link, [`MoverError::Local`].
pub(super) fn make_folders(root: &Path, below: &Path) -> Result<Folder, MoverError> {
    check_root(root)?;
    let made = fs::create_dir_all(root);
    made.map_err(MoverError::local("making the folder", root))?;
    let opened = openat(CWD, root, FOLDER, Mode::empty());
    let mut folder = opened.map_err(|errno| failed(errno, root))?;
    let mut path = root.to_owned();
    for name in below {
        path.push(name);
        folder = match open_or_make(&folder, name) {
            Err(Errno::NOTDIR | Errno::LOOP) if is_link(&folder, name) => {
                return Err(MoverError::Unsuitable {
                    path,
                    problem: "is a link, and what is below the folder that was named goes through \
                              none: remove it, or fetch what lies below that name by itself, to \
                              the folder that the link points to",
                });
            }
            opened => opened.map_err(|errno| failed(errno, &path))?,
        };
    }
    Ok(Folder {
        held: folder,
        name: path,
    })
}

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The folder that was named may be a link of this user's.
fn check_root(root: &Path) -> Result<(), MoverError> {
    // A slash at its end would follow it.
    let root: PathBuf = root.components().collect();
    if fs::read_link(&root).is_ok() && !is_trusted(&root) {
        return Err(MoverError::Unsuitable {
            path: root,
            problem: "is a link that another user may have put there: name the folder that is \
                      meant",
        });
    }
    Ok(())
}

fn open_or_make(above: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let open = || openat(above, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
    match open() {
        Err(Errno::NOENT) => match mkdirat(above, name, Mode::from_raw_mode(0o777)) {
            // Another object's file may have needed it meanwhile.
            Ok(()) | Err(Errno::EXIST) => open(),
            Err(errno) => Err(errno),
        },
        opened => opened,
    }
}

fn is_link(above: &OwnedFd, name: &OsStr) -> bool {
    let there = statat(above, name, AtFlags::SYMLINK_NOFOLLOW);
    there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Symlink)
}

fn failed(errno: Errno, path: &Path) -> MoverError {
    MoverError::local("making the folder", path)(io::Error::from(errno))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::process::geteuid;

    use super::*;

    #[test]
    fn folders_are_made_through_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        let make = |below: &str| make_folders(&root, Path::new(below));
        make("").unwrap();
        make("a/b").unwrap();
        make("a/b/c").unwrap();
        assert!(root.join("a/b/c").is_dir());
        fs::create_dir(&other).unwrap();
        symlink(&other, root.join("a/link")).unwrap();
        symlink(folder.path().join("none"), root.join("dangling")).unwrap();
        for below in ["a/link", "a/link/x", "dangling"] {
            let told = make(below).unwrap_err().to_string();
            assert!(told.contains("is a link, and what is below"), "{told}");
        }
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        fs::write(root.join("file"), "").unwrap();
        let error = make("file/x").unwrap_err();
        assert!(matches!(error, MoverError::Local { .. }), "{error}");
    }

    #[test]
    fn a_folder_that_is_held_is_reached_whatever_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("root"), folder.path().join("other"));
        fs::create_dir(&other).unwrap();
        let held = make_folders(&root, Path::new("a")).unwrap();
        fs::rename(root.join("a"), folder.path().join("moved")).unwrap();
        symlink(&other, root.join("a")).unwrap();
        let path = held.path_of(OsStr::new("file")).unwrap();
        fs::write(&path, "bytes").unwrap();
        assert!(folder.path().join("moved/file").exists());
        assert_eq!(fs::read_dir(&other).unwrap().count(), 0);
        let failed = MoverError::local("writing", &path)(io::Error::other("why"));
        let told = held.told(failed).to_string();
        let name = root.join("a/file");
        assert!(told.starts_with(&name.display().to_string()), "{told}");
    }

    #[test]
    fn a_link_that_was_named_is_meant_unless_it_is_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let (link, other) = (folder.path().join("link/"), folder.path().join("other"));
        fs::create_dir(&other).unwrap();
        symlink(&other, folder.path().join("link")).unwrap();
        make_folders(&link, Path::new("a")).unwrap();
        assert!(other.join("a").is_dir());
        if geteuid().is_root() {
            use std::os::unix::fs::{PermissionsExt, lchown};
            lchown(folder.path().join("link"), Some(65534), None).unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
            let told = make_folders(&link, Path::new("b")).unwrap_err().to_string();
            assert!(told.contains("another user may have put there"), "{told}");
            assert!(!other.join("b").exists());
        }
    }
}
