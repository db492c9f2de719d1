//! A file that says how far something has come: what it is of, then line by line what was done.
//! A line that a crash has cut off means nothing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::JOURNAL_BYTES;
use crate::mover::error::MoverError;

/// A journal that is held by this process.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens a journal, or makes one, and keeps others out.
    ///
    /// # Errors
    /// [`MoverError::Busy`], [`MoverError::Local`].
    pub(super) fn open(path: &Path) -> Result<Self, MoverError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options
            .mode(0o600)
            .open(path)
            .map_err(MoverError::local("writing", path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                file: Mutex::new(file),
            }),
            Err(TryLockError::WouldBlock) => Err(MoverError::Busy {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(error)) => Err(MoverError::local("locking", path)(error)),
        }
    }

    /// What it is of, and what was done; none of one that is new, or that says something else.
    pub(super) fn read<H: DeserializeOwned, L: DeserializeOwned>(&self) -> Option<(H, Vec<L>)> {
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(0)).ok()?;
        let mut text = String::new();
        (&*file)
            .take(JOURNAL_BYTES)
            .read_to_string(&mut text)
            .ok()?;
        let mut lines = text.lines();
        let head = serde_json::from_str(lines.next()?).ok()?;
        let lines = lines.map_while(|line| serde_json::from_str(line).ok());
        Some((head, lines.collect()))
    }

    /// Begins anew.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn begin(&self, head: &impl Serialize) -> Result<(), MoverError> {
        let cut = {
            let mut file = self.file.lock();
            file.set_len(0).and_then(|()| file.rewind())
        };
        cut.map_err(MoverError::local("writing", &self.path))?;
        self.add(head)
    }

    /// Adds a line.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn add(&self, line: &impl Serialize) -> Result<(), MoverError> {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let mut file = self.file.lock();
        let written = file
            .seek(SeekFrom::End(0))
            .and_then(|_| file.write_all(&text));
        written.map_err(MoverError::local("writing", &self.path))
    }

    /// Removes it. One that stays would only be read in vain.
    pub(super) fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_and_half_lines_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = Journal::open(&path).unwrap();
        assert!(journal.read::<String, u32>().is_none());
        journal.begin(&"of this").unwrap();
        journal.add(&1).unwrap();
        journal.add(&2).unwrap();
        assert!(matches!(Journal::open(&path), Err(MoverError::Busy { .. })));
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let read = Journal::open(&path).unwrap().read::<String, u32>();
            let lines = read.map(|(_, lines)| lines).unwrap_or_default();
            assert!([1, 2].starts_with(&lines), "{lines:?}");
        }
        let journal = Journal::open(&path).unwrap();
        let read: (String, Vec<u32>) = journal.read().unwrap();
        assert_eq!(read, ("of this".to_owned(), vec![1, 2]));
        journal.begin(&"else").unwrap();
        assert_eq!(
            journal.read::<String, u32>(),
            Some(("else".to_owned(), vec![]))
        );
        journal.remove();
        assert!(!path.exists());
    }
}
