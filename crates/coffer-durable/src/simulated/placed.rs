//! A simulated disk from a real folder, and into one.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::content::SECTOR_BYTES;
use super::state::{DiskState, Node};

impl DiskState {
    /// All of a folder but the files that `is_kept` refuses, durable; and each file's number.
    ///
    /// # Errors
    ///
    /// When something can't be read.
    pub fn of(
        root: &Path,
        is_kept: impl Fn(&Path) -> bool,
    ) -> io::Result<(Self, Vec<(PathBuf, usize)>)> {
        let (mut disk, mut numbers) = (Self::default(), Vec::new());
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder))? {
                let entry = entry?;
                let path = folder.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    disk.names.insert(path.clone(), Node::Folder);
                    folders.push(path);
                } else if is_kept(&path) {
                    disk.add(&path, numbers.len(), &fs::read(entry.path())?);
                    numbers.push((path, numbers.len()));
                }
            }
        }
        Ok((disk, numbers))
    }

    /// Puts it, as a restart finds it, into a folder, which is made.
    ///
    /// # Errors
    ///
    /// When something can't be written.
    pub fn place(&self, folder: &Path) -> io::Result<()> {
        let private = |path: &Path| DirBuilder::new().mode(0o700).create(path);
        private(folder)?;
        for (path, node) in &self.names {
            let path = folder.join(path);
            let Node::File(file) = node else {
                private(&path)?;
                continue;
            };
            let content = &self.files[*file].durable;
            let mut options = OpenOptions::new();
            let placed = options
                .create_new(true)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            placed.set_len(content.length as u64)?;
            for (number, sector) in &content.sectors {
                let start = number * SECTOR_BYTES;
                let length = SECTOR_BYTES.min(content.length - start);
                placed.write_all_at(&sector[..length], start as u64)?;
            }
        }
        Ok(())
    }
}
