//! When the files of a database were written last.
//!
//! A database is written by one process alone, and by one connection at a time. So after each write
//! it is noted how long its files are and when they were written: what is found to be otherwise
//! before the next one was written by another, such as an older copy that was put over the file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::database::log::log_of;

/// Of a database's file and its log: which file it is, its length, and when it was written, in
/// seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps([Option<(u64, u64, i64, i64)>; 2]);

impl Stamps {
    /// As the files of the database at `path` are now.
    pub fn of(path: &Path) -> Self {
        let stamp = |path: &Path| {
            let file = fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
        };
        Self([stamp(path), stamp(&log_of(path))])
    }

    /// Whether the database's own file is of the same stamp in both.
    pub(crate) fn has_same_database(&self, other: &Self) -> bool {
        self.0[0].is_some() && self.0[0] == other.0[0]
    }

    /// Whether there is more between the two than pages of the database that were written over,
    /// which are judged one by one when they are read.
    pub fn differs_in_log_or_length(&self, other: &Self) -> bool {
        let ([database, log], [other_database, other_log]) = (self.0, other.0);
        let length = |file: Option<(u64, u64, i64, i64)>| file.map(|(id, bytes, ..)| (id, bytes));
        log != other_log || length(database) != length(other_database)
    }
}
