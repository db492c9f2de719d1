//! Covers data keys that are about to be given to clients, by a bound that is durable before a key
//! is given and higher than what was, so that few releases raise it.

use std::sync::Arc;

use coffer_seal::LevelId;
use coffer_store::StoreError;
use rusqlite::params;

use super::{KeyReleases, of_level};
use crate::error::Result;
use crate::limits::KEY_RELEASES_STEP;
use crate::system::configuration::{BucketConfiguration, KeysGiven};
use crate::system::{BucketRow, System};

impl System {
    fn key_release_bound(row: &BucketRow) -> Result<KeyReleases> {
        let document = row.documents.get(BucketConfiguration::KeyReleases);
        KeyReleases::of_document(document.as_deref())
    }

    /// Has the bucket's bound cover so many data keys more, durably, before they are given to a
    /// client. May wait for the disk.
    ///
    /// # Errors
    /// Then no key may be given: that of a bucket that is out of use, among others.
    pub(crate) fn cover_key_release(&self, row: &Arc<BucketRow>, count: u64) -> Result<()> {
        let mut given = row.documents.keys_given();
        // An erase or a deletion counts them once the bucket is out of sight.
        if row.is_out_of_use() {
            return Err(self.out_of_use(row));
        }
        let bound = Self::key_release_bound(row)?;
        let number = given.after(bound, count);
        // Whether a lowering that failed has happened is not known: what is told may be too high.
        if number > bound.count || given.may_be_lowered {
            let raised = bound.with_count(number.saturating_add(KEY_RELEASES_STEP));
            let document = Some(raised.to_document());
            self.configure(row, BucketConfiguration::KeyReleases, document)?;
            given.may_be_lowered = false;
        }
        given.number = Some(number);
        Ok(())
    }

    /// The same where it takes no waiting; whether it did it.
    pub(crate) fn covers_key_release(&self, row: &BucketRow, count: u64) -> bool {
        let Some(mut given) = row.documents.try_keys_given() else {
            return false;
        };
        let Ok(bound) = Self::key_release_bound(row) else {
            return false;
        };
        let number = given.after(bound, count);
        let is_covered = number <= bound.count && !given.may_be_lowered && !row.is_out_of_use();
        if is_covered {
            given.number = Some(number);
        }
        is_covered
    }

    /// How many data keys of a bucket were given, at most. None is given any more once the bucket
    /// is out of use.
    pub(crate) fn key_releases(&self, row: &BucketRow) -> KeyReleases {
        let given = row.documents.keys_given();
        match Self::key_release_bound(row) {
            Ok(bound) => bound.with_count(given.number.unwrap_or(bound.count)),
            Err(_) => KeyReleases {
                count: given.number.unwrap_or(0),
                is_incomplete: true,
            },
        }
    }

    /// How many data keys were given of a level's buckets that are gone, at most.
    pub(crate) fn level_key_releases(&self, level_id: LevelId) -> Result<KeyReleases> {
        self.held()
            .read(|connection| of_level(connection, level_id))
    }

    /// Lowers the bounds to what was given: at the end, so that a stop costs no exactness.
    pub(crate) fn settle_key_releases(&self) -> Result<()> {
        let rows = self.buckets();
        let mut lowered = Vec::new();
        for row in &rows {
            let given = row.documents.keys_given();
            let (Some(number), Ok(bound)) = (given.number, Self::key_release_bound(row)) else {
                continue;
            };
            if number < bound.count {
                lowered.push((row.clone(), bound.with_count(number).to_document(), given));
            }
        }
        if lowered.is_empty() {
            return Ok(());
        }
        // Held until it is known whether it happened, so that nothing is given meanwhile.
        for (_, _, given) in &mut lowered {
            given.may_be_lowered = true;
        }
        let kind = BucketConfiguration::KeyReleases.name();
        let documents = lowered
            .iter()
            .map(|(row, document, _)| (row.id.0, document));
        self.held().change(|transaction| {
            for (id, document) in documents {
                let sql = "UPDATE bucket_configuration SET document = ?
                           WHERE bucket_id = ? AND kind = ?";
                let params = params![document, id, kind];
                transaction.execute(sql, params).map_err(StoreError::from)?;
            }
            Ok(())
        })?;
        for (row, document, given) in &mut lowered {
            row.documents.set(kind, Some(Arc::from(document.as_str())));
            given.may_be_lowered = false;
        }
        Ok(())
    }
}

impl KeysGiven {
    /// How many it will be; after a start, as many as the bound says were before.
    fn after(&self, bound: KeyReleases, count: u64) -> u64 {
        self.number.unwrap_or(bound.count).saturating_add(count)
    }
}

#[cfg(test)]
mod tests;
