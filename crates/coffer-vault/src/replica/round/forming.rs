//! What goes into a record: of each catalog the pages that were changed since the log has it, what
//! the audit log has more; and before it the blobs that those pages name.

use std::sync::Arc;

use bytes::Bytes;
use coffer_replica::limits::{RECORD_FILES_MAX_BYTES, RECORD_PAGES_MAX};
use coffer_replica::{NewRecord, RecordWriter, RecordedFiles, RecordedPages};
use coffer_seal::BucketId;
use coffer_store::PageTap;

use super::passed::has_all_met;
use super::records::{FilesKnown, InHead, Records};
use super::sources::{TakenBlobs, file_bytes, put_blobs, read_range};
use crate::blocking::blocking;
use crate::copies::Progress;
use crate::error::{Result, VaultError};
use crate::open_buckets::{BucketTap, UsedBucket};
use crate::system::BucketRow;
use crate::vault::Inner;

/// Pages that were taken for a record.
pub(crate) trait TakenPages: Send {
    /// It is in the log.
    fn arrived(&self);

    /// It is not: they are to be taken again.
    fn give_back(&self);
}

impl TakenPages for (Arc<PageTap>, u32) {
    fn arrived(&self) {
        self.0.arrived(self.1);
    }

    fn give_back(&self) {
        self.0.give_back(self.1);
    }
}

/// A record that is being formed. Pages that were taken for it are given back, unless it arrives.
#[derive(Default)]
pub(crate) struct Formed {
    pub(crate) record: NewRecord,
    pub(crate) taken: Vec<Box<dyn TakenPages>>,
}

/// What forms records.
pub(super) struct Forming<'a> {
    pub(super) inner: &'a Arc<Inner>,
    pub(super) records: &'a Records,
    pub(super) writer: &'a RecordWriter,
    pub(super) progress: &'a Progress,
    /// By whom blobs are taken, and by whom pages are.
    pub(super) cursors: (u32, u32),
}

impl Formed {
    /// Whether the log has all.
    pub(super) fn is_empty(&self) -> bool {
        self.record.buckets.is_empty() && self.record.files.is_none()
    }

    /// How far catalogs come with it.
    pub(super) fn commits(&self) -> impl Iterator<Item = (BucketId, u64)> {
        let buckets = self.record.buckets.iter();
        buckets.map(|of| (of.bucket, of.commits))
    }

    /// It is in the log.
    pub(super) fn arrived(&mut self) {
        self.taken.drain(..).for_each(|taken| taken.arrived());
    }
}

impl Drop for Formed {
    fn drop(&mut self) {
        self.taken.drain(..).for_each(|taken| taken.give_back());
    }
}

impl Forming<'_> {
    /// All that the log lacks; none, where only a head can say it.
    pub(super) async fn form(&self) -> Result<Option<Formed>> {
        if self.records.in_head().is_none() {
            return Ok(None);
        }
        let mut formed = Formed::default();
        let mut room = RECORD_PAGES_MAX;
        for row in self.inner.system.buckets() {
            let known = self.records.commits_of(row.id);
            // What can't be opened since the start has nothing that anything waits for.
            if self.records.is_passed(row.id) && has_all_met(self.inner, row.id, known.unwrap_or(0))
            {
                continue;
            }
            let Some(known) = known else {
                return Ok(None);
            };
            // One that readers see already may not be counted yet: its pages are asked for then.
            let is_committing = self.inner.open_buckets.is_committing(row.id);
            if (is_committing || self.commits_of(row.id) > known)
                && !self.add(&mut formed, &row, known, &mut room).await?
            {
                return Ok(None);
            }
        }
        // Last, for what is below is never older than what holds it.
        let (inner, known) = (self.inner.clone(), self.records.files());
        let read = blocking(move || {
            let files = read_audit(&inner, &known)?;
            Ok((files, in_head_now(&inner)?))
        });
        let (files, now) = read.await?;
        let Some(files) = files.filter(|_| self.records.in_head() == Some(now)) else {
            return Ok(None);
        };
        formed.record.files = (!files.parts.is_empty()).then_some(files);
        Ok(Some(formed))
    }

    fn commits_of(&self, id: BucketId) -> u64 {
        let open = self.inner.open_buckets.last_commit(id);
        open.unwrap_or_else(|| self.inner.freshness.commits.highest_of(id))
    }

    /// Adds what was changed of a catalog. Whether that can be.
    async fn add(
        &self,
        formed: &mut Formed,
        row: &BucketRow,
        known: u64,
        room: &mut usize,
    ) -> Result<bool> {
        let inner = self.inner;
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, row.id)
            .await;
        // One that goes meanwhile, or can't be opened, is for a round to tell of.
        let (Ok(bucket), Some(tap)) = (opened, inner.open_buckets.taps.of(row.id)) else {
            return Ok(false);
        };
        // What the pages name stays until it is put.
        let _pin = bucket.blobs.pin();
        let (_, cursor) = self.cursors;
        let Some(taken) = bucket.catalog.take_pages(cursor, *room).await? else {
            return Ok(false);
        };
        formed.taken.push(Box::new((tap.pages.clone(), cursor)));
        let Some(since) = taken.since.filter(|since| *since <= known) else {
            return Ok(false);
        };
        if !taken.is_last {
            // More than a record holds: the next head has them, and pages are noted behind it.
            tap.pages.start_over(cursor);
            return Ok(false);
        }
        if !self.put_fresh(&bucket, &tap).await? {
            return Ok(false);
        }
        if taken.commit_count <= known && taken.pages.is_empty() {
            return Ok(true);
        }
        *room -= taken.pages.len();
        let pages = taken.pages.into_iter();
        formed.record.buckets.push(RecordedPages {
            bucket: row.id,
            since,
            commits: taken.commit_count,
            page_count: taken.page_count,
            pages: pages.map(|(number, page)| (number, page.into())).collect(),
        });
        Ok(true)
    }

    /// Puts the blobs that were finished since the last time. Whether these are all.
    async fn put_fresh(&self, bucket: &UsedBucket, tap: &BucketTap) -> Result<bool> {
        let _alone = self.records.blobs.lock().await;
        let (cursor, _) = self.cursors;
        let taken = TakenBlobs::of(&tap.blobs, cursor);
        if taken.fresh().is_incomplete {
            return Ok(false);
        }
        let ids = &taken.fresh().ids;
        match put_blobs(self.writer.copy(), self.progress, bucket, ids, None).await {
            Err(VaultError::NoSuchBucket) => return Ok(false),
            put => put?,
        };
        taken.arrived();
        Ok(true)
    }
}

/// What no record can add to, as it is now. Blocks.
pub(super) fn in_head_now(inner: &Inner) -> Result<InHead> {
    Ok(InHead {
        system_commits: inner.system.commit_count()?,
        keystore_generation: inner.keystore.generation(),
    })
}

/// What the audit log has more than is known, with nothing in it where that is all; none, where
/// there is too much, or files are gone. Blocks.
fn read_audit(inner: &Inner, known: &FilesKnown) -> Result<Option<RecordedFiles>> {
    let extent = inner.audit.log_or_open()?.extent();
    let mut files = RecordedFiles {
        number: extent.last.sequence,
        parts: Vec::new(),
    };
    if files.number <= known.number {
        return Ok(Some(files));
    }
    let name_of = |segment: &str| format!("audit/{segment}");
    let (head_name, head) = extent.head;
    let head_name = name_of(head_name);
    let is_there = |name: &String| {
        let mut segments = extent.segments.iter();
        *name == head_name || segments.any(|segment| *name == name_of(segment))
    };
    if !known.bytes.keys().all(is_there) {
        return Ok(None);
    }
    let (folder, last) = (inner.folder.audit(), extent.segments.last());
    let mut room = RECORD_FILES_MAX_BYTES.saturating_sub(head.len()) as u64;
    for segment in &extent.segments {
        let (path, name) = (folder.join(segment), name_of(segment));
        let from_bytes = known.bytes.get(&name).copied().unwrap_or_default();
        let until_bytes = match last {
            Some(last) if last == segment => extent.last_bytes,
            _ => file_bytes(&path)?,
        };
        let length_bytes = until_bytes.saturating_sub(from_bytes);
        if length_bytes > room {
            return Ok(None);
        }
        if length_bytes > 0 {
            let bytes = read_range(&path, from_bytes, length_bytes)?;
            let part = (name, Some(from_bytes), Bytes::from(bytes));
            files.parts.push(part);
        }
        room -= length_bytes;
    }
    files.parts.push((head_name, None, head.into()));
    Ok(Some(files))
}
