//! Removing what no head of the window names any more.
//!
//! The *floor* is the newest head that has nothing from after the moment that the window reaches
//! back to. Heads below it go first, with the records between them that it has in it for sure, and
//! then what neither it nor a later one names: so a removal that is broken off leaves no head that
//! lacks anything, and the next one goes on.
//!
//! A head that does not open is no floor: the one before it is, which keeps all that it named.
//! Where there is none before it, nothing is removed until the one after it is the floor.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use coffer_seal::{BlobId, BucketId};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};

use crate::error::{ReplicaError, Result};
use crate::find::{folders_in, listed};
use crate::head::{Head, KnownHead};
use crate::limits::{BLOBS_LISTED_MAX, REMOVED_AT_ONCE};
use crate::names::{self, Number};
use crate::store::{Copy, remove};
use crate::write::CopyWriter;

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many objects.
    pub object_count: u64,
    /// The lowest head that is kept.
    pub floor: u64,
    /// Whether all was removed that could be; otherwise its time was over.
    pub is_complete: bool,
    /// Heads that are kept, and were met and do not open.
    pub damaged: BTreeSet<u64>,
}

/// What is under way.
struct Sweep {
    swept: Swept,
    until: Instant,
}

impl CopyWriter {
    /// Which blobs there are whose ids begin with this byte.
    ///
    /// # Errors
    /// Of the store.
    pub async fn blobs_from(&self, bucket: BucketId, first: u8) -> Result<HashSet<BlobId>> {
        let folder = names::blobs_from(bucket, first);
        let mut listed = self.copy.store.list(Some(&folder));
        let (mut ids, mut count) = (HashSet::new(), 0);
        while let Some(found) = listed.try_next().await? {
            count += 1;
            if count > BLOBS_LISTED_MAX {
                return Err(ReplicaError::endless(&folder));
            }
            ids.extend(names::blob_at(&found.location));
        }
        Ok(ids)
    }

    /// All blobs that there are of a bucket.
    pub fn blobs(&self, bucket: BucketId) -> impl Stream<Item = Result<BlobId>> + use<> {
        let listed = self.copy.store.list(Some(&names::blobs_of(bucket)));
        let ids = listed.try_filter_map(async |found| Ok(names::blob_at(&found.location)));
        ids.map_err(ReplicaError::from)
    }

    /// Removes blobs.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remove_blobs(&self, bucket: BucketId, ids: &[BlobId]) -> Result<()> {
        let paths = ids.iter().map(|id| names::blob(bucket, *id)).collect();
        remove_all(&*self.copy.store, paths).await?;
        Ok(())
    }

    /// Removes heads of before the one of `horizon_ms`, in milliseconds since 1970, pieces and
    /// segments that only those named, and all of buckets that the newest head does not have, but
    /// for those in `stay`, of which a round that failed may have put something. It ends soon after
    /// `until`. No round is under way.
    ///
    /// # Errors
    /// Of the store.
    pub async fn sweep(
        &self,
        horizon_ms: i64,
        stay: &HashSet<BucketId>,
        until: Instant,
    ) -> Result<Swept> {
        let copy = &self.copy;
        let at = copy.floor_at(horizon_ms).await?;
        let lowest = copy.number_from(0).await?;
        let floor = match (at.found, lowest) {
            // None: it is a record that the oldest head does not have in it yet.
            (Some(entry), _) => copy.base_of(&entry).await?,
            // What these named can't be told from what none names.
            (None, Some(_)) if !at.damaged.is_empty() => None,
            // All are of the window.
            (None, Some(number)) => copy.base_of(&copy.entry(number).await?).await?,
            (None, None) => Some(Arc::new(self.head.clone())),
        };
        let number = floor.as_ref().map(|floor| floor.number).or(lowest);
        let number = number.unwrap_or_default();
        let mut damaged = at.damaged;
        damaged.retain(|damaged| *damaged >= number);
        let swept = Swept {
            floor: number,
            damaged,
            ..Swept::default()
        };
        let mut sweep = Sweep { swept, until };
        let is_done = match &floor {
            Some(floor) => self.remove_below(floor, &mut sweep).await?,
            None => true,
        };
        sweep.swept.is_complete = is_done && self.remove_buckets(stay, &mut sweep).await?;
        Ok(sweep.swept)
    }

    /// Removes pieces and segments that rounds put which failed since the newest head was written,
    /// so that no head names them; but not segments of buckets in `stay`, which the next head is to
    /// name. No round is under way, and no head that was to follow is in doubt. How many there
    /// were.
    ///
    /// # Errors
    /// Of the store; [`ReplicaError::Fenced`] and the like.
    pub async fn remove_unnamed(&self, stay: &HashSet<BucketId>) -> Result<u64> {
        self.check_alone().await?;
        self.copy.remove_behind(self.head.bound(), stay).await
    }

    /// Whether all was removed.
    async fn remove_below(&self, floor: &Head, sweep: &mut Sweep) -> Result<bool> {
        let store = &*self.copy.store;
        let groups = self.copy.head_groups().await?.into_iter();
        for group in groups.filter(|group| *group <= names::head_group(floor.number)) {
            let numbers = self.copy.heads_in(group).await?.into_iter();
            let old = numbers.filter(|number| *number <= floor.covered());
            if !sweep.remove(store, old.map(names::head).collect()).await? {
                return Ok(false);
            }
        }
        let pieces = floor.files.values().flatten();
        let pieces: HashSet<Number> = pieces.map(|piece| piece.at).collect();
        let folder = Path::from(names::PIECES);
        let numbers = self.numbers_below(&folder, Some(floor.bound())).await?;
        let old = numbers.into_iter().filter(|at| !pieces.contains(at));
        if !sweep.remove(store, old.map(names::piece).collect()).await? {
            return Ok(false);
        }
        for id in self.head.buckets.keys() {
            let Some(bucket) = BucketId::from_hex(id) else {
                continue;
            };
            let first = floor.buckets.get(id).map(|state| state.first);
            let bound = first.unwrap_or(floor.bound());
            let folder = names::segments_of(bucket);
            let old = self.numbers_below(&folder, Some(bound)).await?;
            let old = old.into_iter().map(|at| names::segment(bucket, at));
            if !sweep.remove(store, old.collect()).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes all of buckets that the newest head does not have. Whether there was time for it.
    async fn remove_buckets(&self, stay: &HashSet<BucketId>, sweep: &mut Sweep) -> Result<bool> {
        let store = &*self.copy.store;
        for kind in [names::SEGMENTS, names::BLOBS] {
            for name in folders_in(store, &Path::from(kind)).await? {
                if let Some(bucket) = BucketId::from_hex(&name)
                    && !self.head.buckets.contains_key(&name)
                    && !stay.contains(&bucket)
                    && !self.remove_bucket(bucket, sweep).await?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn remove_bucket(&self, bucket: BucketId, sweep: &mut Sweep) -> Result<bool> {
        let store = &*self.copy.store;
        for folder in [names::segments_of(bucket), names::blobs_of(bucket)] {
            let mut listed = store.list(Some(&folder)).chunks(1_000);
            while let Some(found) = listed.next().await {
                let found = found.into_iter().map(|found| Ok(found?.location));
                let found = found.collect::<Result<_>>()?;
                // A writer that was paused may have listed what another has put since: that one
                // took its epoch before.
                self.check_alone().await?;
                if !sweep.remove(store, found).await? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The numbers in a folder, below `bound` if there is one.
    pub(crate) async fn numbers_below(
        &self,
        folder: &Path,
        bound: Option<Number>,
    ) -> Result<Vec<Number>> {
        let is_below = |number: &Number| bound.is_none_or(|bound| *number < bound);
        numbers_in(&*self.copy.store, folder, is_below, is_below).await
    }
}

impl Copy {
    /// Removes what puts left in a folder that were ended half-way, and that is of this age at
    /// least: such files have names that no other has, and nothing names them. How many there were.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remove_unfinished(&self, age: Duration) -> Result<u64> {
        let store = &*self.store;
        let kinds = [
            names::HEADS,
            names::PIECES,
            names::GONE,
            names::SEGMENTS,
            names::BLOBS,
        ];
        let before = SystemTime::now().checked_sub(age);
        let is_old = |found: &ObjectMeta| before > Some(SystemTime::from(found.last_modified));
        let mut count = 0;
        for kind in kinds {
            let mut listed = store.list(Some(&Path::from(kind)));
            while let Some(found) = listed.try_next().await? {
                if names::is_unfinished(&found.location) && is_old(&found) {
                    count += remove(store, &found.location).await?;
                }
            }
        }
        Ok(count)
    }

    /// Before the writer of `known` goes on with the copy after a start, if that is the newest head
    /// still: removes pieces and segments that it put after that. What is written since is of
    /// later epochs. Nothing of an engine's log. How many there were.
    ///
    /// # Errors
    /// Of the store.
    pub async fn remove_left(&self, known: &KnownHead) -> Result<u64> {
        self.check_record().await?;
        match self.newest_head().await? {
            Some((head, newest)) if newest == *known && head.refuse_engine().is_ok() => {
                self.remove_behind(head.bound(), &HashSet::new()).await
            }
            _ => Ok(0),
        }
    }

    /// Removes the pieces and segments of this number's epoch from it on.
    async fn remove_behind(&self, bound: Number, stay: &HashSet<BucketId>) -> Result<u64> {
        let store = &*self.store;
        let begins = |first: &Number| first.begins_folder_from(bound);
        let is_behind = |at: &Number| at.epoch == bound.epoch && *at >= bound;
        let pieces = numbers_in(store, &Path::from(names::PIECES), begins, is_behind).await?;
        let pieces = pieces.into_iter().map(names::piece);
        let mut count = remove_all(store, pieces.collect()).await?;
        for name in folders_in(store, &Path::from(names::SEGMENTS)).await? {
            let bucket = BucketId::from_hex(&name);
            let Some(bucket) = bucket.filter(|bucket| !stay.contains(bucket)) else {
                continue;
            };
            let folder = names::segments_of(bucket);
            let segments = numbers_in(store, &folder, begins, is_behind).await?;
            let segments = segments.into_iter().map(|at| names::segment(bucket, at));
            count += remove_all(store, segments.collect()).await?;
        }
        Ok(count)
    }
}

/// Numbers in a folder: which of its folders may have any is told by their first.
async fn numbers_in(
    store: &dyn ObjectStore,
    folder: &Path,
    may_have: impl Fn(&Number) -> bool,
    is_wanted: impl Fn(&Number) -> bool,
) -> Result<Vec<Number>> {
    let mut all = Vec::new();
    for name in folders_in(store, folder).await? {
        if !Number::first_of_group(&name).is_some_and(|first| may_have(&first)) {
            continue;
        }
        let listed = listed(store, &folder.clone().join(name)).await?;
        let names = listed.iter().filter_map(Path::filename);
        all.extend(names.filter_map(Number::from_name).filter(&is_wanted));
    }
    all.sort_unstable();
    Ok(all)
}

impl Sweep {
    /// Whether there was time for all of them. Some are removed in any case.
    async fn remove(&mut self, store: &dyn ObjectStore, paths: Vec<Path>) -> Result<bool> {
        for some in paths.chunks(REMOVED_AT_ONCE * 8) {
            self.swept.object_count += remove_all(store, some.to_vec()).await?;
            if Instant::now() >= self.until {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

async fn remove_all(store: &dyn ObjectStore, paths: Vec<Path>) -> Result<u64> {
    let removed = stream::iter(paths).map(|path| async move { remove(store, &path).await });
    let removed = removed.buffered(REMOVED_AT_ONCE);
    removed
        .try_fold(0, async |sum, count| Ok(sum + count))
        .await
}
