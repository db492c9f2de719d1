//! What a bucket's folder remembers beside its catalog: up to which commit the catalog went, and
//! whether it is in doubt that it is whole.
//!
//! An older catalog that was put back does not know of blobs that were committed since, and takes
//! them for garbage. So the number of the newest commit is noted beside it, after each commit and
//! without waiting for the disk: a catalog that is behind its note has lost commits. Then, and
//! when the caller says so, the bucket is in doubt, and a sweep keeps what it would remove, until
//! the operator takes the doubt away.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use coffer_durable::{check_own_folder, sync_folder};

use crate::error::{Result, StoreError};

/// In a bucket's folder: the number of the newest commit (8 bytes, big-endian), and the same with
/// every bit turned.
pub(crate) const NEWEST_FILE: &str = "catalog.newest";

/// In a bucket's folder: there as long as the bucket is in doubt. Its text says why.
pub(crate) const DOUBT_FILE: &str = "catalog.in-doubt";

/// The note of the newest commit. It may lag behind, after a power cut and where it can't be
/// written; it never runs ahead.
pub(crate) struct Newest(Option<File>);

impl Newest {
    /// Makes the note if there is none. What can't be opened is done without.
    pub(crate) fn open(dir: &Path) -> Self {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let checked = check_own_folder(dir);
        let opened = checked.and_then(|()| options.mode(0o600).open(dir.join(NEWEST_FILE)));
        if let Err(error) = &opened {
            tracing::warn!(%error, "the newest commit of a catalog can't be noted");
        }
        Self(opened.ok())
    }

    /// The commit noted; 0 when there is none.
    pub(crate) fn read(&self) -> u64 {
        let mut bytes = [0; 16];
        let read = self
            .0
            .as_ref()
            .map(|file| file.read_exact_at(&mut bytes, 0));
        let both = u128::from_be_bytes(bytes);
        let (count, turned) = ((both >> 64) as u64, both as u64);
        match read {
            Some(Ok(())) if count == !turned => count,
            _ => 0,
        }
    }

    /// Notes a commit that is durable.
    pub(crate) fn write(&self, count: u64) {
        let both = u128::from(count) << 64 | u128::from(!count);
        if let Some(file) = &self.0 {
            // Without it a catalog that is put back is not noticed here: nothing is lost by it.
            let _ = file.write_all_at(&both.to_be_bytes(), 0);
        }
    }
}

/// Whether the bucket whose folder this is is in doubt.
pub(crate) fn is_in_doubt(dir: &Path) -> bool {
    // What can't be told is not told to be certain.
    !matches!(fs::metadata(dir.join(DOUBT_FILE)),
        Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Has the bucket whose folder this is be in doubt, and says why: from now on no sweep removes
/// anything there, until the operator has removed the file `catalog.in-doubt`. Durable when this
/// returns.
///
/// # Errors
/// [`StoreError::Io`], [`StoreError::Full`].
pub fn keep_in_doubt(dir: &Path, why: &str) -> Result<()> {
    let failed = |error| StoreError::io("note that a bucket is in doubt", dir, error);
    check_own_folder(dir).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    let mut file = options.open(dir.join(DOUBT_FILE)).map_err(failed)?;
    file.write_all(format!("{why}\n").as_bytes())
        .map_err(failed)?;
    file.sync_all().map_err(failed)?;
    sync_folder(dir).map_err(failed)
}
