//! Entries of a log by time: that of a moment, and the oldest that a window needs.
//!
//! What entries are as of never falls from one to the next, whatever the clock does, so that a few
//! reads find that of a moment. When a clock that was ahead is put right, all that is written until
//! the time has come that it had shown is as of that time. Those entries are told apart by when
//! each was written, by the clock that was put right.

use std::collections::BTreeSet;

use crate::error::{ReplicaError, Result};
use crate::head::entry::Entry;
use crate::store::Copy;

/// What was found of a moment.
#[derive(Default)]
pub(crate) struct EntryAt {
    /// The head or record.
    pub(crate) found: Option<Entry>,
    /// Those that were looked at and do not open.
    pub(crate) damaged: BTreeSet<u64>,
}

impl Copy {
    /// The newest head or record that opens and holds nothing from after this moment, in
    /// milliseconds since 1970; none when the oldest that opens does. Those that do not open are
    /// passed over, and named as far as they were met.
    pub(crate) async fn entry_at(&self, at_ms: i64) -> Result<EntryAt> {
        let mut at = EntryAt::default();
        let Some((low, high)) = self.numbers().await? else {
            return Ok(at);
        };
        let is_as_of = |entry: &Entry| entry.as_of_ms() <= at_ms;
        let mut found = self
            .last_where((low, high), &mut at.damaged, is_as_of)
            .await?;
        // It was being read at that moment: few are.
        while let Some(later) = found.take_if(|found| found.until_ms() > at_ms) {
            found = self
                .entry_before(later.number(), low, &mut at.damaged)
                .await?;
        }
        at.found = found;
        Ok(at)
    }

    /// The oldest entry that a window needs which reaches back to this moment: that of the moment;
    /// or a later one where entries are as of a time that has not come yet. Then it is that of so
    /// long before the newest was written, for the clock has run for that long since it was put
    /// back, and whether it was ahead before that or is behind makes no difference.
    pub(crate) async fn floor_at(&self, horizon_ms: i64) -> Result<EntryAt> {
        let mut at = self.entry_at(horizon_ms).await?;
        let newest = match self.newest_entry().await {
            Ok(Some(newest)) if newest.is_behind() => newest,
            Ok(_) | Err(ReplicaError::Altered { .. } | ReplicaError::Missing { .. }) => {
                return Ok(at);
            }
            Err(error) => return Err(error),
        };
        let kept_ms = (self.clock)().saturating_sub(horizon_ms);
        let by_ms = newest.written_ms().saturating_sub(kept_ms);
        let behind = self
            .behind(newest.as_of_ms(), by_ms, &mut at.damaged)
            .await?;
        let before = at.found.as_ref().map_or(0, Entry::number);
        if let Some(entry) = behind.filter(|entry| entry.number() > before) {
            at.found = Some(entry);
        }
        Ok(at)
    }

    /// The oldest entry that is there, if it was written before this moment.
    pub(crate) async fn oldest_before(&self, at_ms: i64) -> Result<Option<Entry>> {
        let Some((low, high)) = self.numbers().await? else {
            return Ok(None);
        };
        let oldest = self.entry_from(low, high, &mut BTreeSet::new()).await?;
        Ok(oldest.filter(|oldest| oldest.written_ms() <= at_ms))
    }

    /// Of the entries that are as of `as_of_ms` though they were written before it: the newest that
    /// was written at `by_ms` or before.
    pub(crate) async fn behind(
        &self,
        as_of_ms: i64,
        by_ms: i64,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<Option<Entry>> {
        let Some((low, high)) = self.numbers().await? else {
            return Ok(None);
        };
        let is_as_of = |entry: &Entry| entry.as_of_ms() <= as_of_ms;
        let mut last = self.last_where((low, high), damaged, is_as_of).await?;
        // What was begun before that time, and written after it, is not one of them.
        let is_later =
            |entry: &mut Entry| entry.as_of_ms() == as_of_ms && entry.written_ms() >= as_of_ms;
        while let Some(later) = last.take_if(is_later) {
            last = self.entry_before(later.number(), low, damaged).await?;
        }
        let Some(last) = last.filter(|last| last.as_of_ms() == as_of_ms) else {
            return Ok(None);
        };
        let is_before =
            |entry: &Entry| entry.as_of_ms() < as_of_ms || entry.written_ms() >= as_of_ms;
        let range = (low, last.number());
        let before = self.last_where(range, damaged, is_before).await?;
        let first = before.map_or(low, |before| before.number() + 1);
        let range = (first, last.number());
        let is_by = |entry: &Entry| entry.written_ms() <= by_ms;
        self.last_where(range, damaged, is_by).await
    }

    /// The lowest and the highest number; none of a copy that has no head yet.
    async fn numbers(&self) -> Result<Option<(u64, u64)>> {
        let low = self.number_from(0).await?;
        Ok(low.zip(self.newest_number().await?))
    }

    /// The last of these numbers of which something is so that opens: it is so of the first, and of
    /// all up to some one. None, where it is not so of the first.
    async fn last_where(
        &self,
        (low, mut high): (u64, u64),
        damaged: &mut BTreeSet<u64>,
        is_so: impl Fn(&Entry) -> bool,
    ) -> Result<Option<Entry>> {
        let lowest = self.entry_from(low, high, damaged).await?;
        let Some(lowest) = lowest.filter(|lowest| is_so(lowest)) else {
            return Ok(None);
        };
        let (mut low, mut found) = (lowest.number(), lowest);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            match self.entry_from(middle, high, damaged).await? {
                Some(entry) if is_so(&entry) => {
                    low = entry.number();
                    found = entry;
                }
                _ => high = middle - 1,
            }
        }
        Ok(Some(found))
    }

    /// The last entry below a number, from `low` on, that is there and opens.
    async fn entry_before(
        &self,
        number: u64,
        low: u64,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<Option<Entry>> {
        for number in (low..number).rev() {
            match self.entry(number).await {
                Err(ReplicaError::Altered { .. }) => {
                    damaged.insert(number);
                }
                Err(ReplicaError::Missing { .. }) => {}
                found => return found.map(Some),
            }
        }
        Ok(None)
    }
}
