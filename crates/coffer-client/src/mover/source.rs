//! A file that is uploaded, and whether it stays what it was.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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
        // Looked at first: opening a pipe would wait for its other end.
        let metadata = std::fs::metadata(path).map_err(MoverError::local("reading", path))?;
        if metadata.is_dir() {
            return Err(unsuitable("is a folder: -r moves what is in it"));
        }
        if !metadata.is_file() {
            return Err(unsuitable("is no file; `-` moves standard input"));
        }
        let file = File::open(path).map_err(MoverError::local("reading", path))?;
        Self::of(file, path)
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
            _ => return Err(unsuitable("is no file; `-` moves standard input")),
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, name, flags, Mode::empty()).map_err(failed)?;
        Self::of(file.into(), path)
    }

    fn of(file: File, path: &Path) -> Result<Self, MoverError> {
        let metadata = file
            .metadata()
            .map_err(MoverError::local("reading", path))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_changed_may_change_unseen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        let source = Source::open(&path).unwrap();
        let (seconds, nanos) = source.seen().changed;
        let changed = Duration::new(seconds.try_into().unwrap(), nanos.try_into().unwrap());
        let changed = SystemTime::UNIX_EPOCH + changed;
        for (ms, pause) in [(0, 1000), (999, 1), (1000, 0), (5000, 0)] {
            let now = changed + Duration::from_millis(ms);
            assert_eq!(source.seen().is_fresh(now), pause > 0, "{ms}");
            assert_eq!(source.seen().pause(now), Duration::from_millis(pause));
        }
        // By a clock that was set back.
        let early = changed - Duration::from_secs(60);
        assert!(source.seen().is_fresh(early));
        assert_eq!(source.seen().pause(early), Duration::ZERO);
    }

    #[test]
    fn what_was_found_below_a_folder_is_opened_through_no_link() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["root/a/b", "outside"] {
            std::fs::create_dir_all(at(name)).unwrap();
            std::fs::write(at(name).join("file"), "12345").unwrap();
        }
        let open = |root: &str, name: &str| Source::open_below(&at(root), &at(root).join(name));
        let source = open("root", "a/b/file").unwrap();
        assert_eq!(source.read(&(0..5)).unwrap(), b"12345");
        source.check_unchanged().unwrap();
        // The folder that was named may be a link.
        symlink(at("root"), at("named")).unwrap();
        open("named", "a/b/file").unwrap();
        symlink(at("outside"), at("root/a/link")).unwrap();
        symlink(at("outside/file"), at("root/file")).unwrap();
        for name in ["a/link/file", "file"] {
            Source::open(&at("root").join(name)).unwrap();
            let told = open("root", name).err().unwrap().to_string();
            assert!(told.contains("reached through no link"), "{told}");
        }
        let told = open("root", "a/b").err().unwrap().to_string();
        assert!(told.contains("is no file"), "{told}");
        let none = open("root", "a/none").err().unwrap();
        assert!(matches!(none, MoverError::Local { .. }), "{none}");
    }

    #[test]
    fn times_that_fat_counts_by_two_seconds_settle_later() {
        let seen = Seen {
            device: 1,
            inode: 1,
            bytes: 5,
            modified: (1_700_000_000, 0),
            changed: (1_700_000_000, 0),
        };
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        for (ms, pause) in [(0, 2100), (1999, 101), (2099, 1), (2100, 0), (9000, 0)] {
            let now = changed + Duration::from_millis(ms);
            assert_eq!(seen.is_fresh(now), pause > 0, "{ms}");
            assert_eq!(seen.pause(now), Duration::from_millis(pause), "{ms}");
        }
        let finer = Seen {
            changed: (1_700_000_000, 1_000_000),
            ..seen
        };
        assert!(!finer.is_fresh(changed + Duration::from_millis(1001)));
    }

    #[test]
    fn changes_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let open = || {
            std::fs::write(&path, "12345").unwrap();
            Source::open(&path).unwrap()
        };
        let source = open();
        assert_eq!(source.read(&(1..4)).unwrap(), b"234");
        source.check_unchanged().unwrap();
        std::fs::write(&path, "123").unwrap();
        assert!(matches!(
            source.read(&(1..4)),
            Err(MoverError::SourceChanged { .. })
        ));
        assert!(source.check_unchanged().is_err());
        let source = open();
        let later = SystemTime::now() + Duration::from_secs(9);
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(later).unwrap();
        assert!(source.check_unchanged().is_err());
        let source = open();
        // The clock of file systems goes in steps.
        std::thread::sleep(Duration::from_millis(50));
        std::fs::write(&path, "54321").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(source.modified()).unwrap();
        let now = std::fs::metadata(&path).unwrap();
        assert_eq!(now.modified().unwrap(), source.modified());
        assert!(source.check_unchanged().is_err());
        assert_ne!(Seen::of(&now).text(), source.seen().text());
        let source = open();
        assert_eq!(
            source.seen().text(),
            Source::open(&path).unwrap().seen().text()
        );
        std::fs::write(folder.path().join("other"), "12345").unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        assert!(source.check_unchanged().is_err());
        let source = Source::open(Path::new("/proc/self/status")).unwrap();
        assert_eq!(source.seen().bytes, 0);
        let more = source.check_unchanged().unwrap_err().to_string();
        assert!(more.contains("more bytes than its size says"), "{more}");
        let folder_error = Source::open(folder.path()).err().unwrap();
        assert!(folder_error.to_string().contains("-r"));
    }
}
