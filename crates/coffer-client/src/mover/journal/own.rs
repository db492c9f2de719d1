//! Files of coffer's own that lie beside those of users. Where others may put files too, what has
//! such a name may be theirs: who made it could read and write on in it. Where a file system keeps
//! no owners or modes, as exFAT, each file looks so, and another in its place would as well.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::limits::JOURNAL_OPENS;
use crate::mover::error::MoverError;

/// The bits of a mode by which others than the owner may write.
pub(crate) const OTHERS_WRITE: u32 = 0o022;

/// Opens a file that no other user may write to, or makes one. What has its name and is another
/// user's, or may be written to by one, is replaced.
///
/// # Errors
/// [`MoverError::Unsuitable`], [`MoverError::Busy`], [`MoverError::Local`].
pub(crate) fn open_own(path: &Path, mode: u32) -> Result<File, MoverError> {
    let is_private =
        |there: &Metadata| there.mode() & OTHERS_WRITE == 0 || is_as_all_are(path, there);
    for _ in 0..JOURNAL_OPENS {
        if let Some(file) = reopen_own(path, is_private)? {
            return Ok(file);
        }
        let is_others = |there: &Metadata| !is_own(path, there) || !is_private(there);
        if fs::symlink_metadata(path).is_ok_and(|there| is_others(&there)) {
            remove(path)?;
        }
        match create(path, mode) {
            // Another run of this user's made one meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map_err(MoverError::local("writing", path)),
        }
    }
    Err(MoverError::Busy {
        path: path.to_owned(),
    })
}

/// Opens a file that is there, if this user made it, it has no other name, and it is the one that
/// is looked for: never through a link, and nothing that is no file.
///
/// # Errors
/// [`MoverError::Unsuitable`], [`MoverError::Local`].
pub(crate) fn reopen_own(
    path: &Path,
    is_it: impl FnOnce(&Metadata) -> bool,
) -> Result<Option<File>, MoverError> {
    // A pipe would be waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(flags);
    match options.open(path) {
        Ok(file) => {
            let there = file.metadata();
            let there = there.map_err(MoverError::local("reading", path))?;
            if !there.is_file() {
                return Err(no_file(path));
            }
            Ok((is_own(path, &there) && is_it(&there)).then_some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => match fs::symlink_metadata(path) {
            Ok(there) if !there.is_file() => Err(no_file(path)),
            // What another user keeps closed.
            Ok(there) if !is_own(path, &there) => Ok(None),
            _ => Err(MoverError::local("writing", path)(error)),
        },
    }
}

/// Makes a file, in place of one that has its name.
///
/// # Errors
/// [`MoverError::Unsuitable`], [`MoverError::Busy`], [`MoverError::Local`].
pub(crate) fn make_own(path: &Path, mode: u32) -> Result<File, MoverError> {
    for _ in 0..JOURNAL_OPENS {
        match create(path, mode) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => remove(path)?,
            created => return created.map_err(MoverError::local("writing", path)),
        }
    }
    Err(MoverError::Busy {
        path: path.to_owned(),
    })
}

/// Whether a file still has its name.
pub(crate) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether a file is this user's, and by no other name another's as well.
fn is_own(path: &Path, there: &Metadata) -> bool {
    let is_mine = there.uid() == geteuid().as_raw();
    there.nlink() == 1 && (is_mine || is_as_all_are(path, there))
}

/// Whether a file that this user makes beside it, for itself alone, has the same owner, and may be
/// written to by as many: then nothing would be won by another in its place.
fn is_as_all_are(path: &Path, there: &Metadata) -> bool {
    let Some((tried, file)) = tried_beside(path) else {
        return false;
    };
    let made = file.metadata();
    let _ = fs::remove_file(&tried);
    made.is_ok_and(|made| is_no_worse(there, &made))
}

/// A new file beside another, under a name that no file had.
fn tried_beside(path: &Path) -> Option<(PathBuf, File)> {
    for _ in 0..JOURNAL_OPENS {
        let mut name = [0; 16];
        rand::fill(&mut name).ok()?;
        // Nothing that is stored with a folder, if it stays.
        let tried = path.with_file_name(format!(".{}.coffer-journal", hex::encode(name)));
        match create(&tried, 0o600) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Some((tried, created.ok()?)),
        }
    }
    None
}

fn is_no_worse(there: &Metadata, made: &Metadata) -> bool {
    there.uid() == made.uid() && there.mode() & OTHERS_WRITE & !made.mode() == 0
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options.mode(mode).open(path)
}

fn remove(path: &Path) -> Result<(), MoverError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => return Err(no_file(path)),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(MoverError::Unsuitable {
                path: path.to_owned(),
                problem: "has the name of a file of coffer's own, may be written to by another \
                          user, and can't be removed: have that done, or name another folder",
            })
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(MoverError::local("removing", path)(error))
        }
        _ => Ok(()),
    }
}

fn no_file(path: &Path) -> MoverError {
    MoverError::Unsuitable {
        path: path.to_owned(),
        problem: "is a link, or no regular file, and has the name of a file of coffer's own: \
                  remove it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_others_could_write_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("own"), folder.path().join("other"));
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let first = open_own(&path, 0o600).unwrap();
        let again = open_own(&path, 0o600).unwrap();
        let held = |file: &File| file.metadata().unwrap().ino();
        assert_eq!(held(&again), held(&first));
        // By another name.
        fs::hard_link(&path, &other).unwrap();
        let new = open_own(&path, 0o600).unwrap();
        assert_ne!(held(&new), held(&first));
        assert_eq!(inode(&other), held(&first));
        // By its mode.
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let private = open_own(&path, 0o600).unwrap();
        assert_ne!(held(&private), held(&new));
        assert_eq!(private.metadata().unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn what_looks_as_all_others_do_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, mode| {
            let path = folder.path().join(name);
            fs::write(&path, name).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            fs::metadata(&path).unwrap()
        };
        let (narrow, group, wide) = (file("n", 0o600), file("g", 0o660), file("w", 0o777));
        for (there, made, expected) in [
            (&wide, &wide, true),
            (&group, &wide, true),
            (&narrow, &wide, true),
            (&narrow, &narrow, true),
            (&wide, &group, false),
            (&wide, &narrow, false),
            (&group, &narrow, false),
        ] {
            assert_eq!(is_no_worse(there, made), expected);
        }
        // Here modes are kept, and nothing stays of what was tried.
        let path = folder.path().join("w");
        assert!(!is_as_all_are(&path, &wide));
        assert!(is_as_all_are(&path, &narrow));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        // Whatever names a user's files have.
        let process = std::process::id();
        for number in 0..100 {
            file(&format!(".{process}-{number}.coffer-journal"), 0o600);
        }
        assert!(is_as_all_are(&path, &narrow));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 103);
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(!is_as_all_are(&path, &fs::metadata(&path).unwrap()));
        }
    }

    #[test]
    fn a_file_is_made_in_place_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own");
        assert!(reopen_own(&path, |_| true).unwrap().is_none());
        let first = make_own(&path, 0o666).unwrap();
        let made = make_own(&path, 0o666).unwrap();
        assert!(!is_named(&first, &path).unwrap() && is_named(&made, &path).unwrap());
        assert!(reopen_own(&path, |_| true).unwrap().is_some());
        assert!(reopen_own(&path, |_| false).unwrap().is_none());
        fs::hard_link(&path, folder.path().join("other")).unwrap();
        assert!(reopen_own(&path, |_| true).unwrap().is_none());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for error in [
            make_own(&path, 0o666).err().unwrap(),
            reopen_own(&path, |_| true).err().unwrap(),
            open_own(&path, 0o600).err().unwrap(),
        ] {
            assert!(matches!(error, MoverError::Unsuitable { .. }), "{error}");
        }
    }
}
