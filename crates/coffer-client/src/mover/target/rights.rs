//! Who may read and write a file that takes the place of another.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::process::geteuid;

use crate::mover::journal::OTHERS_WRITE;

/// The bits of a mode that say who may read, write and execute.
const RIGHTS: u32 = 0o777;

/// Those of them without which a file can't be written on after a break.
const OWNERS: u32 = 0o600;

/// The folder that a file lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Whether what has a name may hand on its rights: this user or the folder's put it there, or
/// others can't. Else it may lie there so that what takes its place becomes another's.
pub(crate) fn is_trusted(path: &Path) -> bool {
    let (there, folder) = (fs::symlink_metadata(path), fs::metadata(folder_of(path)));
    let (Ok(there), Ok(folder)) = (there, folder) else {
        return false;
    };
    let of_those = [geteuid().as_raw(), folder.uid()].contains(&there.uid());
    of_those || folder.mode() & OTHERS_WRITE == 0
}

/// Lets no more than those who may read the file at `path` now read what comes.
pub(super) fn narrow(file: &File, path: &Path, replaced: &Metadata) -> io::Result<()> {
    set(file, rights(file, path, replaced)? | OWNERS)
}

/// Hands on the mode of the file that is replaced, and its owner as far as the system allows. One
/// that others may have put there only takes rights away.
pub(super) fn keep(file: &File, path: &Path, replaced: &Metadata) -> io::Result<()> {
    let mine = file.metadata()?;
    let rights = rights(file, path, replaced)?;
    if is_trusted(path) && (mine.uid(), mine.gid()) != (replaced.uid(), replaced.gid()) {
        // Only root may give files away; a group, its members may.
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()))
            .or_else(|_| fchown(file, None, Some(replaced.gid())));
    }
    set(file, rights)
}

fn rights(file: &File, path: &Path, replaced: &Metadata) -> io::Result<u32> {
    let most = if is_trusted(path) {
        RIGHTS
    } else {
        file.metadata()?.mode() & RIGHTS
    };
    Ok(replaced.mode() & most)
}

fn set(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_handed_on_and_never_wider_before() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        fs::write(&old, "old").unwrap();
        let new = File::create(folder.path().join("new")).unwrap();
        let mode = || new.metadata().unwrap().mode() & 0o7777;
        for (before, meanwhile) in [
            (0o600, 0o600),
            (0o640, 0o640),
            (0o444, 0o644),
            (0o4755, 0o755),
        ] {
            fs::set_permissions(&old, Permissions::from_mode(before)).unwrap();
            let replaced = fs::metadata(&old).unwrap();
            narrow(&new, &old, &replaced).unwrap();
            assert_eq!(mode(), meanwhile);
            keep(&new, &old, &replaced).unwrap();
            assert_eq!(mode(), before & RIGHTS);
        }
    }

    #[test]
    fn what_is_no_more_there_hands_on_no_rights() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        fs::write(&old, "old").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o666)).unwrap();
        let replaced = fs::metadata(&old).unwrap();
        let new = File::create(folder.path().join("new")).unwrap();
        let mode = || new.metadata().unwrap().mode() & 0o7777;
        set(&new, 0o640).unwrap();
        fs::remove_file(&old).unwrap();
        narrow(&new, &old, &replaced).unwrap();
        assert_eq!(mode(), 0o640);
        keep(&new, &old, &replaced).unwrap();
        assert_eq!(mode(), 0o640);
    }

    #[test]
    fn folders_of_paths() {
        for (path, folder) in [("a", "."), ("b/a", "b"), ("/a", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder));
        }
    }
}
