//! A file that is uploaded, and whether it stays what it was.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::mover::error::MoverError;

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Nanoseconds of a second.
const NANOS: i128 = 1_000_000_000;

/// How long after a change another may leave the same times: the clocks of file systems go in
/// steps.
const FRESH: Duration = Duration::from_secs(1);

/// The same of a time without a fraction, which FAT counts by two seconds, and the kernel's clock
/// behind it by some milliseconds.
const FRESH_OF_SECONDS: Duration = Duration::from_millis(2100);

const NO_FILE: &str = "is no file";

/// Opens a name of a folder, if it is no link, and waits for nothing: a pipe that was put there
/// would else be waited for until something opens its other end.
fn open_in(folder: &OwnedFd, name: &OsStr) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// A file, open, and what it was when it was opened.
pub(crate) struct Source {
    file: File,
    path: PathBuf,
    seen: Seen,
    modified: SystemTime,
}

/// What tells one content of a file from another, without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seen {
    device: u64,
    inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, i64),
    /// When anything of it was changed, which no program can set back, as it can `modified`.
    /// Journals of earlier versions have none.
    #[serde(default)]
    changed: (i64, i64),
}

impl Seen {
    pub(crate) fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Whether it was changed so shortly before that another change may have left the same times.
    pub(crate) fn is_fresh(&self, now: SystemTime) -> bool {
        self.settles_after(now) > 0
    }

    /// How long to wait until it is not: nothing where it is not now, or where that would be longer
    /// than anything takes to settle, by a clock that was set back.
    pub(crate) fn pause(&self, now: SystemTime) -> Duration {
        let nanos = u64::try_from(self.settles_after(now)).unwrap_or(0);
        let pause = Duration::from_nanos(nanos);
        if pause > self.fresh() {
            Duration::ZERO
        } else {
            pause
        }
    }

    /// How long after its change another may leave the same times.
    fn fresh(&self) -> Duration {
        if self.counts_seconds() {
            FRESH_OF_SECONDS
        } else {
            FRESH
        }
    }

    /// Whether its time has no fraction, as all have where whole seconds are counted.
    pub(crate) fn counts_seconds(&self) -> bool {
        self.changed.1 == 0
    }

    /// Nanoseconds until it has settled; none or less where it has.
    fn settles_after(&self, now: SystemTime) -> i128 {
        let (seconds, nanos) = self.changed;
        let now = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let changed = i128::from(seconds) * NANOS + i128::from(nanos);
        changed + self.fresh().as_nanos() as i128 - now.as_nanos() as i128
    }

    /// The same as text. The device is left out: its number may be another after each start of the
    /// machine.
    pub(crate) fn text(&self) -> String {
        let time = |(seconds, nanos): (i64, i64)| format!("{seconds}.{nanos:09}");
        let (modified, changed) = (time(self.modified), time(self.changed));
        format!("{}-{changed}-{modified}-{}", self.inode, self.bytes)
    }
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// [`MoverError::Local`]; [`MoverError::Unsuitable`] for what is no file.
    pub(crate) fn open(path: &Path) -> Result<Self, MoverError> {
        let unsuitable = |problem| MoverError::Unsuitable {
            path: path.to_owned(),
            problem,
        };
        // Looked at first: opening a device may do something, and a pipe has two ends.
        let metadata = std::fs::metadata(path).map_err(MoverError::local("reading", path))?;
        if metadata.is_dir() {
            return Err(unsuitable("is a folder: -r moves what is in it"));
        }
        if !metadata.is_file() {
            return Err(unsuitable("is no file; `-` moves standard input"));
        }
        let mut options = File::options();
        let flags = OFlags::NONBLOCK.bits() as i32;
        let file = options.read(true).custom_flags(flags).open(path);
        Self::of(file.map_err(MoverError::local("reading", path))?, path)
    }

    /// Opens a file that was found below a folder; where links are not followed, through none:
    /// another user may have put one there since, that leads to what only this user may read.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`MoverError::Unsuitable`] for a link on the way.
    pub(crate) fn open_found(
        root: &Path,
        path: &Path,
        follows_links: bool,
    ) -> Result<Self, MoverError> {
        if follows_links {
            Self::open(path)
        } else {
            Self::open_below(root, path)
        }
    }

    fn open_below(root: &Path, path: &Path) -> Result<Self, MoverError> {
        let unsuitable = |problem| MoverError::Unsuitable {
            path: path.to_owned(),
            problem,
        };
        let failed = |errno| match errno {
            Errno::LOOP | Errno::NOTDIR => unsuitable(
                "was reached through no link when it was found, and is now: nothing of it was \
                 read; look at what was put there",
            ),
            errno => MoverError::local("reading", path)(io::Error::from(errno)),
        };
        let below = path.strip_prefix(root).unwrap_or(path);
        let opened = openat(CWD, root, FOLDER, Mode::empty());
        let mut folder = opened.map_err(failed)?;
        for name in below.parent().into_iter().flatten() {
            let flags = FOLDER | OFlags::NOFOLLOW;
            folder = openat(&folder, name, flags, Mode::empty()).map_err(failed)?;
        }
        let name = below.file_name().unwrap_or_default();
        // Looked at first, as above.
        let there = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        match FileType::from_raw_mode(there.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(failed(Errno::LOOP)),
            _ => return Err(unsuitable(NO_FILE)),
        }
        Self::of(open_in(&folder, name).map_err(failed)?, path)
    }

    /// What is open may be another thing than what was looked at before.
    fn of(file: File, path: &Path) -> Result<Self, MoverError> {
        let metadata = file
            .metadata()
            .map_err(MoverError::local("reading", path))?;
        if !metadata.is_file() {
            return Err(MoverError::Unsuitable {
                path: path.to_owned(),
                problem: NO_FILE,
            });
        }
        Ok(Self {
            seen: Seen::of(&metadata),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            file,
            path: path.to_owned(),
        })
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    pub(crate) fn modified(&self) -> SystemTime {
        self.modified
    }

    /// Reads a piece.
    ///
    /// # Errors
    /// [`MoverError::SourceChanged`] when it has become shorter, [`MoverError::Local`].
    pub(crate) fn read(&self, range: &Range<u64>) -> Result<Vec<u8>, MoverError> {
        let mut piece = vec![0; (range.end - range.start) as usize];
        match self.file.read_exact_at(&mut piece, range.start) {
            Ok(()) => Ok(piece),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.changed()),
            Err(error) => Err(MoverError::local("reading", &self.path)(error)),
        }
    }

    /// Whether file and name are what they were, and nothing follows what was read.
    ///
    /// # Errors
    /// [`MoverError::SourceChanged`]; [`MoverError::Unsuitable`] for a file that gives more than
    /// its size says.
    pub(crate) fn check_unchanged(&self) -> Result<(), MoverError> {
        let after = self.file.read_at(&mut [0], self.seen.bytes);
        let after = after.map_err(MoverError::local("reading", &self.path))?;
        let now = self.file.metadata().map(|file| Seen::of(&file));
        let named = std::fs::metadata(&self.path).map(|file| Seen::of(&file));
        match (now, named) {
            (Ok(now), Ok(named)) if now == self.seen && named == self.seen => match after {
                0 => Ok(()),
                _ => Err(MoverError::Unsuitable {
                    path: self.path.clone(),
                    problem: "gives more bytes than its size says, as files of /proc do: nothing \
                              was stored; `-` moves standard input",
                }),
            },
            _ => Err(self.changed()),
        }
    }

    fn changed(&self) -> MoverError {
        MoverError::SourceChanged {
            path: self.path.clone(),
        }
    }
}
