//! A blob on its way into a cache: who reads it need not wait until all of it is there.

use std::fs::File;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use crate::blobs::cache::index::Key;
use crate::blobs::cache::source::NotFetched;
use crate::blobs::path::{BLOBS_DIR, path_of};
use crate::error::{Result, StoreError};

/// A blob on its way.
#[derive(Debug)]
pub(crate) struct Coming {
    key: Key,
    told: watch::Sender<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// Its file, once it is made.
    file: Option<File>,
    /// How many bytes are there.
    bytes: u64,
    failed: Option<Failed>,
}

/// Why no more of it comes.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    /// It did not come from its source.
    Source(NotFetched),
    /// The source has something else in its place.
    Altered(&'static str),
    /// There is no room for it.
    Full,
    /// It could not be written.
    Disk(String),
    /// It was given up.
    GivenUp,
}

impl PartialEq for Coming {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Coming {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            told: watch::Sender::new(Told::default()),
        }
    }

    /// Its file, of which the first `bytes` are there.
    pub(crate) async fn file(&self, bytes: u64) -> Result<File> {
        self.until(bytes).await?;
        let told = self.told.borrow();
        let file = told.file.as_ref().map(File::try_clone);
        let file = file.unwrap_or_else(|| Err(std::io::ErrorKind::NotFound.into()));
        file.map_err(|error| StoreError::io("open a blob", within_cache(self.key), error))
    }

    /// Whether it came, and has no place here: it is read from its source, a piece at a time.
    pub(crate) fn is_not_kept(&self) -> bool {
        let told = self.told.borrow();
        matches!(told.failed, Some(Failed::Full | Failed::Disk(_)))
    }

    /// How many bytes are there.
    pub(crate) fn there(&self) -> u64 {
        self.told.borrow().bytes
    }

    /// Waits until the first `bytes` are there.
    ///
    /// # Errors
    /// When they never are.
    pub(crate) async fn until(&self, bytes: u64) -> Result<()> {
        let mut told = self.told.subscribe();
        let is_known = |told: &Told| told.bytes >= bytes || told.failed.is_some();
        // It can't be that none tells any more: the sender is here.
        let told = told
            .wait_for(is_known)
            .await
            .map_err(|_| StoreError::Closed)?;
        match &told.failed {
            Some(failed) if told.bytes < bytes => Err(failed.told(self.key)),
            _ => Ok(()),
        }
    }

    pub(super) fn begins(&self, file: File) {
        self.told.send_modify(|told| told.file = Some(file));
    }

    pub(super) fn reached(&self, bytes: u64) {
        self.told.send_modify(|told| told.bytes = bytes);
    }

    pub(super) fn failed(&self, failed: Failed) {
        self.told.send_modify(|told| {
            told.failed.get_or_insert(failed);
        });
    }
}

impl Failed {
    /// What it means to who asked for this blob.
    pub(super) fn told(&self, (bucket, id): Key) -> StoreError {
        let damaged = |what| StoreError::Damaged {
            what,
            bucket,
            blob: Some(id),
        };
        match self {
            Self::Source(NotFetched::Lost) => damaged("blob: its store lost it"),
            Self::Source(NotFetched::Away(problem)) => StoreError::NotFetched {
                problem: problem.clone(),
            },
            Self::Altered(what) => damaged(what),
            // What is asked for is stored, so it is no word to who stores.
            Self::Full => StoreError::NotFetched {
                problem: "the disk of the cache is full".to_owned(),
            },
            Self::Disk(problem) => StoreError::io(
                "write a blob to the cache",
                within_cache((bucket, id)),
                std::io::Error::other(problem.clone()),
            ),
            Self::GivenUp => StoreError::Closed,
        }
    }
}

/// A blob's file, from the folder of all buckets on.
fn within_cache((bucket, id): Key) -> PathBuf {
    path_of(&Path::new(&bucket.to_string()).join(BLOBS_DIR), id)
}
