//! A root key that is not the keystore's: most often a copy from before the root key was changed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use coffer_durable::{rfc3339, stretch_roughly};

/// What there is to know of a root key that does not open the keystore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleRoot {
    /// Where it is.
    place: String,
    /// Its file, and when that was written.
    file: Option<(PathBuf, Option<SystemTime>)>,
    keystore: PathBuf,
    generation: u64,
    /// When the keystore was changed last.
    changed: Option<SystemTime>,
}

impl StaleRoot {
    /// Looks when both were written: the file of the source in this place, if it has one, and the
    /// keystore, which is of this generation.
    pub(crate) fn look(
        place: String,
        file: Option<&Path>,
        keystore: &Path,
        generation: u64,
    ) -> Self {
        Self {
            place,
            file: file.map(|file| (file.to_owned(), written(file))),
            keystore: keystore.to_owned(),
            generation,
            changed: written(keystore),
        }
    }
}

fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|file| file.modified()).ok()
}

impl fmt::Display for StaleRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the root key in {}", self.place)?;
        let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let shown = |time| rfc3339(since(time).as_millis() as i64);
        let root_written = self.file.as_ref().and_then(|(_, written)| *written);
        if let Some(written) = root_written {
            // What opens the keystore alone knows more, and copying may set a file's time.
            write!(f, ", by its file's time of {}, ", shown(written))?;
        }
        write!(
            f,
            "does not open {}, which is of generation {}",
            self.keystore.display(),
            self.generation
        )?;
        if let Some(changed) = self.changed {
            write!(
                f,
                " and, by its file's time, was changed last at {}",
                shown(changed)
            )?;
            let older = root_written.and_then(|written| changed.duration_since(written).ok());
            if let Some(older) = older.filter(|older| *older >= Duration::from_secs(1)) {
                write!(f, ", {} later", stretch_roughly(older.as_secs()))?;
            }
        }
        let is_newer = match (root_written, self.changed) {
            (Some(written), Some(changed)) => written > changed,
            _ => false,
        };
        if is_newer {
            // The file may also have been written just now, from an old backup.
            f.write_str(
                ". One of the two is from before an erase, a rotation or a move changed the root \
                 key: a copy of the data folder opens with the root key of its day, and the data \
                 folder with the newest alone",
            )?;
        } else {
            f.write_str(
                ". It is a copy from before an erase, a rotation or a move changed the root key, \
                 or that of another data folder: put the newest copy in its place",
            )?;
            if let Some((path, _)) = &self.file {
                write!(
                    f,
                    " (a backup: age --decrypt --identity FILE BACKUP > {})",
                    path.display()
                )?;
            }
        }
        f.write_str(". Nothing was changed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_key_newer_than_the_keystore_is_not_to_be_replaced() {
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds));
        let told = |root_seconds| {
            let stale = StaleRoot {
                place: "/d/root.key".to_owned(),
                file: Some((PathBuf::from("/d/root.key"), at(root_seconds))),
                keystore: PathBuf::from("/copy/keystore"),
                generation: 7,
                changed: at(1_000),
            };
            stale.to_string()
        };
        assert!(told(900).contains("put the newest copy in its place"));
        let times = "by its file's time of 1970-01-01T00:15:00.000Z, does not open /copy/keystore, \
                     which is of generation 7 and, by its file's time, was changed last at \
                     1970-01-01T00:16:40.000Z, 1 minute later";
        assert!(told(900).contains(times), "{}", told(900));
        assert!(told(1_100).contains("opens with the root key of its day"));
        assert!(!told(1_100).contains("age --decrypt"));
    }
}
