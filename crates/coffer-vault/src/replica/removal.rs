//! Removing what falls out of the window, and noting down blobs that are of no object any more.
//!
//! A blob whose file is gone and that the catalog does not name was deleted. The copy keeps it
//! until no head of the window can name it. One that the catalog names was lost: the copy's may be
//! the last.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::time::Instant;

use coffer_durable::{now_ms, rfc3339};
use coffer_replica::limits::{GAP_MIN_MS, GONE_LIST_MAX, UNFINISHED_AGE};
use coffer_replica::{CopyWriter, GoneList, Swept};
use coffer_seal::{BlobId, BucketId};
use futures::StreamExt;

use super::round::Round;
use super::{is_gone, is_passing};
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::limits::{
    COPY_GONE_MAX, COPY_MAKE_ROOM, COPY_PROBES_EVERY, COPY_SWEEP_TIME, COPY_UNFINISHED_EVERY,
    ENGINE_KEEP_MS,
};

mod full;

/// So many are looked for at once.
const BLOBS_LISTED: usize = 1_000;

impl Round {
    /// As [`Round::sweep`], unless that just failed. A store that refuses removals keeps no head
    /// from being written: it is told.
    pub(super) async fn try_sweep(&mut self, writer: &mut CopyWriter) -> Result<bool> {
        let failed = self.unswept.as_ref();
        if failed.is_some_and(|(at, _)| at.elapsed() < COPY_PROBES_EVERY) {
            return Ok(false);
        }
        match self.sweep(writer).await {
            Ok(is_done) => {
                self.unswept = None;
                Ok(is_done)
            }
            Err(error) if is_passing(&error) && !is_gone(&error) => {
                tracing::warn!(
                    copy = self.name(), %error,
                    "what is out of a copy's window could not be removed"
                );
                self.unswept = Some((Instant::now(), error.to_string()));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes what is out of the window, unless the copy is being read, for a short time. Whether
    /// it is done.
    async fn sweep(&mut self, writer: &mut CopyWriter) -> Result<bool> {
        let Some(removing) = self.readers.begin_removal() else {
            return Ok(true);
        };
        let until = Instant::now() + COPY_SWEEP_TIME;
        let horizon_ms = self.horizon_ms();
        let swept = writer.sweep(horizon_ms, &HashSet::new(), until).await?;
        // Those who begin to read now find the newest head, which needs nothing of what goes below.
        drop(removing);
        self.has_lost_buckets = false;
        self.tell_damage(writer, &swept).await?;
        if swept.object_count > 0 {
            tracing::debug!(copy = self.name(), objects = swept.object_count, "swept");
        }
        if !swept.is_complete {
            return Ok(false);
        }
        if self.gone.is_none() {
            self.gone = Some(writer.gone_lists().await?);
        }
        if !self.remove_gone(writer, swept.floor, until).await? {
            return Ok(false);
        }
        self.find_gone(writer).await?;
        let is_due = |last: Instant| last.elapsed() > COPY_UNFINISHED_EVERY;
        if self.is_in_folder() && self.tidied.is_none_or(is_due) {
            writer.copy().remove_unfinished(UNFINISHED_AGE).await?;
            self.tidied = Some(Instant::now());
        }
        Ok(true)
    }

    /// How long what was stays. Of a log with records a day at least: no number is free before that
    /// which another writer may have for its next.
    fn keep_ms(&self) -> i64 {
        let least_ms = match self.records() {
            Some(_) => ENGINE_KEEP_MS,
            None => 0,
        };
        self.entry.keep_ms.max(least_ms)
    }

    /// The moment that the window reaches back to. A clock that is set ahead while this runs takes
    /// nothing out of it early.
    fn horizon_ms(&self) -> i64 {
        let passed_ms = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let latest_ms = self.began_ms.saturating_add(passed_ms);
        let now_ms = now_ms().min(latest_ms.saturating_add(GAP_MIN_MS));
        now_ms - self.keep_ms()
    }

    /// Removes what is out of the window though a round failed: the store may be full. What is gone
    /// is not noted then, for a head may have come that is not known yet.
    async fn make_room(&mut self, writer: &CopyWriter) -> Result<Swept> {
        let until = Instant::now() + COPY_MAKE_ROOM;
        let rows = self.inner()?.system.buckets_known().into_iter();
        let mut stay: HashSet<BucketId> = rows.map(|row| row.id).collect();
        stay.extend(self.chains.keys().chain(self.unfinished.keys()));
        let horizon_ms = self.horizon_ms();
        let swept = writer.sweep(horizon_ms, &stay, until).await?;
        if swept.is_complete {
            if self.gone.is_none() {
                self.gone = Some(writer.gone_lists().await?);
            }
            self.remove_gone(writer, swept.floor, until).await?;
        }
        Ok(swept)
    }

    /// Tells once of heads that do not open: the time that they leave without a state is a gap.
    async fn tell_damage(&mut self, writer: &CopyWriter, swept: &Swept) -> Result<()> {
        self.damaged.retain(|heads| *heads.end() >= swept.floor);
        for number in &swept.damaged {
            if self.damaged.iter().any(|heads| heads.contains(number)) {
                continue;
            }
            let (heads, gap) = writer.copy().damage_around(*number).await?;
            tracing::error!(
                copy = self.name(),
                first = heads.start(),
                last = heads.end(),
                from = %rfc3339(gap.from_ms),
                to = %rfc3339(gap.to_ms),
                "heads of a copy do not open: it has no state of that time"
            );
            self.progress.damaged(gap);
            self.damaged.push(heads);
        }
        Ok(())
    }

    /// Removes blobs of lists that are older than all heads. Whether there was time for all.
    async fn remove_gone(
        &mut self,
        writer: &CopyWriter,
        floor: u64,
        until: Instant,
    ) -> Result<bool> {
        let lists = self.gone.take().unwrap_or_default();
        let (due, mut kept): (Vec<_>, Vec<_>) =
            lists.into_iter().partition(|list| list.head < floor);
        let mut due = due.into_iter();
        let mut done = Ok(true);
        while let Some(list) = due.as_slice().first() {
            done = self.remove_list(writer, list, until).await;
            if !matches!(done, Ok(true)) {
                break;
            }
            due.next();
        }
        kept.extend(due);
        self.gone = Some(kept);
        done
    }

    async fn remove_list(
        &self,
        writer: &CopyWriter,
        list: &GoneList,
        until: Instant,
    ) -> Result<bool> {
        let inner = self.inner()?;
        for (bucket, ids) in &list.blobs {
            // Those of a bucket that is gone went with it.
            if inner.system.bucket_of_id(*bucket).is_none() {
                continue;
            }
            for ids in ids.chunks(BLOBS_LISTED) {
                // A catalog that was put back may name some of them again.
                let gone = self.deleted(*bucket, ids.to_vec()).await?;
                writer.remove_blobs(*bucket, &gone).await?;
                if Instant::now() >= until {
                    return Ok(false);
                }
            }
        }
        writer.remove_list(list).await?;
        Ok(true)
    }

    /// Those of them that have no file, are not in use, and that the catalog does not name.
    async fn deleted(&self, bucket: BucketId, ids: Vec<BlobId>) -> Result<Vec<BlobId>> {
        let inner = self.inner()?;
        let blobs = inner.open_buckets.blobs_of(&inner.folder, bucket);
        let absent = move || {
            let is_gone = |id: &BlobId| !blobs.path(*id).exists();
            Ok(ids.into_iter().filter(is_gone).collect::<Vec<_>>())
        };
        let absent = blocking(absent).await?;
        if absent.is_empty() {
            return Ok(absent);
        }
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, bucket)
            .await;
        let opened = match opened {
            Ok(opened) => opened,
            Err(VaultError::ShuttingDown) => return Err(VaultError::ShuttingDown),
            // Of one that can't be opened it is not known what was deleted: all of it stays.
            Err(_) => return Ok(Vec::new()),
        };
        // First who writes or reads it: a cache may have evicted what has no row yet.
        let is_idle = |id: &BlobId| opened.blobs.is_idle(*id);
        let idle = absent.into_iter().filter(is_idle).collect();
        let mut deleted = opened.catalog.without_blob(idle).await?;
        // One that was put back tells nothing of what came after it.
        if opened.catalog.is_in_doubt() {
            deleted.clear();
        }
        Ok(deleted)
    }

    /// Notes down blobs of the copy that were deleted here.
    async fn find_gone(&mut self, writer: &mut CopyWriter) -> Result<()> {
        let inner = self.inner()?;
        let lists = self.gone.get_or_insert_default();
        let mut room = COPY_GONE_MAX.saturating_sub(lists.iter().map(GoneList::blob_count).sum());
        for row in inner.system.buckets() {
            let lists = self.gone.iter().flatten();
            let known: HashSet<BlobId> = lists
                .filter_map(|list| list.blobs.get(&row.id))
                .flatten()
                .copied()
                .collect();
            let mut found = Vec::new();
            let mut listed = pin!(writer.blobs(row.id).ready_chunks(BLOBS_LISTED));
            while let Some(there) = listed.next().await {
                let mut there: Vec<BlobId> = there.into_iter().collect::<Result<_, _>>()?;
                there.retain(|id| !known.contains(id));
                found.extend(self.deleted(row.id, there).await?);
                if found.len() >= room {
                    found.truncate(room);
                    break;
                }
            }
            room -= found.len();
            for some in found.chunks(GONE_LIST_MAX) {
                let blobs = BTreeMap::from([(row.id, some.to_vec())]);
                let list = writer.note_gone(blobs).await?;
                self.gone.get_or_insert_default().push(list);
                self.wants_head = true;
            }
        }
        Ok(())
    }
}
