//! What is in doubt where an older copy is gone on from.

use std::collections::HashSet;

use coffer_seal::{BucketId, LevelId};
use coffer_store::StoreError;
use rusqlite::{Transaction, params};

use super::LockBound;
use crate::error::{Result, VaultError};
use crate::system::commits::raise_count;
use crate::system::{BucketConfiguration, BucketRow, KeyReleases, System, set_document};

/// What is in doubt: of another time than what it goes with.
pub(crate) struct Doubts<'a> {
    /// Whether drafts of erases are: then they are no orders any more.
    pub(crate) orders: bool,
    /// Buckets whose erase is ordered.
    pub(crate) ordered: HashSet<BucketId>,
    /// Whether there is a catalog of a bucket.
    pub(crate) has_catalog: &'a dyn Fn(BucketId) -> bool,
    /// Whether the keystore has no key for a bucket.
    pub(crate) lacks_key: &'a dyn Fn(&BucketRow) -> bool,
    /// Whether the keystore is of after `system.db`: then each key that it lacks of a level that it
    /// has was destroyed. An older one may be of before the bucket was made.
    pub(crate) is_keystore_later: bool,
    /// Levels in which data keys may have been released that were not counted.
    pub(crate) key_releases: Vec<LevelId>,
    /// Whether subjects and access keys are: then all of them are disabled.
    pub(crate) subjects: bool,
    /// How many commits it has had from then on, at least: more than what was put aside can have.
    pub(crate) commit_count: u64,
}

#[cfg(test)]
impl<'a> Doubts<'a> {
    /// Of locks alone.
    pub(crate) fn of_locks(has_catalog: &'a dyn Fn(BucketId) -> bool) -> Self {
        Self {
            orders: false,
            ordered: HashSet::new(),
            has_catalog,
            lacks_key: &|_| false,
            is_keystore_later: false,
            key_releases: Vec::new(),
            subjects: false,
            commit_count: 0,
        }
    }
}

impl System {
    /// Notes all of it in one transaction: once some of it is committed, a start after a stop may
    /// find nothing any more that is older.
    pub(crate) fn doubt(&self, doubts: Doubts<'_>) -> Result<()> {
        let kind = BucketConfiguration::LockBound.name();
        let mut bounds = Vec::new();
        for row in self.buckets() {
            row.documents.locks_made().changes += 1;
            let bound = self.doubted_bound(&row, &doubts).to_document();
            bounds.push((row, bound));
        }
        let subjects = if doubts.subjects {
            self.all_disabled()
        } else {
            Vec::new()
        };
        let settle = {
            let (bounds, subjects) = (bounds.clone(), subjects.clone());
            move |system: &Self, is_noted: bool| {
                if is_noted {
                    for (row, bound) in bounds {
                        row.documents.set(kind, bound.map(Into::into));
                    }
                    system.show_subjects(subjects);
                }
            }
        };
        let note = |transaction: &Transaction<'_>| {
            if doubts.orders {
                doubt_orders(transaction)?;
            }
            let unknown = KeyReleases {
                count: 0,
                is_incomplete: true,
            };
            for level_id in &doubts.key_releases {
                Self::add_key_releases(transaction, *level_id, unknown)?;
            }
            for (row, bound) in &bounds {
                set_document(transaction, row.id, kind, bound.as_deref())?;
            }
            Self::write_subjects(transaction, &subjects)?;
            raise_count(transaction, doubts.commit_count)
        };
        let mut held = self.held();
        held.change_then(note, Box::new(settle))?;
        held.link.forget_number();
        Ok(())
    }

    /// What the bound of a bucket says is of another time than its catalog is. Where there is no
    /// catalog, for the copy left out what was ordered to be erased, it stays: what was locked
    /// was looked at when the order was given, and nothing was let in since.
    ///
    /// Nor is there anything to be locked in one whose key was destroyed.
    fn doubted_bound(&self, row: &BucketRow, doubts: &Doubts<'_>) -> LockBound {
        let bound = self.lock_bound(row);
        let was_destroyed = bound.as_ref().is_ok_and(|bound| bound.is_key_destroyed);
        if (doubts.is_keystore_later || was_destroyed) && (doubts.lacks_key)(row) {
            return LockBound {
                is_key_destroyed: true,
                ..LockBound::UNKNOWN
            };
        }
        match bound {
            Ok(bound)
                if (bound.is_left_to_erase || doubts.ordered.contains(&row.id))
                    && !(doubts.has_catalog)(row.id) =>
            {
                LockBound {
                    is_left_to_erase: true,
                    ..bound
                }
            }
            _ => LockBound::UNKNOWN,
        }
    }

    /// Has the bounds of buckets say that there may be a hold whose catalog had been left out, and
    /// is there by now: whatever is locked there was not looked at when the erase was ordered.
    pub(crate) fn doubt_found(&self, has_catalog: impl Fn(BucketId) -> bool) -> Result<()> {
        for row in self.buckets() {
            // One that can't be read has each erase refused.
            let bound = self.lock_bound(&row);
            if bound.is_ok_and(|bound| bound.is_left_to_erase) && has_catalog(row.id) {
                let unknown = LockBound::UNKNOWN.to_document();
                self.configure(&row, BucketConfiguration::LockBound, unknown)?;
            }
        }
        Ok(())
    }
}

/// Has no draft of an erase be an order.
fn doubt_orders(transaction: &Transaction<'_>) -> Result<()> {
    let read = || -> rusqlite::Result<Vec<([u8; 16], String)>> {
        let mut statement = transaction.prepare("SELECT id, document FROM erase")?;
        let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    for (id, json) in read().map_err(StoreError::from)? {
        let draft: serde_json::Result<serde_json::Map<_, _>> = serde_json::from_str(&json);
        let mut draft = draft.map_err(|_| VaultError::Damaged)?;
        draft.insert("is_ordered".to_owned(), false.into());
        let json = serde_json::to_string(&draft).map_err(|_| VaultError::Damaged)?;
        let replace = "UPDATE erase SET document = ? WHERE id = ?";
        let run = transaction.execute(replace, params![json, id]);
        run.map_err(StoreError::from)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
