//! Putting a bucket: pages of its catalog that were changed, and blobs that are new.

use std::collections::HashSet;

use coffer_replica::limits::SEGMENT_PAGES_MAX;
use coffer_replica::{CopyWriter, NewSegment};
use coffer_seal::BlobId;
use coffer_store::TakenPages;

use super::round::Round;
use super::round::sources::{NewBlobs, TakenBlobs, put_blobs};
use crate::error::{Result, VaultError};
use crate::open_buckets::{BucketTap, UsedBucket};
use crate::system::BucketRow;

impl Round {
    /// Puts what is new of a bucket, if anything is. One that goes meanwhile is left out, and so is
    /// one that can't be opened.
    pub(super) async fn put_bucket(
        &mut self,
        writer: &mut CopyWriter,
        row: &BucketRow,
    ) -> Result<()> {
        let inner = self.inner()?;
        if self.was_passed(&inner, writer, row) {
            return Ok(());
        }
        let is_renewed = self.renewed.contains(&row.id);
        if !is_renewed && self.met.contains(&row.id) && self.is_current(writer, row)? {
            self.is_not_passed(row.id);
            return Ok(());
        }
        if inner.is_left_to_erase(row) {
            // To open it would be told as damage, again and again.
            return self.pass_over(writer, row, VaultError::Damaged);
        }
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, row.id)
            .await;
        let bucket = match opened {
            Ok(bucket) => bucket,
            Err(_) if inner.system.bucket_of_id(row.id).is_none() => return Ok(()),
            Err(VaultError::NoSuchBucket) => return Ok(()),
            Err(VaultError::ShuttingDown) => return Err(VaultError::ShuttingDown),
            Err(error) => {
                return self.pass_over(writer, row, error.of_bucket(row.name.as_str(), row.id));
            }
        };
        let done = self.put_open(writer, row, &bucket).await;
        match done {
            Ok(()) => self.is_not_passed(row.id),
            Err(_) if bucket.is_gone() => {}
            Err(VaultError::Damaged) => {
                // What was put of it may not go together with what follows.
                self.renewed.insert(row.id);
                return self.pass_over(writer, row, VaultError::Damaged);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Whether the copy has all of a bucket that was met since the start.
    fn is_current(&self, writer: &CopyWriter, row: &BucketRow) -> Result<bool> {
        let inner = self.inner()?;
        let Some(state) = writer.head().buckets.get(&row.id.to_string()) else {
            return Ok(false);
        };
        if inner.open_buckets.is_committing(row.id) {
            return Ok(false);
        }
        let open = inner.open_buckets.last_commit(row.id);
        let commits = open.unwrap_or_else(|| inner.freshness.commits.highest_of(row.id));
        Ok(commits == state.commits)
    }

    async fn put_open(
        &mut self,
        writer: &mut CopyWriter,
        row: &BucketRow,
        bucket: &UsedBucket,
    ) -> Result<()> {
        let inner = self.inner()?;
        let state = writer.head().buckets.get(&row.id.to_string()).cloned();
        let commits = bucket.catalog.commit_count().await?;
        let is_renewed = self.renewed.contains(&row.id);
        if !is_renewed && state.as_ref().is_some_and(|state| state.commits == commits) {
            if !self.met.contains(&row.id) {
                // A start before this one put its blobs as well. What the store lost is put again.
                self.put_missing(writer, bucket).await?;
                self.met.insert(row.id);
            }
            return Ok(());
        }
        let tap = inner.open_buckets.taps.of(row.id);
        let tap = tap.ok_or(VaultError::ShuttingDown)?;
        let is_walked = self.put_fresh(writer, bucket, &tap, is_renewed).await?;
        let unfinished = self.unfinished.remove(&row.id);
        let mut chain = unfinished.unwrap_or_else(|| self.chains.get(&row.id).cloned().or(state));
        if is_renewed || chain.as_ref().is_some_and(|chain| chain.is_long()) {
            tap.pages.start_over(self.entry.cursor);
        }
        loop {
            // What the pages name stays until it is put.
            let _pin = bucket.blobs.pin();
            let cursor = self.entry.cursor;
            let taken = next_pages(bucket, cursor).await;
            if taken.is_err() {
                // What has arrived is not taken again.
                self.unfinished.insert(row.id, chain.clone());
            }
            let taken = taken?;
            chain = chain.filter(|_| !taken.is_base);
            let is_last = taken.is_last;
            let put = writer
                .put_segment(row.id, chain.as_ref(), segment_of(taken))
                .await;
            match put {
                Ok(state) => {
                    tap.pages.arrived(cursor);
                    let before = chain.as_ref().map_or(0, |chain| chain.bytes);
                    self.progress.put(state.bytes.saturating_sub(before));
                    chain = Some(state);
                }
                Err(error) => {
                    tap.pages.give_back(cursor);
                    self.unfinished.insert(row.id, chain);
                    return Err(error.into());
                }
            }
            if is_last {
                // A blob that was finished before it was noted, and its row committed after the
                // walk, is found by another.
                let put = self.put_fresh(writer, bucket, &tap, is_walked).await;
                if let Err(error) = put {
                    self.unfinished.insert(row.id, chain);
                    return Err(error);
                }
                break;
            }
        }
        self.met.insert(row.id);
        self.renewed.remove(&row.id);
        self.chains.extend(chain.map(|chain| (row.id, chain)));
        Ok(())
    }

    /// Puts the blobs that were finished since the last time, and where those are not all, or if
    /// `walks`, all that the copy lacks. Whether the catalog was walked.
    async fn put_fresh(
        &mut self,
        writer: &CopyWriter,
        bucket: &UsedBucket,
        tap: &BucketTap,
        walks: bool,
    ) -> Result<bool> {
        // A record names none that is taken here and not there yet.
        let mut alone = self.alone_with_blobs().await;
        let taken = TakenBlobs::of(&tap.blobs, self.entry.cursor);
        let is_incomplete = taken.fresh().is_incomplete;
        // What was missing may be there again, or its object deleted.
        let walks = walks || is_incomplete || self.missing.contains_key(&bucket.id);
        // One that is not there any more is of no object, or of one that was deleted.
        let new = self.notes_new().then_some(&self.new_blobs);
        self.put_blobs(writer, bucket, &taken.fresh().ids, new)
            .await?;
        if walks {
            if !is_incomplete {
                alone = None;
            }
            self.put_missing(writer, bucket).await?;
        }
        taken.arrived();
        drop(alone);
        Ok(walks)
    }

    /// Walks the catalog, and puts what the copy does not have. Ids come ascending, and so do
    /// their first bytes, by which the copy is asked.
    async fn put_missing(&mut self, writer: &CopyWriter, bucket: &UsedBucket) -> Result<()> {
        // So that a file that is not there is missing, and not of an object deleted meanwhile.
        let _pin = bucket.blobs.pin();
        let mut missing_count = 0;
        let (mut after, mut there): (_, Option<(u8, HashSet<BlobId>)>) = (None, None);
        loop {
            let page = bucket.catalog.blobs_after(after).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            let mut missing = Vec::new();
            for (id, _) in page {
                let first = id.0[0];
                if there.as_ref().is_none_or(|(listed, _)| *listed != first) {
                    there = Some((first, writer.blobs_from(bucket.id, first).await?));
                }
                if there.as_ref().is_none_or(|(_, there)| !there.contains(&id)) {
                    missing.push(id);
                }
            }
            // All that a cache holds without a store having it was put before: these were lost.
            missing_count += if bucket.blobs.is_cache() {
                self.put_again(writer, bucket, &missing).await?
            } else {
                self.put_blobs(writer, bucket, &missing, None).await?
            };
        }
        if missing_count > 0 {
            self.missing.insert(bucket.id, missing_count);
        } else {
            self.missing.remove(&bucket.id);
        }
        Ok(())
    }

    /// How many of them have no file.
    pub(super) async fn put_blobs(
        &self,
        writer: &CopyWriter,
        bucket: &UsedBucket,
        ids: &[BlobId],
        new: Option<&NewBlobs>,
    ) -> Result<u64> {
        put_blobs(writer.copy(), &self.progress, bucket, ids, new).await
    }
}

/// What has changed of a catalog and was not taken.
async fn next_pages(bucket: &UsedBucket, cursor: u32) -> Result<TakenPages> {
    let taken = bucket.catalog.take_pages(cursor, SEGMENT_PAGES_MAX).await?;
    taken.ok_or(VaultError::ShuttingDown)
}

fn segment_of(taken: TakenPages) -> NewSegment {
    NewSegment {
        commits: taken.commit_count,
        page_count: taken.page_count,
        is_last: taken.is_last,
        pages: taken.pages,
    }
}
