//! What rules say of a version, and of an upload.

use coffer_store::AgedVersion;
use coffer_store::record::Tags;

use super::rules::{Expiration, LifecycleFilter, LifecycleRule, LifecycleRules, Noncurrent};

/// How long a day is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// In milliseconds, at least one.
    pub ms: i64,
}

impl Default for Day {
    fn default() -> Self {
        Self { ms: 86_400_000 }
    }
}

impl Day {
    /// Some days after a time, then the next midnight, unless that is one: in milliseconds since
    /// 1970, and by UTC.
    pub fn due_ms(self, from_ms: i64, days: u32) -> i64 {
        let after = from_ms.saturating_add(self.ms.saturating_mul(days.into()));
        let over = after.rem_euclid(self.ms);
        if over == 0 {
            after
        } else {
            after.saturating_add(self.ms - over)
        }
    }

    /// The number of the day that a time is in, from 1970.
    pub fn number(self, now_ms: i64) -> i64 {
        now_ms.div_euclid(self.ms)
    }
}

/// That a rule ends a version or an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending<'a> {
    /// The rule.
    pub rule: &'a LifecycleRule,
    /// From when on, in milliseconds since 1970.
    pub due_ms: i64,
}

impl LifecycleRules {
    /// The rule that ends a version first, whether that is due or not.
    pub fn ending(&self, version: &AgedVersion, day: Day) -> Option<Ending<'_>> {
        self.earliest(|rule| {
            let is_for = || {
                let name = version.place.name.expose();
                rule.filter.fits(name, version.size_bytes, &version.tags)
            };
            let due_ms = match version.successor_ms {
                Some(since_ms) => of_noncurrent(rule.noncurrent?, version, since_ms, day)?,
                None if version.is_marker => of_marker(rule.expiration?, version, day)?,
                None => of_newest(rule.expiration?, version.modified_ms, day)?,
            };
            is_for().then_some(due_ms)
        })
    }

    /// The rule that ends a newest version first that is no delete marker.
    pub fn expiration(
        &self,
        (name, modified_ms): (&str, i64),
        size_bytes: u64,
        tags: &Tags,
        day: Day,
    ) -> Option<Ending<'_>> {
        self.earliest(|rule| {
            let due_ms = of_newest(rule.expiration?, modified_ms, day)?;
            rule.filter.fits(name, size_bytes, tags).then_some(due_ms)
        })
    }

    /// The rule that ends an upload first.
    pub fn upload_ending(&self, name: &str, started_ms: i64, day: Day) -> Option<Ending<'_>> {
        self.earliest(|rule| {
            let due_ms = day.due_ms(started_ms, rule.abort_uploads_days?);
            rule.filter.fits_name(name).then_some(due_ms)
        })
    }

    /// Whether any rule that is in force ends uploads.
    pub fn ends_uploads(&self) -> bool {
        let mut rules = self.0.iter();
        rules.any(|rule| rule.is_enabled && rule.abort_uploads_days.is_some())
    }

    /// Whether tags matter to when newest versions end.
    pub fn asks_tags(&self) -> bool {
        let asks = |rule: &LifecycleRule| rule.is_enabled && !rule.filter.tags.is_empty();
        self.0.iter().any(asks)
    }

    fn earliest(&self, due_ms: impl Fn(&LifecycleRule) -> Option<i64>) -> Option<Ending<'_>> {
        let rules = self.0.iter().filter(|rule| rule.is_enabled);
        let endings = rules.filter_map(|rule| {
            let due_ms = due_ms(rule)?;
            Some(Ending { rule, due_ms })
        });
        endings.min_by_key(|ending| ending.due_ms)
    }
}

impl LifecycleFilter {
    fn fits_name(&self, name: &str) -> bool {
        let prefix = self.prefix.as_deref().unwrap_or_default();
        name.starts_with(prefix)
    }

    fn fits(&self, name: &str, size_bytes: u64, tags: &Tags) -> bool {
        self.fits_name(name)
            && self.larger_than_bytes.is_none_or(|than| size_bytes > than)
            && self.smaller_than_bytes.is_none_or(|than| size_bytes < than)
            && self.tags.iter().all(|tag| tags.contains(tag))
    }
}

fn of_newest(expiration: Expiration, modified_ms: i64, day: Day) -> Option<i64> {
    match expiration {
        Expiration::Days(days) => Some(day.due_ms(modified_ms, days)),
        Expiration::DateMs(at_ms) => Some(at_ms),
        Expiration::LoneMarkers(_) => None,
    }
}

/// Where versions are behind it, a marker stays: it is what hides them.
fn of_marker(expiration: Expiration, marker: &AgedVersion, day: Day) -> Option<i64> {
    match expiration {
        _ if !marker.is_lone => None,
        Expiration::LoneMarkers(is_set) => is_set.then_some(marker.modified_ms),
        expiration => of_newest(expiration, marker.modified_ms, day),
    }
}

fn of_noncurrent(
    noncurrent: Noncurrent,
    version: &AgedVersion,
    since_ms: i64,
    day: Day,
) -> Option<i64> {
    let is_kept = version.newer_noncurrent < noncurrent.newer_kept;
    (!is_kept).then(|| day.due_ms(since_ms, noncurrent.days))
}

#[cfg(test)]
mod tests;
