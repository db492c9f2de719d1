//! A file that is fetched: under another name, with a journal, until all of it is there.

mod early_sync;
mod rights;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use self::early_sync::EarlySync;
use self::rights::folder_of;
pub(crate) use self::rights::is_trusted;
use crate::limits::WRITE_BYTES;
use crate::mover::error::MoverError;
use crate::mover::journal::{Journal, is_named, make_own, reopen_own};
use crate::s3::checksum::{Algorithm, Checksum, Running};

/// The ends of names that are no file's yet.
pub(super) const PART_END: &str = ".coffer-part";
pub(super) const JOURNAL_END: &str = ".coffer-journal";

/// Bytes of a name that file systems take.
const NAME_BYTES: usize = 255;

/// What a file is fetched of: another content begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) endpoint: String,
    pub(super) bucket: String,
    pub(super) key: String,
    pub(super) version_id: Option<String>,
    pub(super) etag: String,
    /// When it was modified, where it has no ETag.
    #[serde(default)]
    pub(super) modified: String,
    pub(super) bytes: u64,
    pub(super) piece_bytes: u64,
    /// The CRC that pieces are noted with.
    pub(super) crc: String,
}

impl Content {
    /// Whether it is known again. One that the service says nothing of may be any.
    fn is(&self, noted: &Self) -> bool {
        noted == self && !(self.etag.is_empty() && self.modified.is_empty())
    }
}

/// A piece that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) crc: u64,
}

/// What the journal begins with.
#[derive(Serialize, Deserialize)]
struct Head {
    content: Content,
    /// The file that pieces were noted of: another of that name is none of ours.
    inode: u64,
}

/// A file that is not whole yet.
pub(super) struct Target {
    path: PathBuf,
    part_path: PathBuf,
    file: Arc<File>,
    journal: Journal,
    early: EarlySync,
    /// Whether any piece is noted.
    has_pieces: AtomicBool,
}

impl Target {
    /// Begins, or goes on, and tells what of this content is there, unproven.
    ///
    /// # Errors
    /// [`MoverError::Unsuitable`] where no file may be put in its place, or beside it,
    /// [`MoverError::Busy`] where another process fetches to it, [`MoverError::Local`].
    pub(super) fn open(path: &Path, content: &Content) -> Result<(Self, Vec<Piece>), MoverError> {
        let replaced = check(path)?;
        let name = path.file_name().unwrap_or(OsStr::new(""));
        let part_path = path.with_file_name(beside(name, PART_END));
        let journal = Journal::open(&path.with_file_name(beside(name, JOURNAL_END)))?;
        let (file, pieces) = match part(&journal, &part_path, content) {
            Ok(part) => part,
            Err(error) => {
                if matches!(error, MoverError::Unsuitable { .. }) {
                    journal.remove();
                }
                return Err(error);
            }
        };
        if let Some(replaced) = replaced {
            let set = rights::narrow(&file, path, &replaced);
            set.map_err(MoverError::local("setting the mode of", &part_path))?;
        }
        let target = Self {
            file: Arc::new(file),
            path: path.to_owned(),
            part_path,
            journal,
            early: EarlySync::default(),
            has_pieces: AtomicBool::new(!pieces.is_empty()),
        };
        target.resize(content.bytes)?;
        Ok((target, pieces))
    }

    fn resize(&self, bytes: u64) -> Result<(), MoverError> {
        let resized = self.file.set_len(bytes);
        resized.map_err(MoverError::local("writing", &self.part_path))
    }

    /// Writes at a place.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MoverError> {
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(MoverError::local("writing", &self.part_path))
    }

    /// Notes that a piece is there.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn note(&self, piece: &Piece) -> Result<(), MoverError> {
        self.journal.add(piece)?;
        self.has_pieces.store(true, Relaxed);
        Ok(())
    }

    /// Whether any piece is noted.
    pub(super) fn has_pieces(&self) -> bool {
        self.has_pieces.load(Relaxed)
    }

    /// Has what was written go to the disk by now.
    pub(super) fn begin_to_sync(&self) {
        self.early.begin(&self.file);
    }

    /// The checksum of a range, read again.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn sum(
        &self,
        range: Range<u64>,
        algorithm: Algorithm,
    ) -> Result<Checksum, MoverError> {
        let mut running = Running::new(algorithm);
        self.each(range, |piece| running.update(piece))?;
        Ok(running.done())
    }

    /// Reads a range again, piece by piece.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn each(
        &self,
        range: Range<u64>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), MoverError> {
        let mut buffer = vec![0; WRITE_BYTES];
        let mut at = range.start;
        while at < range.end {
            let length = (range.end - at).min(WRITE_BYTES as u64) as usize;
            let read = self.file.read_exact_at(&mut buffer[..length], at);
            read.map_err(MoverError::local("reading", &self.part_path))?;
            take(&buffer[..length]);
            at += length as u64;
        }
        Ok(())
    }

    /// Gives the file its name, when it is durable. One that it replaces hands on its mode, and its
    /// owner as far as the system allows; a new one has the mode that the user's mask leaves.
    ///
    /// # Errors
    /// [`MoverError::Local`].
    pub(super) fn finish(self, modified: Option<SystemTime>) -> Result<(), MoverError> {
        if let Some(modified) = modified {
            // A file system that keeps no such time has the file all the same.
            let _ = self.file.set_times(FileTimes::new().set_modified(modified));
        }
        let failed = |doing| MoverError::local(doing, &self.path);
        if let Ok(replaced) = fs::metadata(&self.path) {
            let kept = rights::keep(&self.file, &self.path, &replaced);
            kept.map_err(failed("setting the mode of"))?;
        }
        self.early.finish(&self.file).map_err(failed("syncing"))?;
        if !is_named(&self.file, &self.part_path).map_err(failed("naming"))? {
            return Err(MoverError::Unsuitable {
                path: self.part_path,
                problem: "is another file than was written: others change what is in that folder; \
                          fetch to one where only you do",
            });
        }
        fs::rename(&self.part_path, &self.path).map_err(failed("naming"))?;
        let synced = File::open(folder_of(&self.path)).and_then(|it| it.sync_all());
        synced.map_err(failed("syncing its folder"))?;
        self.journal.remove();
        Ok(())
    }

    /// Removes what is there.
    pub(super) fn discard(&self) {
        let _ = fs::remove_file(&self.part_path);
        self.journal.unname();
    }
}

/// The file that this content was begun to be written to, and what of it is noted, or a new one.
fn part(
    journal: &Journal,
    path: &Path,
    content: &Content,
) -> Result<(File, Vec<Piece>), MoverError> {
    let noted = journal.read::<Head, Piece>();
    if let Some((head, pieces)) = noted.filter(|(head, _)| content.is(&head.content))
        && let Some(file) = reopen_own(path, |there| there.ino() == head.inode)?
    {
        return Ok((file, pieces));
    }
    let file = make_own(path, 0o666)?;
    let made = file.metadata();
    journal.begin(&Head {
        content: content.clone(),
        inode: made.map_err(MoverError::local("reading", path))?.ino(),
    })?;
    Ok((file, Vec::new()))
}

/// Whether a file may be fetched to this path: one of another's unfinished file would be written
/// over, or take its place, and what is no file, such as a device, would be lost. Gives what is
/// known of the file that is there.
///
/// # Errors
/// [`MoverError::Unsuitable`].
pub(super) fn check(path: &Path) -> Result<Option<Metadata>, MoverError> {
    let unsuitable = |problem| {
        Err(MoverError::Unsuitable {
            path: path.to_owned(),
            problem,
        })
    };
    if path.file_name().is_some_and(is_unfinished) {
        return unsuitable(
            "has the form of coffer's own names for unfinished files: fetch it by itself, under \
             another name",
        );
    }
    let folder = folder_of(path);
    if fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(MoverError::Unsuitable {
            path: folder.to_owned(),
            problem: "is no folder that there is: make it first",
        });
    }
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => unsuitable("is a folder"),
        Ok(there) if !there.is_file() || is_open_file(path) => {
            unsuitable("is no regular file: write `-`, and redirect standard output to it")
        }
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            unsuitable("has a longer name than files have here: fetch it under another name")
        }
        // What can't be looked at, can't be written either, and says why then.
        Err(_) => Ok(None),
    }
}

/// Whether a name stands for what a process has open, as /dev/stdout does, also where that is a
/// regular file: what were renamed to it would take the place of the system's link.
pub(crate) fn is_open_file(path: &Path) -> bool {
    let is_of_system = |path: &Path| path.starts_with("/proc");
    fs::read_link(path).is_ok_and(|to| is_of_system(&to))
        || fs::canonicalize(folder_of(path)).is_ok_and(|folder| is_of_system(&folder))
}

/// The name of a file that belongs to another: hidden, and no longer than names may be.
fn beside(name: &OsStr, end: &str) -> OsString {
    let mut beside = OsString::from(".");
    if name.len() + 1 + JOURNAL_END.len() <= NAME_BYTES {
        beside.push(name);
    } else {
        let hash = digest::digest(&digest::SHA256, name.as_bytes());
        beside.push(hex::encode(&hash.as_ref()[..16]));
    }
    beside.push(end);
    beside
}

/// Whether a file is one of those here, which are no user's. Some file systems take large letters
/// for small ones.
pub(crate) fn is_unfinished(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    name.starts_with(b".") && { [PART_END, JOURNAL_END] }
        .iter()
        .any(|end| name.ends_with(end.as_bytes()))
}
