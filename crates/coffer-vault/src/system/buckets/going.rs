//! What an erase has taken out of sight, and whose rows are there until it is finished.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_seal::{BucketId, LevelId};

use super::BucketRow;
use crate::access::BucketName;
use crate::system::System;

/// Buckets and levels whose erase has begun. Their names stay taken until it is finished.
#[derive(Default)]
pub(super) struct Going {
    pub(super) rows: HashMap<BucketId, Arc<BucketRow>>,
    levels: HashSet<LevelId>,
    /// Those of which requests were cut off since the start.
    cut_off: HashSet<BucketId>,
    /// Of how many erases it is in doubt whether they are ordered.
    doubts: usize,
    /// The buckets that those are of, and of how many of them each is.
    doubtful: HashMap<BucketId, usize>,
}

impl Going {
    /// Whether it is in doubt whether a bucket that is set aside is to be erased.
    pub(super) fn is_doubtful(&self, id: BucketId) -> bool {
        self.doubtful.contains_key(&id) && self.rows.contains_key(&id)
    }

    fn begin_doubt(&mut self, ids: &[BucketId]) {
        for id in ids {
            *self.doubtful.entry(*id).or_default() += 1;
        }
    }

    fn end_doubt(&mut self, ids: &[BucketId]) {
        for id in ids {
            if let Some(count) = self.doubtful.get_mut(id) {
                *count -= 1;
            }
        }
        self.doubtful.retain(|_, count| *count > 0);
    }

    /// All of which that is in doubt.
    pub(super) fn doubtful(&self) -> impl Iterator<Item = &Arc<BucketRow>> {
        self.doubtful.keys().filter_map(|id| self.rows.get(id))
    }
}

/// While it is not known whether an erase will be ordered.
pub(crate) struct BeingOrdered<'a> {
    system: &'a System,
    ids: Vec<BucketId>,
}

impl BeingOrdered<'_> {
    /// Those of the buckets that no erase before has ordered: of these it is in doubt.
    pub(crate) fn ids(&self) -> &[BucketId] {
        &self.ids
    }
}

impl Drop for BeingOrdered<'_> {
    fn drop(&mut self) {
        self.system.buckets.write().going.end_doubt(&self.ids);
    }
}

impl System {
    /// Requests in these buckets were cut off, for an erase. Whether some had been before, since
    /// the start.
    pub(crate) fn note_cut_off(&self, ids: &[BucketId]) -> bool {
        let cut_off = &mut self.buckets.write().going.cut_off;
        let was_cut_off = ids.iter().any(|id| cut_off.contains(id));
        cut_off.extend(ids);
        was_cut_off
    }

    /// Whether requests in any of these buckets were cut off since the start, for an erase.
    pub(crate) fn was_cut_off(&self, ids: &[BucketId]) -> bool {
        let buckets = self.buckets.read();
        ids.iter().any(|id| buckets.going.cut_off.contains(id))
    }

    /// It is in doubt whether an erase is ordered that has set these buckets aside, until
    /// [`System::end_erase_doubt`].
    pub(crate) fn begin_erase_doubt(&self, ids: &[BucketId]) {
        let going = &mut self.buckets.write().going;
        going.doubts += 1;
        going.begin_doubt(ids);
    }

    /// One of these doubts is over.
    pub(crate) fn end_erase_doubt(&self, ids: &[BucketId]) {
        let going = &mut self.buckets.write().going;
        going.doubts = going.doubts.saturating_sub(1);
        going.end_doubt(ids);
    }

    /// An erase of these buckets is asked for, and not ordered yet: it may be refused. Until this
    /// is dropped, readers are told of none of them that it is there, or that it is not; but for
    /// those that are ordered to be erased already, which are gone.
    pub(crate) fn begin_ordering(&self, ids: &[BucketId]) -> BeingOrdered<'_> {
        let going = &mut self.buckets.write().going;
        let mut ids = ids.to_vec();
        ids.retain(|id| !going.rows.contains_key(id) || going.is_doubtful(*id));
        going.begin_doubt(&ids);
        BeingOrdered { system: self, ids }
    }

    /// Whether buckets may be out of sight that are not to be erased: then what is not among
    /// [`System::buckets`] is not taken for gone.
    pub(crate) fn is_an_erase_in_doubt(&self) -> bool {
        self.buckets.read().going.doubts > 0
    }

    /// Takes buckets out of sight for an erase, of a whole level where one is named, and gives out
    /// those that were in sight.
    pub(crate) fn set_aside(
        &self,
        ids: &[BucketId],
        level: Option<LevelId>,
    ) -> Vec<Arc<BucketRow>> {
        let mut buckets = self.buckets.write();
        let mut aside = Vec::new();
        for row in ids.iter().filter_map(|id| buckets.remove(*id)) {
            row.is_hidden.store(true, Ordering::SeqCst);
            aside.push(row);
        }
        let noted = aside.iter().map(|row| (row.id, row.clone()));
        buckets.going.rows.extend(noted);
        buckets.going.levels.extend(level);
        aside
    }

    /// Nothing was erased: those of them that are set aside still are in sight again.
    pub(crate) fn put_back(&self, aside: Vec<Arc<BucketRow>>, level: Option<LevelId>) {
        let mut buckets = self.buckets.write();
        for row in aside {
            if buckets.going.rows.remove(&row.id).is_some() {
                row.is_hidden.store(false, Ordering::SeqCst);
                buckets.insert(row);
            }
        }
        if let Some(level) = level {
            buckets.going.levels.remove(&level);
        }
    }

    /// An erase is finished.
    pub(crate) fn gone(&self, ids: &[BucketId], level: Option<LevelId>) {
        self.hide(ids);
        let mut buckets = self.buckets.write();
        for id in ids {
            buckets.going.rows.remove(id);
            buckets.going.cut_off.remove(id);
        }
        if let Some(level) = level {
            buckets.going.levels.remove(&level);
        }
    }

    /// The rows of those of them that are set aside.
    pub(crate) fn going(&self, ids: &[BucketId]) -> Vec<Arc<BucketRow>> {
        let buckets = self.buckets.read();
        let rows = ids.iter().filter_map(|id| buckets.going.rows.get(id));
        rows.cloned().collect()
    }

    /// Whether this bucket is set aside.
    pub(crate) fn is_going(&self, id: BucketId) -> bool {
        self.buckets.read().going.rows.contains_key(&id)
    }

    /// The bucket of this name, if it is set aside.
    pub(crate) fn going_named(&self, name: &BucketName) -> Option<Arc<BucketRow>> {
        let buckets = self.buckets.read();
        let mut rows = buckets.going.rows.values();
        rows.find(|row| row.name == *name).cloned()
    }

    /// Whether a bucket has this name, be it set aside.
    pub(crate) fn is_name_taken(&self, name: &BucketName) -> bool {
        self.bucket(name).is_some() || self.going_named(name).is_some()
    }

    /// Whether a bucket of this level is set aside.
    pub(crate) fn has_going_of(&self, level: LevelId) -> bool {
        let buckets = self.buckets.read();
        buckets.going.rows.values().any(|row| row.level_id == level)
    }

    /// Whether this level is being erased, so that nothing is made in it or of its keys.
    pub(crate) fn is_level_going(&self, id: LevelId) -> bool {
        self.buckets.read().going.levels.contains(&id)
    }
}
