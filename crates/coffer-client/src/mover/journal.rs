//! A file that says how far something has come: what it is of, then line by line what was done.
//! A line that a crash has cut off means nothing.

mod notes;
mod own;

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::own::open_own;
use crate::limits::{JOURNAL_BYTES, JOURNAL_OPENS};
use crate::mover::error::MoverError;

pub(super) use self::notes::{FolderLine, Left, Mark, Notes, Noting, mark};
pub(crate) use self::own::{OTHERS_WRITE, is_named, make_own, reopen_own};

/// A journal that is held by this process.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens a journal, or makes one, and keeps others out.
    ///
    /// # Errors
    /// [`MoverError::Busy`], [`MoverError::Unsuitable`], [`MoverError::Local`].
    pub(super) fn open(path: &Path) -> Result<Self, MoverError> {
        for _ in 0..JOURNAL_OPENS {
            let file = open_own(path, 0o600)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => break,
                Err(TryLockError::Error(error)) => {
                    return Err(MoverError::local("locking", path)(error));
                }
            }
            // Who held it may have removed it meanwhile: then this lock keeps none out.
            if is_named(&file, path).map_err(MoverError::local("locking", path))? {
                return Ok(Self {
                    path: path.to_owned(),
                    file: Mutex::new(file),
                });
            }
        }
        Err(MoverError::Busy {
            path: path.to_owned(),
        })
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

    /// Adds a line. Nothing stays of one that has no room: the next would be damaged, too.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn add(&self, line: &impl Serialize) -> Result<(), MoverError> {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let mut file = self.file.lock();
        let written = file.seek(SeekFrom::End(0)).and_then(|end| {
            let written = file.write_all(&text);
            if written.is_err() {
                let _ = file.set_len(end);
            }
            written
        });
        written.map_err(MoverError::local("writing", &self.path))
    }

    /// From now on it says nothing.
    pub(super) fn clear(&self) {
        let _ = self.file.lock().set_len(0);
    }

    /// Removes it. One that stays would only be read in vain.
    pub(super) fn remove(self) {
        self.unname();
    }

    /// The same while it is held.
    pub(super) fn unname(&self) {
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
        journal.clear();
        assert!(journal.read::<String, u32>().is_none());
        journal.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_was_removed_meanwhile_keeps_none_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let first = Journal::open(&path).unwrap();
        let late = open_own(&path, 0o600).unwrap();
        assert!(is_named(&late, &path).unwrap());
        first.remove();
        late.try_lock().unwrap();
        assert!(!is_named(&late, &path).unwrap());
        let second = Journal::open(&path).unwrap();
        assert!(!is_named(&late, &path).unwrap());
        assert!(matches!(Journal::open(&path), Err(MoverError::Busy { .. })));
        drop(second);
    }

    #[test]
    fn links_and_what_is_no_file_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("journal"), folder.path().join("other"));
        let refused = || {
            let error = Journal::open(&path).err().unwrap();
            assert!(matches!(error, MoverError::Unsuitable { .. }), "{error}");
            fs::remove_file(&path).unwrap();
        };
        std::os::unix::fs::symlink(&other, &path).unwrap();
        refused();
        assert!(!other.exists());
        fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        refused();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        // By no program: a process that begins holds the locks of other tests for a moment.
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        refused();
    }
}
