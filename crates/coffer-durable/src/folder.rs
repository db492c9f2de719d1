//! A real folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{
    Advice, CWD, OFlags, RenameFlags, StatVfsMountFlags, fadvise, renameat_with, statvfs,
};
use rustix::io::Errno;

use crate::disk::{Access, Disk, DiskFile};
use crate::own_folder::check_own_folder;

/// A folder of the file system. Files are found by name each time, so one that was moved away is
/// noticed.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder of this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder that a file is in, and the file's name there.
    ///
    /// # Errors
    ///
    /// When the path ends in no name, or one that is no text.
    pub fn of(path: &Path) -> io::Result<(Self, &str)> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or(io::ErrorKind::InvalidFilename)?;
        Ok((Self::new(folder_of(path)), name))
    }
}

impl Disk for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let writes = access == Access::Write;
        if writes {
            check_own_folder(&self.path)?;
        }
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(writes)
            .open(self.path.join(name))?;
        Ok(Box::new(file))
    }

    fn create_new(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        check_own_folder(&self.path)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        Ok(Box::new(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_own_folder(&self.path)?;
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn rename_to_new(&self, from: &str, to: &str) -> io::Result<()> {
        check_own_folder(&self.path)?;
        let (from, to) = (self.path.join(from), self.path.join(to));
        match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            // Some file systems (NFS among them) don't know the flag; a hard link refuses to
            // replace just as atomically.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                fs::hard_link(&from, to)?;
                fs::remove_file(from)
            }
            renamed => renamed.map_err(io::Error::from),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_own_folder(&self.path)?;
        fs::remove_file(self.path.join(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        sync_folder(&self.path)
    }
}

impl DiskFile for File {
    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn mode(&self) -> io::Result<u32> {
        Ok(self.metadata()?.permissions().mode() & 0o7777)
    }

    fn again(&self) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.try_clone()?))
    }

    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length_bytes];
        let mut filled_bytes = 0;
        while filled_bytes < length_bytes {
            let rest = &mut bytes[filled_bytes..];
            match self.read_at(rest, offset_bytes + filled_bytes as u64) {
                Ok(0) => break,
                Ok(read_bytes) => filled_bytes += read_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled_bytes);
        Ok(bytes)
    }

    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset_bytes)
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        self.set_len(length_bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn drop_cache(&self) {
        // Written pages are clean after a sync and may go; if they stay, reading back proves less,
        // which is no reason to fail. After a sync that failed Linux takes them for written, too,
        // and would go on to show what the disk does not have.
        let _ = fadvise(self, 0, None, Advice::DontNeed);
    }
}

/// Makes the names in a folder durable.
///
/// # Errors
///
/// When it can't be opened or synced.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Whether a folder can be written at all: makes a file in it that has no name, writes it and syncs
/// it, and leaves nothing. A file system that knows no such files is taken at its word.
///
/// # Errors
///
/// What a write there fails with.
pub fn try_write(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    let nameless = OFlags::TMPFILE.bits().cast_signed();
    let file = match options.custom_flags(nameless).open(path) {
        Err(error) if is_unknown(&error) => {
            let is_read_only = statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY);
            return if is_read_only {
                Err(Errno::ROFS.into())
            } else {
                Ok(())
            };
        }
        opened => opened?,
    };
    file.write_all_at(&[0; 512], 0)?;
    file.sync_data()
}

/// Whether a file without a name is something that the file system does not know.
fn is_unknown(error: &io::Error) -> bool {
    let codes = [Errno::OPNOTSUPP, Errno::ISDIR, Errno::INVAL].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_to_write_leaves_nothing_and_tells_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        try_write(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = try_write(&folder.path().join("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
