//! A folder of the lab's own, which is removed whatever happens.

use std::path::{Path, PathBuf};

use crate::error::{Doing, Result};
use crate::undo::Undo;

/// A folder. What is mounted below it is registered later, and so is undone earlier.
pub(crate) struct Folder {
    /// Where it is, without links on the way.
    pub(crate) path: PathBuf,
    _undo: Undo,
}

impl Folder {
    /// Makes it below `parent`; its name says for what, and for which process.
    pub(crate) fn new(parent: &Path, purpose: &str) -> Result<Self> {
        let path = parent.join(format!("coffer-lab-{purpose}-{}", std::process::id()));
        let doing = || format!("making {}", path.display());
        std::fs::create_dir_all(&path).doing(doing)?;
        let path = path.canonicalize().doing(doing)?;
        let gone = path.clone();
        Ok(Self {
            path,
            _undo: Undo::by(move || remove(&gone)),
        })
    }
}

/// What is still at work during an interruption could put a file there between listing and
/// removing: under another name nobody finds the folder any more.
fn remove(path: &Path) {
    let mut leaving = path.as_os_str().to_owned();
    leaving.push(".leaving");
    let found = std::fs::rename(path, &leaving);
    let leaving = found.map_or_else(|_| path.to_owned(), |()| leaving.into());
    // Nothing can be done about a folder that does not go.
    let _ = std::fs::remove_dir_all(leaving);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn it_goes_while_others_still_write_there() {
        let folder = Folder::new(&std::env::temp_dir(), "removed").unwrap();
        let (path, writes) = (folder.path.clone(), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let file = |number: u32| path.join(number.to_string());
                for number in 0.. {
                    // It ends when the folder is gone, which it does not bring back.
                    if std::fs::write(file(number % 100), b"x").is_err() {
                        return;
                    }
                    writes.store(true, Ordering::Relaxed);
                }
            });
            while !writes.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            drop(folder);
        });
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let left = std::fs::read_dir(path.parent().unwrap()).unwrap();
        let left = left.filter_map(std::result::Result::ok);
        let own =
            |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(&name);
        assert_eq!(left.filter(own).count(), 0);
    }
}
