//! Copies of blobs in another folder, beside their catalog's. A blob never changes, so one that is
//! there with its length is not copied again.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use coffer_seal::{BlobId, sealed_bytes};

use crate::blobs::folder::BlobStore;
use crate::blobs::path::{BLOBS_DIR, path_of};
use crate::catalog::copy::copy_file;
use crate::error::{Result, StoreError};

/// What became of a blob that was to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobCopied {
    /// It was there.
    There,
    /// The copy before had it.
    Shared,
    /// So many bytes were copied.
    Anew(u64),
    /// It is not there to be copied, or hasn't its length.
    Missing,
}

/// Where copies of a bucket's blobs go.
#[derive(Clone, Debug)]
pub struct BlobCopies {
    blobs: PathBuf,
    /// Of the copy before.
    shared: Option<PathBuf>,
    /// Where one is written before it is whole.
    unfinished: PathBuf,
}

impl BlobCopies {
    /// Into `dir`, a bucket's folder. `before`: that of an earlier copy, on the same file system,
    /// whose files are used where they are the same. `unfinished` is a file on it as well.
    pub fn new(dir: &Path, before: Option<&Path>, unfinished: &Path) -> Self {
        Self {
            blobs: dir.join(BLOBS_DIR),
            shared: before.map(|before| before.join(BLOBS_DIR)),
            unfinished: unfinished.to_owned(),
        }
    }

    /// Copies a blob, of so many bytes of plaintext. It is durable when it has its name; the name
    /// is not. Blocks, one at a time.
    ///
    /// # Errors
    /// [`StoreError::Closed`] when `is_over` said so; those of the disk.
    pub fn take(
        &self,
        store: &BlobStore,
        (id, plaintext_bytes): (BlobId, u64),
        is_over: &dyn Fn() -> bool,
    ) -> Result<BlobCopied> {
        let length_bytes = sealed_bytes(plaintext_bytes);
        let is_whole = |path: &Path| {
            let found = fs::metadata(path).ok();
            found.is_some_and(|found| Some(found.len()) == length_bytes)
        };
        let to = path_of(&self.blobs, id);
        if is_whole(&to) {
            return Ok(BlobCopied::There);
        }
        if let Some(folder) = to.parent() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder
                .create(folder)
                .map_err(|error| failed(folder, error))?;
        }
        if let Some(shared) = self.shared.as_ref().map(|shared| path_of(shared, id))
            && is_whole(&shared)
        {
            let _ = fs::remove_file(&to);
            // A file system without hard links has it copied anew.
            if fs::hard_link(&shared, &to).is_ok() {
                return Ok(BlobCopied::Shared);
            }
        }
        let from = store.path(id);
        if !is_whole(&from) {
            return Ok(BlobCopied::Missing);
        }
        let copied_bytes = match copy_file(&from, &self.unfinished, is_over) {
            // Removed since, as its object was.
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(BlobCopied::Missing);
            }
            copied => copied?,
        };
        fs::rename(&self.unfinished, &to).map_err(|error| failed(&to, error))?;
        Ok(BlobCopied::Anew(copied_bytes))
    }

    /// How many of these blobs are not there with their length. Blocks.
    pub fn count_missing(store: &BlobStore, blobs: &[(BlobId, u64)]) -> u64 {
        let is_missing = |&&(id, plaintext_bytes): &&(BlobId, u64)| {
            let found = fs::metadata(store.path(id)).ok();
            found.map(|found| found.len()) != sealed_bytes(plaintext_bytes)
        };
        blobs.iter().filter(is_missing).count() as u64
    }
}

fn failed(path: &Path, error: io::Error) -> StoreError {
    StoreError::io("copy a blob", path, error)
}
