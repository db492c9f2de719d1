//! What writes add to a bucket, told to the one who counts it while they are committed.
//!
//! A write that would add too much is refused within its transaction, where it is known exactly
//! what it adds and what it frees; so however many write at once, none passes a limit.

use std::sync::Arc;

/// What a write adds to a bucket; less than zero: what it frees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Objects.
    pub objects: i64,
    /// Bytes of objects, and of parts of uploads under way.
    pub bytes: i64,
    /// Uploads under way.
    pub uploads: i64,
}

impl Change {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            objects: self.objects - before.objects,
            bytes: self.bytes - before.bytes,
            uploads: self.uploads - before.uploads,
        }
    }
}

/// What has become of a write that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It is durable.
    Done,
    /// It certainly was not done.
    Undone,
    /// It may have been done.
    InDoubt,
}

/// A limit that a write would pass.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the quota of this {of} is used up: it allows {limit} {what}{}, and the request would add \
     {adds}",
    used.map_or(String::new(), |used| format!(", {used} are used"))
)]
pub struct OverQuota {
    /// What it is a limit of: bucket, level, subject.
    pub of: &'static str,
    /// What is counted: bytes, objects, uploads under way, buckets.
    pub what: &'static str,
    /// How many there may be.
    pub limit: u64,
    /// How many there are, with those that are being written; none where the writer of one bucket
    /// would be told of others.
    pub used: Option<u64>,
    /// How many more there would be.
    pub adds: u64,
}

/// Who admits a catalog's writes. Called on the thread that commits, one write at a time.
pub trait Admission: Send + Sync {
    /// Takes a write into the count before it is committed.
    ///
    /// # Errors
    /// [`OverQuota`]: it is not done then.
    fn admit(&self, change: Change) -> Result<(), OverQuota>;

    /// Told, once, what has become of a write that was admitted.
    fn settle(&self, change: Change, settled: Settled);
}

/// A write that was admitted. It is in doubt what has become of it unless that is told.
pub(crate) struct Admitted {
    by: Arc<dyn Admission>,
    change: Option<Change>,
}

impl Admitted {
    pub(crate) fn admit(by: &Arc<dyn Admission>, change: Change) -> Result<Self, OverQuota> {
        by.admit(change)?;
        Ok(Self {
            by: by.clone(),
            change: Some(change),
        })
    }

    pub(crate) fn settle(mut self, settled: Settled) {
        if let Some(change) = self.change.take() {
            self.by.settle(change, settled);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(change) = self.change.take() {
            self.by.settle(change, Settled::InDoubt);
        }
    }
}
