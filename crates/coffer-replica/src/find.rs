//! Finding heads: the newest, and that of a moment.
//!
//! Heads, and records in a log that has such, have consecutive numbers, of which the lowest are
//! removed, so that a few requests find one among millions.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::pin::pin;

use coffer_durable::now_ms;
use coffer_seal::{KeystoreId, SecretKey};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStore;
use object_store::path::Path;

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::head::entry::Entry;
use crate::head::{Gap, Head, KnownHead, NOT_OPEN};
use crate::limits::{HEAD_MAX_BYTES, HEADS_READ_AT_ONCE, HEADS_TRIED, LISTED_MAX};
use crate::names;
use crate::store::{Copy, CopyRecord, Store, get};

pub(crate) mod fold;

pub(crate) mod times;

impl Copy {
    /// The copy that says this of itself, for who has its keystore. Where it says another one, and
    /// its newest head opens all the same, that was altered: what is sealed counts.
    ///
    /// # Errors
    /// [`ReplicaError::ForeignCopy`], [`ReplicaError::OtherId`]; of the store.
    pub async fn of(
        store: Store,
        record: CopyRecord,
        keystore: KeystoreId,
        system_key: &SecretKey,
    ) -> Result<Self> {
        let copy = Self::new(store, record.copy, system_key);
        let found = record.keystore;
        if found == keystore.to_string() {
            copy.check_id().await?;
            return Ok(copy);
        }
        match copy.newest_entry().await {
            Ok(Some(_)) => Ok(copy),
            Err(error) if error.is_passing() => Err(error),
            _ => Err(ReplicaError::ForeignCopy { found }),
        }
    }

    /// Refuses an id by which neither the newest nor the oldest heads open, if there are any: the
    /// key is derived by it.
    async fn check_id(&self) -> Result<()> {
        let Some(newest) = self.newest_number().await? else {
            return Ok(());
        };
        let oldest = self.number_from(0).await?.unwrap_or(newest);
        let last = newest.min(oldest.saturating_add(HEADS_TRIED));
        let from = oldest.max(newest.saturating_sub(HEADS_TRIED));
        for number in (from..=newest).rev().chain(oldest..=last) {
            match self.entry(number).await {
                Err(ReplicaError::Altered { problem, .. }) if problem == NOT_OPEN => {}
                Err(ReplicaError::Missing { .. }) => {}
                Err(error) if error.is_passing() => return Err(error),
                // It opens, or by its length or format is none that it should open.
                _ => return Ok(()),
            }
        }
        Err(ReplicaError::OtherId {
            found: self.id,
            newest: names::head(newest).to_string(),
        })
    }

    /// The newest head, without what records behind it add; none of a copy that has none yet.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`] when it does not open.
    pub async fn newest_head(&self) -> Result<Option<(Head, KnownHead)>> {
        let Some(number) = self.newest_number().await? else {
            return Ok(None);
        };
        let newest = self.entry(number).await?;
        match newest.head() {
            Ok(head) => Ok(Some((Head::clone(head), newest.known))),
            Err(number) => Ok(Some(self.head(number).await?)),
        }
    }

    /// The newest head or record; none of a copy that has none yet.
    pub(crate) async fn newest_entry(&self) -> Result<Option<Entry>> {
        match self.newest_number().await? {
            Some(number) => Ok(Some(self.entry(number).await?)),
            None => Ok(None),
        }
    }

    /// What has a number, a head or a record.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub(crate) async fn entry(&self, number: u64) -> Result<Entry> {
        let found = get(&*self.store, &names::head(number), HEAD_MAX_BYTES).await?;
        Entry::open(&self.key, self.id, number, &found)
    }

    /// The head of a number.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn head(&self, number: u64) -> Result<(Head, KnownHead)> {
        let sealed = get(&*self.store, &names::head(number), HEAD_MAX_BYTES).await?;
        Head::open(&self.key, self.id, number, &sealed)
    }

    /// The first head or record from this number on, up to `last`, that opens: some may be missing,
    /// as it is when a removal is broken off, or damaged.
    pub(crate) async fn entry_from(
        &self,
        mut number: u64,
        last: u64,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<Option<Entry>> {
        while number <= last {
            match self.entry(number).await {
                Err(ReplicaError::Altered { .. }) => {
                    damaged.insert(number);
                    number += 1;
                }
                Err(ReplicaError::Missing { .. }) => match self.number_from(number + 1).await? {
                    Some(next) => number = next,
                    None => return Ok(None),
                },
                found => return found.map(Some),
            }
        }
        Ok(None)
    }

    /// The heads beside this one, which does not open, that do not open either; and the time of
    /// which the copy has no state for that.
    ///
    /// # Errors
    /// Of the store.
    pub async fn damage_around(&self, number: u64) -> Result<(RangeInclusive<u64>, Gap)> {
        let (mut first, mut before) = (number, None);
        while before.is_none() && first > 1 {
            match self.entry(first - 1).await {
                Ok(entry) => before = Some(entry),
                Err(ReplicaError::Altered { .. }) => first -= 1,
                Err(ReplicaError::Missing { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        let newest = self.newest_number().await?.unwrap_or(number);
        let mut damaged = BTreeSet::from([number]);
        let after = self.entry_from(number + 1, newest, &mut damaged).await?;
        let last = damaged.last().copied().unwrap_or(number);
        let from_ms = before.as_ref().map_or(0, Entry::as_of_ms);
        let (first_ms, to_ms) = after.map_or((from_ms, now_ms()), |entry| {
            (entry.first_ms(), entry.as_of_ms())
        });
        let gap = Gap {
            from_ms: from_ms.max(first_ms).min(to_ms),
            to_ms,
        };
        Ok((first..=last, gap))
    }

    /// The heads and records that do not open, of all up to this one.
    ///
    /// # Errors
    /// Of the store.
    pub async fn damaged_heads(&self, last: u64) -> Result<Vec<u64>> {
        let mut damaged = Vec::new();
        for group in self.head_groups().await? {
            let numbers = self.heads_in(group).await?.into_iter();
            let numbers = numbers.filter(|number| *number <= last);
            let opened =
                stream::iter(numbers).map(async |number| (number, self.entry(number).await));
            let mut opened = pin!(opened.buffered(HEADS_READ_AT_ONCE));
            while let Some((number, entry)) = opened.next().await {
                match entry {
                    Err(ReplicaError::Altered { .. }) => damaged.push(number),
                    // It left the window meanwhile.
                    Ok(_) | Err(ReplicaError::Missing { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(damaged)
    }

    /// The heads and records of up to this one that are gone, of those that a window is to have
    /// that goes back to this moment; with the time of which there is no state for that. What a
    /// removal took is older than the newest that is as of that moment or before.
    ///
    /// # Errors
    /// Of the store.
    pub async fn missing_heads(
        &self,
        last: u64,
        horizon_ms: i64,
    ) -> Result<Vec<(RangeInclusive<u64>, Gap)>> {
        let floor = self.entry_at(horizon_ms).await?.found;
        let floor = match floor {
            None => self.oldest_before(horizon_ms).await?,
            floor => floor,
        };
        let mut before = floor.as_ref().map_or(0, Entry::number);
        let mut before_ms = floor.as_ref().map_or(horizon_ms, Entry::as_of_ms);
        let mut missing = Vec::new();
        for group in self.head_groups().await? {
            for number in self.heads_in(group).await? {
                if number <= before || number > last {
                    continue;
                }
                let first = before + 1;
                before = number;
                if first == number {
                    continue;
                }
                if let Some(below) = opened(self.entry(first - 1).await)? {
                    before_ms = before_ms.max(below.as_of_ms());
                }
                // Of one that does not open it is not known whether it was the oldest.
                if let Some(after) = opened(self.entry(number).await)? {
                    let to_ms = after.as_of_ms();
                    let from_ms = before_ms.max(after.first_ms()).min(to_ms);
                    missing.push((first..=number - 1, Gap { from_ms, to_ms }));
                }
            }
        }
        Ok(missing)
    }

    /// Whether the head of this number is this very one; false when it left the window.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`] when it is another; [`ReplicaError::Missing`].
    pub(crate) async fn is_there(&self, known: &KnownHead) -> Result<bool> {
        let path = names::head(known.number);
        match get(&*self.store, &path, HEAD_MAX_BYTES).await {
            Ok(found) if sha256_hex(&found) == known.sha256 => Ok(true),
            Ok(_) => Err(ReplicaError::Altered {
                object: path.to_string(),
                problem: "its hash is not the one that is known",
            }),
            Err(error @ ReplicaError::Missing { .. }) => match self.number_from(0).await? {
                Some(lowest) if lowest > known.number => Ok(false),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The highest number of a head.
    pub(crate) async fn newest_number(&self) -> Result<Option<u64>> {
        // A folder may be empty.
        for group in self.head_groups().await?.into_iter().rev() {
            if let Some(number) = self.heads_in(group).await?.pop() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The lowest number of a head that is not below this one.
    pub(crate) async fn number_from(&self, from: u64) -> Result<Option<u64>> {
        let groups = self.head_groups().await?.into_iter();
        for group in groups.filter(|group| *group >= names::head_group(from)) {
            let numbers = self.heads_in(group).await?;
            if let Some(number) = numbers.into_iter().find(|number| *number >= from) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The folders of heads, ascending.
    pub(crate) async fn head_groups(&self) -> Result<Vec<u64>> {
        let names = folders_in(&*self.store, &Path::from(names::HEADS)).await?;
        let mut groups: Vec<u64> = names
            .iter()
            .filter_map(|name| names::head_group_at(name))
            .collect();
        groups.sort_unstable();
        Ok(groups)
    }

    /// The numbers of a folder's heads, ascending.
    pub(crate) async fn heads_in(&self, group: u64) -> Result<Vec<u64>> {
        let listed = listed(&*self.store, &names::heads_of(group)).await?;
        let names = listed.iter().filter_map(Path::filename);
        let mut numbers: Vec<u64> = names.filter_map(names::head_number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// None of what is missing or does not open; what the store did not say is not known.
fn opened(entry: Result<Entry>) -> Result<Option<Entry>> {
    match entry {
        Ok(entry) => Ok(Some(entry)),
        Err(error) if error.is_passing() => Err(error),
        Err(_) => Ok(None),
    }
}

/// What lies below a folder, of which there are so many at most: a store that tells of more without
/// an end is not listened to.
pub(crate) async fn listed(store: &dyn ObjectStore, folder: &Path) -> Result<Vec<Path>> {
    let mut listed = store.list(Some(folder));
    let mut found = Vec::new();
    while let Some(next) = listed.try_next().await? {
        if found.len() >= LISTED_MAX {
            return Err(ReplicaError::endless(folder));
        }
        found.push(next.location);
    }
    Ok(found)
}

/// The names of the folders in a folder.
pub(crate) async fn folders_in(store: &dyn ObjectStore, folder: &Path) -> Result<Vec<String>> {
    let listed = store.list_with_delimiter(Some(folder)).await?;
    let names = listed.common_prefixes.iter().filter_map(Path::filename);
    Ok(names.map(str::to_owned).collect())
}
