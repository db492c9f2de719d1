//! Whether the files of the open database are as this process left them.
//!
//! SQLite would not look at them again: it has the index of the log, and pages, in memory. Files
//! that another program has written over are neither read nor changed any more, for the log would
//! make of older pages a mixture that no commit has made.

use std::path::Path;

use coffer_store::{OwnFiles, Stamps};
use rusqlite::Connection;

/// What is known of them.
pub(super) struct Files {
    own: OwnFiles,
    stamps: Option<Stamps>,
    /// The page that counts commits, once that was found.
    count_page: Option<u32>,
}

impl Files {
    pub(super) fn of(path: &Path) -> Self {
        Self {
            own: OwnFiles::new(path.to_owned()),
            stamps: None,
            count_page: None,
        }
    }

    /// Finds out what to look at. Without it, which a damaged page can do, only the log and the
    /// lengths are looked at.
    pub(super) fn opened(&mut self, path: &Path, connection: &Connection) {
        let page = "SELECT rootpage FROM sqlite_schema WHERE name = 'commits'";
        self.count_page = connection.query_row(page, (), |row| row.get(0)).ok();
        self.note(path);
    }

    /// Notes them as they are, after each use.
    pub(super) fn note(&mut self, path: &Path) {
        self.stamps = Some(Stamps::of(path));
        if let Some(page) = self.count_page {
            self.own.note(page, 0);
        }
    }

    /// Whether there is more to it than pages that were written over, which are judged when they
    /// are read: then the database has to be opened anew.
    pub(super) fn need_another_look(&self, path: &Path) -> bool {
        let is_other = |stamps: Stamps| stamps.differs_in_log_or_length(&Stamps::of(path));
        self.stamps.is_some_and(is_other)
    }

    /// # Errors
    /// What another program has done to them, in words.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        self.own.check()
    }
}
