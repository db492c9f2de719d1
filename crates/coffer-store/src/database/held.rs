//! That a catalog is open for writing at most once in this process.
//!
//! Opening a database puts a durable copy in the place of its log (`database::log`). A connection
//! that had the log open would go on writing to a file without a name, and what it acknowledges
//! would be gone with the process. SQLite's locks don't keep that apart, for the copy is made
//! before there is a connection. So a catalog that is opened waits until one that is being closed
//! has let go of its last connection.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::error::{Result, StoreError};
use crate::limits::HELD_WAIT_MAX;

static HELD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static FREED: Condvar = Condvar::new();

/// A catalog's folder, held until this is dropped.
#[must_use]
pub(crate) struct Held(PathBuf);

impl Held {
    /// Holds a folder, once it is free. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Io`] when it was not free in time.
    pub(crate) fn take(dir: &Path) -> Result<Self> {
        let dir = fs::canonicalize(dir)
            .map_err(|error| StoreError::io("find a catalog's folder", dir, error))?;
        let until = Instant::now() + HELD_WAIT_MAX;
        let mut held = HELD.lock();
        while held.contains(&dir) {
            if FREED.wait_until(&mut held, until).timed_out() && held.contains(&dir) {
                let busy = Error::new(ErrorKind::ResourceBusy, "it is open already");
                return Err(StoreError::io("open a catalog", dir, busy));
            }
        }
        held.insert(dir.clone());
        Ok(Self(dir))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.lock().remove(&self.0);
        FREED.notify_all();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_next_one_waits_until_the_folder_is_free_by_whatever_path() {
        let dir = tempfile::tempdir().unwrap();
        let first = Held::take(dir.path()).unwrap();
        let by_another_path = dir.path().join(".");
        let next = thread::spawn(move || {
            let held = Held::take(&by_another_path);
            (held.is_ok(), Instant::now())
        });
        thread::sleep(Duration::from_millis(50));
        let freed = Instant::now();
        drop(first);
        let (is_held, when) = next.join().unwrap();
        assert!(is_held && when >= freed);
    }
}
