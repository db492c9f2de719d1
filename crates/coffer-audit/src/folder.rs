//! A real folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::disk::Disk;

/// The log's folder.
pub(crate) struct Folder {
    path: PathBuf,
    /// The file that was written to last, until it is synced: an error of writing back is told to
    /// whoever had the file open by then.
    written: Option<(String, File)>,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            written: None,
        }
    }

    /// Makes the folder, if it is not there, and its name durable.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Also of one that is there: whoever made it may have been stopped before this.
        if let Some(parent) = path.parent() {
            File::open(parent)?.sync_all()?;
        }
        Ok(Self::new(path))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path.join(name))
    }

    /// Opened anew each time, by name: so a log that was moved away is noticed.
    fn opened(&mut self, name: &str) -> io::Result<&File> {
        let file = self.open(name)?;
        Ok(&self.written.insert((name.to_owned(), file)).1)
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

    fn length_bytes(&self, name: &str) -> io::Result<u64> {
        Ok(fs::metadata(self.path.join(name))?.len())
    }

    fn read(&self, name: &str, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let file = File::open(self.path.join(name))?;
        let mut bytes = vec![0; length_bytes];
        let mut filled_bytes = 0;
        while filled_bytes < length_bytes {
            let rest = &mut bytes[filled_bytes..];
            match file.read_at(rest, offset_bytes + filled_bytes as u64) {
                Ok(0) => break,
                Ok(read_bytes) => filled_bytes += read_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled_bytes);
        Ok(bytes)
    }

    fn write(&mut self, name: &str, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.opened(name)?.write_all_at(bytes, offset_bytes)
    }

    fn truncate(&mut self, name: &str, length_bytes: u64) -> io::Result<()> {
        self.opened(name)?.set_len(length_bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        match self.written.take() {
            Some((written, file)) if written == name => file.sync_data(),
            _ => self.open(name)?.sync_data(),
        }
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => File::open(&self.path)?.sync_all(),
        }
    }

    fn place(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.path.join(format!("{name}.new"));
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)?;
        file.write_all_at(bytes, 0)?;
        file.sync_all()?;
        fs::rename(&unfinished, self.path.join(name))?;
        File::open(&self.path)?.sync_all()
    }
}
