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
    "the quota of this {of} is used up: it allows {}{}, and the request would add {adds}",
    counted(*limit, what),
    told_used(*used, *adds)
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

/// So many of these, in words.
fn counted(limit: u64, what: &str) -> String {
    let (noun, rest) = what.split_once(' ').unwrap_or((what, ""));
    let noun = if limit == 1 {
        noun.strip_suffix('s').unwrap_or(noun)
    } else {
        noun
    };
    format!("{limit} {noun} {rest}").trim_end().to_owned()
}

/// What is used. Where it is not told, and one more is refused, the refusal says already that none
/// is left.
fn told_used(used: Option<u64>, adds: u64) -> String {
    match used {
        Some(1) => ", 1 is used".to_owned(),
        Some(used) => format!(", {used} are used"),
        None if adds == 1 => ", none is left".to_owned(),
        None => String::new(),
    }
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

    /// Told that it is in doubt what has become of a write that changes nothing that is counted.
    fn doubted(&self);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_told_in_words_that_fit_the_number() {
        let said = |what, limit, used| {
            let over = OverQuota {
                of: "level",
                what,
                limit,
                used,
                adds: 1,
            };
            let said = over.to_string();
            said.split("it allows ").nth(1).unwrap_or("").to_owned()
        };
        for (what, limit, used, told) in [
            ("buckets", 1, Some(1), "1 bucket, 1 is used"),
            ("buckets", 2, None, "2 buckets, none is left"),
            ("objects", 0, Some(3), "0 objects, 3 are used"),
            (
                "uploads under way",
                1,
                None,
                "1 upload under way, none is left",
            ),
        ] {
            let whole = format!("{told}, and the request would add 1");
            assert_eq!(said(what, limit, used), whole);
        }
    }
}
