//! What versions at the target have of this migration beside their bytes, and may have otherwise by
//! now: tags, retention, and legal holds.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::lines::{Given, Line, Mark, mark};
use super::{Ledger, source_mark};
use crate::migrate::attributes::{Lock, Retention, plain_tags};
use crate::migrate::error::MigrateError;
use crate::s3::ListedVersion;

fn mark_of_tags(tags: &str) -> Mark {
    let tags = plain_tags(tags);
    if tags.is_empty() {
        return Mark::default();
    }
    mark(&tags.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Not all services keep parts of a second.
fn mark_of_retention((mode, until): &Retention) -> Mark {
    let ends = OffsetDateTime::parse(until, &Rfc3339);
    let seconds = ends.map(|ends| ends.unix_timestamp().to_string());
    mark(&[mode, &seconds.unwrap_or_else(|_| until.clone())])
}

impl Given {
    /// These tags, as a header has them, and this lock.
    pub(in crate::migrate) fn new(tags: &str, lock: &Lock) -> Self {
        Self {
            tags: mark_of_tags(tags),
            is_held: lock.is_held,
            retention: lock
                .retention
                .as_ref()
                .map_or(Mark::default(), mark_of_retention),
        }
    }

    /// Whether these are the tags.
    pub(in crate::migrate) fn has_tags(&self, tags: &str) -> bool {
        self.tags == mark_of_tags(tags)
    }

    /// Whether this is the retention.
    pub(in crate::migrate) fn has_retention(&self, retention: &Retention) -> bool {
        self.retention == mark_of_retention(retention)
    }

    /// The same with other tags.
    pub(in crate::migrate) fn with_tags(self, tags: &str) -> Self {
        let tags = mark_of_tags(tags);
        Self { tags, ..self }
    }

    /// The same with another retention.
    pub(in crate::migrate) fn with_retention(self, retention: &Retention) -> Self {
        let retention = mark_of_retention(retention);
        Self { retention, ..self }
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
        self.note(Line::Given { version, given })
    }

    /// Notes what it may have of it: should no answer to a change come, or this process end, what
    /// is at the target is known for what it may be.
    pub(in crate::migrate) fn giving(
        &self,
        key: &str,
        of: &ListedVersion,
        given: Given,
    ) -> Result<(), MigrateError> {
        let version = hex::encode(source_mark(key, of));
        self.note(Line::Giving { version, given })
    }

    /// What it has of this migration, as far as the ledger says so.
    pub(in crate::migrate) fn given(&self, key: &str, of: &ListedVersion) -> Given {
        let known = self.known.lock();
        { known.given.get(&source_mark(key, of)) }
            .copied()
            .unwrap_or_default()
    }

    /// What it may have of it: the same, but for changes to which no answer came.
    pub(in crate::migrate) fn may_have(&self, key: &str, of: &ListedVersion) -> Given {
        let (known, source) = (self.known.lock(), source_mark(key, of));
        let noted = known
            .giving
            .get(&source)
            .or_else(|| known.given.get(&source));
        noted.copied().unwrap_or_default()
    }
}
