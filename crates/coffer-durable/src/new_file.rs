//! Files that appear complete or not at all.

use std::io;
use std::path::Path;

use crate::disk::{Disk, DiskFile};
use crate::error::DurableError;
use crate::folder::Folder;

/// A file under construction: mode 0600, in the folder where it belongs, called as it will be with
/// `.new` behind. Dropped before it gets its name, it leaves nothing behind; after a crash, the
/// next attempt clears it away. The caller sees to it that there is one at a time.
pub struct NewFile<'a> {
    disk: &'a dyn Disk,
    name: &'a str,
    file: Box<dyn DiskFile>,
    is_placed: bool,
}

impl<'a> NewFile<'a> {
    /// Begins a file that will have this name.
    ///
    /// # Errors
    ///
    /// When it can't be made.
    pub fn begin(disk: &'a dyn Disk, name: &'a str) -> Result<Self, DurableError> {
        clear_away(disk, name)?;
        let file = disk.create_new(&unfinished(name));
        Ok(Self {
            disk,
            name,
            file: file.map_err(DurableError::io("create"))?,
            is_placed: false,
        })
    }

    /// Where it is being written.
    pub fn file(&mut self) -> &mut dyn DiskFile {
        &mut *self.file
    }

    /// Makes it durable and gives it its name, which another file may have had.
    ///
    /// # Errors
    ///
    /// When that fails; the file that had the name may have it still, or not.
    pub fn replace(mut self) -> Result<Box<dyn DiskFile>, DurableError> {
        self.file.sync().map_err(DurableError::io("sync"))?;
        let renamed = self.disk.rename(&unfinished(self.name), self.name);
        renamed.map_err(DurableError::io("replace"))?;
        self.placed()
    }

    /// Makes it durable and gives it its name.
    ///
    /// # Errors
    ///
    /// When that fails; [`DurableError::is_taken`] when another file has the name, which is left
    /// alone.
    pub fn place(mut self) -> Result<Box<dyn DiskFile>, DurableError> {
        self.file.sync().map_err(DurableError::io("sync"))?;
        let renamed = self.disk.rename_to_new(&unfinished(self.name), self.name);
        renamed.map_err(DurableError::io("create"))?;
        self.placed()
    }

    fn placed(&mut self) -> Result<Box<dyn DiskFile>, DurableError> {
        self.is_placed = true;
        let synced = self.disk.sync_names();
        synced.map_err(DurableError::io("sync the folder of"))?;
        self.file.again().map_err(DurableError::io("open"))
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // Otherwise the next attempt tries again.
            let _ = self.disk.remove(&unfinished(self.name));
        }
    }
}

/// Durably makes a file of this content, in place of another one of the name if there is one: after
/// a crash there is the old one or the new one.
///
/// # Errors
///
/// When that fails; which of the two there is then is not known.
pub fn write_atomically(disk: &dyn Disk, name: &str, content: &[u8]) -> Result<(), DurableError> {
    let mut new = NewFile::begin(disk, name)?;
    let written = new.file().write(0, content);
    written.map_err(DurableError::io("write"))?;
    new.replace().map(drop)
}

/// As [`write_atomically`], by the file's path.
///
/// # Errors
///
/// As [`write_atomically`].
pub fn write_file_atomically(path: &Path, content: &[u8]) -> Result<(), DurableError> {
    let (folder, name) = Folder::of(path).map_err(DurableError::io("find"))?;
    write_atomically(&folder, name, content)
}

/// Removes what a crash left of a file that had been begun under this name.
///
/// # Errors
///
/// When it is there and can't be removed.
pub fn clear_away(disk: &dyn Disk, name: &str) -> Result<(), DurableError> {
    match disk.remove(&unfinished(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(DurableError::io("clear away")),
    }
}

/// Durably removes a file; one that is not there is removed already.
///
/// # Errors
///
/// When that fails.
pub fn remove_durably(disk: &dyn Disk, name: &str) -> Result<(), DurableError> {
    let removed = disk.remove(name);
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let was_absent = removed.as_ref().is_err_and(is_absent);
    if !was_absent {
        removed.map_err(DurableError::io("remove"))?;
    }
    // Also of one that is not there: its remover may have been stopped before this.
    match disk.sync_names() {
        Err(error) if was_absent && is_absent(&error) => Ok(()),
        synced => synced.map_err(DurableError::io("sync the folder of")),
    }
}

fn unfinished(name: &str) -> String {
    format!("{name}.new")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Access;

    #[test]
    fn a_new_file_replaces_or_leaves_alone() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Folder::new(folder.path());
        let content = || disk.open("note", Access::Read).unwrap().read(0, 9).unwrap();
        write_atomically(&disk, "note", b"old").unwrap();
        let mut new = NewFile::begin(&disk, "note").unwrap();
        new.file().write(0, b"new").unwrap();
        assert!(new.place().is_err_and(|error| error.is_taken()));
        assert_eq!(content(), b"old");
        write_atomically(&disk, "note", b"new").unwrap();
        assert_eq!(
            (content(), disk.names().unwrap()),
            (b"new".to_vec(), vec!["note".to_owned()])
        );
        drop(NewFile::begin(&disk, "other").unwrap());
        remove_durably(&disk, "note").unwrap();
        remove_durably(&disk, "note").unwrap();
        assert_eq!(disk.names().unwrap(), Vec::<String>::new());
    }
}
