//! Who may read and write a file that takes the place of another.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};

/// The bits of a mode that say who may read, write and execute.
const RIGHTS: u32 = 0o777;

/// Those of them without which a file can't be written on after a break.
const OWNERS: u32 = 0o600;

/// Lets no more than those who may read the file of now read what comes.
pub(super) fn narrow(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mode = replaced.mode() & RIGHTS | OWNERS;
    file.set_permissions(Permissions::from_mode(mode))
}

/// Hands on the mode of the file that is replaced, and its owner as far as the system allows.
pub(super) fn keep(file: &File, replaced: &Metadata) -> io::Result<()> {
    let mine = file.metadata()?;
    if (mine.uid(), mine.gid()) != (replaced.uid(), replaced.gid()) {
        // Only root may give files away; a group, its members may.
        let _ = fchown(file, Some(replaced.uid()), Some(replaced.gid()))
            .or_else(|_| fchown(file, None, Some(replaced.gid())));
    }
    file.set_permissions(Permissions::from_mode(replaced.mode() & RIGHTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_handed_on_and_never_wider_before() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("old");
        std::fs::write(&old, "old").unwrap();
        let new = File::create(folder.path().join("new")).unwrap();
        let mode = || new.metadata().unwrap().mode() & 0o7777;
        for (before, meanwhile) in [
            (0o600, 0o600),
            (0o640, 0o640),
            (0o444, 0o644),
            (0o4755, 0o755),
        ] {
            std::fs::set_permissions(&old, Permissions::from_mode(before)).unwrap();
            let replaced = std::fs::metadata(&old).unwrap();
            narrow(&new, &replaced).unwrap();
            assert_eq!(mode(), meanwhile);
            keep(&new, &replaced).unwrap();
            assert_eq!(mode(), before & RIGHTS);
        }
    }
}
