//! What versions at the target have of this migration beside their bytes, and may have otherwise by
//! now: tags, and legal holds.

use super::lines::{Given, Line, Mark, mark, take};
use super::{Ledger, source_mark};
use crate::migrate::attributes::plain_tags;
use crate::migrate::error::MigrateError;
use crate::s3::ListedVersion;

fn mark_of_tags(tags: &str) -> Mark {
    let tags = plain_tags(tags);
    if tags.is_empty() {
        return Mark::default();
    }
    mark(&tags.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Given {
    /// These tags, as a header has them, and whether there is a hold.
    pub(in crate::migrate) fn new(tags: &str, is_held: bool) -> Self {
        let tags = mark_of_tags(tags);
        Self { tags, is_held }
    }

    /// Whether these are the tags.
    pub(in crate::migrate) fn has_tags(&self, tags: &str) -> bool {
        self.tags == mark_of_tags(tags)
    }

    /// The same with other tags.
    pub(in crate::migrate) fn with_tags(self, tags: &str) -> Self {
        Self::new(tags, self.is_held)
    }

    /// The same with a hold, or without.
    pub(in crate::migrate) fn with_hold(self, is_held: bool) -> Self {
        Self { is_held, ..self }
    }
}

impl Ledger {
    /// Notes what a version that has arrived has of this migration.
    pub(in crate::migrate) fn gave(
        &self,
        key: &str,
        of: &ListedVersion,
        given: Given,
    ) -> Result<(), MigrateError> {
        let version = hex::encode(source_mark(key, of));
        let line = Line::Given {
            version,
            tags: hex::encode(given.tags),
            is_held: given.is_held,
        };
        self.add(&line)?;
        take(&mut self.known.lock(), line);
        Ok(())
    }

    /// What it has of this migration, if the ledger says so.
    pub(in crate::migrate) fn given(&self, key: &str, of: &ListedVersion) -> Option<Given> {
        let known = self.known.lock();
        known.given.get(&source_mark(key, of)).copied()
    }
}
