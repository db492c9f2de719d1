//! Files that appear complete or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::error::KeysError;

/// A file under construction, mode 0600, beside the place it is meant for. Dropped before
/// [`NewFile::place`], it leaves nothing behind; after a crash, the next attempt clears it away.
pub(crate) struct NewFile {
    file: File,
    temporary: PathBuf,
    destination: PathBuf,
}

impl NewFile {
    /// Begins a file for `destination`, named like it with `.new` behind. The caller holds the
    /// data folder's lock, so a file of that name is what a crash left behind.
    pub(crate) fn begin(destination: &Path) -> Result<Self, KeysError> {
        clear_away(destination)?;
        let temporary = temporary(destination);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(KeysError::io("create", &temporary))?;
        Ok(Self {
            file,
            temporary,
            destination: destination.to_path_buf(),
        })
    }

    /// Where it is being written.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Makes it durable and gives it its name. `false`: the name is taken, by a file that is left
    /// alone.
    pub(crate) fn place(self) -> Result<bool, KeysError> {
        self.file
            .sync_all()
            .map_err(KeysError::io("sync", &self.temporary))?;
        match rename_without_replacing(&self.temporary, &self.destination) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            renamed => renamed.map_err(KeysError::io("create", &self.destination))?,
        }
        sync_folder_of(&self.destination)?;
        Ok(true)
    }
}

/// Removes what a crash left of a file that had been begun for `destination`.
pub(crate) fn clear_away(destination: &Path) -> Result<(), KeysError> {
    let temporary = temporary(destination);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(KeysError::io("clear away", &temporary)(error))
        }
        _ => Ok(()),
    }
}

fn temporary(destination: &Path) -> PathBuf {
    let mut temporary = OsString::from(destination);
    temporary.push(".new");
    PathBuf::from(temporary)
}

impl NewFile {
    /// Makes it durable and gives it its name, which another file may have had.
    pub(crate) fn replace(self) -> Result<(), KeysError> {
        self.file
            .sync_all()
            .map_err(KeysError::io("sync", &self.temporary))?;
        fs::rename(&self.temporary, &self.destination)
            .map_err(KeysError::io("replace", &self.destination))?;
        sync_folder_of(&self.destination)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Gone already when it was placed; otherwise the next attempt tries again.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems (NFS among them) don't know the flag; a hard link refuses to replace
        // just as atomically, and the temporary name goes away on drop.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => fs::hard_link(from, to),
        renamed => renamed.map_err(io::Error::from),
    }
}

/// A new name is durable once its folder is.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), KeysError> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(KeysError::io("sync", folder))
}
