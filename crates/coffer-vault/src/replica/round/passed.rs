//! Buckets that can't be opened, or read: a round goes on without them, and says so. The next head
//! has of each what the last one had, which may be nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use coffer_replica::CopyWriter;
use coffer_seal::BucketId;

use super::Round;
use crate::copies::Passed;
use crate::error::{Result, VaultError};
use crate::limits::{
    COPY_PASSED_NAMED_MAX, COPY_RETRY_MAX, ENGINE_RECORDS_BOUND, ENGINE_RECORDS_MAX,
};
use crate::system::BucketRow;
use crate::vault::Inner;

/// Those that a copy goes on without.
#[derive(Default)]
pub(in crate::replica) struct PassedOver {
    /// When each was tried last.
    tried: HashMap<BucketId, Instant>,
    /// Whether the log of an engine has more of one than heads have, which cover no records then.
    is_behind: bool,
}

impl PassedOver {
    /// What operators are told.
    fn told(&self) -> Option<String> {
        let named = named(self.tried.keys())?;
        let told = format!(
            "following, but for buckets that can't be opened here, {named}; the copy keeps what it \
             had of these"
        );
        if !self.is_behind {
            return Some(told);
        }
        let bound = ENGINE_RECORDS_BOUND * ENGINE_RECORDS_MAX;
        Some(format!(
            "{told}; records have more of them than heads, so that after {bound} records each \
             write waits for a head: until they open, are erased, or another gateway serves"
        ))
    }

    /// What a check of the copy tells of those that have a key.
    fn lacking(&self, inner: &Inner) -> Option<String> {
        let has_key = |id: &&BucketId| inner.keystore.holds_bucket(**id);
        let named = named(self.tried.keys().filter(has_key))?;
        Some(format!(
            "buckets can't be opened here, {named}: what the copy has of them is old, or nothing"
        ))
    }
}

/// How many there are, and which the first are; none, where there are none.
fn named<'a>(ids: impl Iterator<Item = &'a BucketId>) -> Option<String> {
    let mut ids: Vec<String> = ids.map(ToString::to_string).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.truncate(COPY_PASSED_NAMED_MAX);
    let more = if ids.len() < count { ", …" } else { "" };
    (count > 0).then(|| format!("{count} of them: {}{more}", ids.join(", ")))
}

/// How far a catalog has come that was looked at since the start.
fn commits_met(inner: &Inner, id: BucketId) -> Option<u64> {
    let open = inner.open_buckets.last_commit(id);
    open.or_else(|| inner.freshness.commits.of_met(id))
}

/// Whether all that was committed since the start is among so many commits. One that can't be
/// opened has none then that anything waits for.
pub(super) fn has_all_met(inner: &Inner, id: BucketId, commits: u64) -> bool {
    !inner.open_buckets.is_committing(id) && commits_met(inner, id).is_none_or(|met| met <= commits)
}

impl Round {
    /// Whether this round may go on without a bucket: a head that acknowledges what was written
    /// has it.
    fn may_pass(&self, inner: &Inner, writer: &CopyWriter, row: &BucketRow) -> bool {
        self.synchronous.is_none() || has_all_met(inner, row.id, self.commits_of(writer, row))
    }

    /// Whether a bucket was passed over so lately that it is not tried now.
    pub(in crate::replica) fn was_passed(
        &self,
        inner: &Inner,
        writer: &CopyWriter,
        row: &BucketRow,
    ) -> bool {
        let tried = self.passed.tried.get(&row.id);
        tried.is_some_and(|tried| tried.elapsed() < COPY_RETRY_MAX)
            && self.may_pass(inner, writer, row)
    }

    /// Goes on without a bucket that failed so, where that may be.
    ///
    /// # Errors
    /// The bucket's, where the copy lacks of it what acknowledgements wait for.
    pub(in crate::replica) fn pass_over(
        &mut self,
        writer: &CopyWriter,
        row: &BucketRow,
        error: VaultError,
    ) -> Result<()> {
        let inner = self.inner()?;
        let bucket = row.id;
        // First: what was put of it and is in no head stays in none, for it may be read otherwise
        // by the time that it is put again.
        let is_put = self.chains.remove(&bucket).is_some();
        if self.unfinished.remove(&bucket).is_some() || is_put {
            self.renewed.insert(bucket);
        }
        if !self.may_pass(&inner, writer, row) {
            tracing::error!(copy = self.name(), %bucket, %error, "a copy lacks what it waits for");
            return Err(error);
        }
        if self.passed.tried.insert(bucket, Instant::now()).is_none() {
            self.tell_passed_first(&inner, row, &error);
        }
        if let Some(records) = self.records() {
            records.pass(bucket);
        }
        Ok(())
    }

    fn tell_passed_first(&self, inner: &Inner, row: &BucketRow, error: &VaultError) {
        let (copy, bucket) = (self.name(), row.id);
        if inner.is_left_to_erase(row) {
            tracing::info!(
                copy,
                %bucket,
                "an erase of this bucket was ordered, or its key was destroyed, and none of it is \
                 here that opens: a copy goes on without it until an erase is asked for again"
            );
        } else {
            tracing::error!(
                copy,
                %bucket,
                %error,
                "a bucket can't be opened: a copy goes on without it, with what it had of it"
            );
        }
    }

    /// A bucket is in the next head as it is.
    pub(in crate::replica) fn is_not_passed(&mut self, bucket: BucketId) {
        if self.passed.tried.remove(&bucket).is_some() {
            tracing::info!(copy = self.name(), %bucket, "a bucket is copied again");
        }
        if let Some(records) = self.records() {
            records.pass_no_more(bucket);
        }
    }

    /// Tells of those that are still there. The log has more of these, `behind`, than the next
    /// head.
    pub(super) fn tell_passed(
        &mut self,
        inner: &Inner,
        rows: &[Arc<BucketRow>],
        behind: &HashSet<BucketId>,
    ) {
        let is_there = |id: &BucketId| rows.iter().any(|row| row.id == *id);
        self.passed.tried.retain(|id, _| is_there(id));
        let is_behind = |id: &BucketId| behind.contains(id);
        self.passed.is_behind = self.passed.tried.keys().any(is_behind);
        self.progress.passed(Passed {
            count: self.passed.tried.len(),
            told: self.passed.told(),
            lacking: self.passed.lacking(inner),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_passed_over_are_named_up_to_a_number() {
        let mut passed = PassedOver::default();
        assert_eq!(passed.told(), None);
        passed.tried.insert(BucketId([7; 16]), Instant::now());
        let told = passed.told().unwrap_or_default();
        let id = BucketId([7; 16]).to_string();
        assert!(told.contains("1 of them") && told.contains(&id), "{told}");
        assert!(!told.contains("records"), "{told}");
        passed.is_behind = true;
        let told = passed.told().unwrap_or_default();
        assert!(
            told.contains("after 1024 records each write waits"),
            "{told}"
        );
        passed.is_behind = false;
        for byte in 0..=40 {
            passed.tried.insert(BucketId([byte; 16]), Instant::now());
        }
        let told = passed.told().unwrap_or_default();
        assert!(told.contains("…") && told.len() < 1_000, "{told}");
    }
}
