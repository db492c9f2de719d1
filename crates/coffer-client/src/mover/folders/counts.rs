//! What is told of a folder as a whole.

use walkdir::{DirEntry, Error};

/// How many of a folder's files or a prefix's objects went well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Those that are where they should be.
    pub done: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that are not. Each was told.
    pub failed: u64,
    /// Folders with nothing in them, which were left out: objects have none.
    pub empty_folders: u64,
}

impl Counts {
    /// Counts what another piece of work did, too.
    pub fn include(&mut self, other: Self) {
        self.done += other.done;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.empty_folders += other.empty_folders;
    }
}

/// Counts folders with nothing in them, as a walk comes by.
#[derive(Default)]
pub(super) struct EmptyFolders {
    /// How deep the last that came lies, if it was a folder.
    open: Option<usize>,
    count: u64,
}

impl EmptyFolders {
    pub(super) fn see(&mut self, entry: &Result<DirEntry, Error>) {
        // Of one that can't be read, nothing is known.
        let Ok(entry) = entry else {
            self.open = None;
            return;
        };
        let was_empty = self.open.is_some_and(|depth| entry.depth() <= depth);
        self.count += u64::from(was_empty);
        self.open = entry.file_type().is_dir().then_some(entry.depth());
    }

    /// How many there were, at the end of the walk.
    pub(super) fn count(&self) -> u64 {
        self.count + u64::from(self.open.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};

    use walkdir::WalkDir;

    use super::*;

    #[test]
    fn folders_with_nothing_in_them() {
        let root = tempfile::tempdir().unwrap();
        let count = || {
            let mut folders = EmptyFolders::default();
            WalkDir::new(root.path())
                .into_iter()
                .for_each(|entry| folders.see(&entry));
            folders.count()
        };
        assert_eq!(count(), 1);
        for folder in ["a/b", "a/c", "d", "e"] {
            create_dir_all(root.path().join(folder)).unwrap();
        }
        assert_eq!(count(), 4);
        write(root.path().join("a/b/file"), b"").unwrap();
        write(root.path().join("e/file"), b"").unwrap();
        assert_eq!(count(), 2);
    }
}
