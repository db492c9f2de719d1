//! Room in a store that has none: what is removed after a round that failed, so that the next may
//! find it.
//!
//! Besides what is out of the window, that is what failed rounds put and no head names; buckets
//! that are gone here; and, where the newest head is the only one, blobs that neither it nor a
//! catalog here names. Nothing of it is removed while a head may be there, or may come, that was
//! not acknowledged, and nothing of the log of an engine, whose records name what no head does.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::pin::pin;
use std::time::Instant;

use coffer_replica::limits::UNFINISHED_AGE_WHEN_FULL;
use coffer_replica::{Copy, CopyReader, CopyWriter, Head, Place, ReplicaError};
use coffer_seal::{BlobId, BucketId};
use coffer_store::{CATALOG_FILE, Catalog};
use futures::StreamExt;

use super::BLOBS_LISTED;
use crate::blocking::blocking;
use crate::error::Result;
use crate::limits::{COPY_DOUBT_TIME, COPY_GONE_LOOK, COPY_GONE_LOOKS, COPY_GONE_MAX};
use crate::replica::files::{SCRATCH, new_file};
use crate::replica::round::Round;

impl Round {
    /// Whether it is noted which blobs came that no head names.
    pub(in crate::replica) fn notes_new(&self) -> bool {
        self.records().is_none()
    }

    /// Writes a head.
    pub(in crate::replica) async fn commit(
        &mut self,
        writer: &mut CopyWriter,
        next: Head,
    ) -> Result<()> {
        let done = writer.commit(next).await;
        // Of a folder it is known what is not there.
        let is_absent = |error: &ReplicaError| error.is_full() && self.is_in_folder();
        if !done.as_ref().is_err_and(is_absent) {
            self.doubt = done.is_err().then(Instant::now);
            self.new_blobs.forget();
        }
        Ok(done?)
    }

    fn is_in_doubt(&self) -> bool {
        let may_come = |since: Instant| since.elapsed() < COPY_DOUBT_TIME;
        self.doubt.is_some_and(may_come)
    }

    /// Removes blobs that failed rounds put and that are of no object any more: no head names them,
    /// and none will.
    pub(in crate::replica) async fn remove_new(&self, writer: &CopyWriter) {
        if let Err(error) = self.remove_deleted_new(writer).await {
            tracing::debug!(copy = self.name(), %error, "blobs stay that no head names");
        }
    }

    async fn remove_deleted_new(&self, writer: &CopyWriter) -> Result<()> {
        if self.readers.is_read() {
            return Ok(());
        }
        let mut looks = COPY_GONE_LOOKS;
        for (bucket, ids) in self.new_blobs.all() {
            // Those of a bucket that is gone go with it.
            if self.inner()?.system.bucket_of_id(bucket).is_none() {
                continue;
            }
            for ids in ids.chunks(BLOBS_LISTED) {
                let gone = self.deleted_soon(bucket, ids, &mut looks).await?;
                if gone.is_empty() {
                    continue;
                }
                writer.check_alone().await?;
                writer.remove_blobs(bucket, &gone).await?;
                self.new_blobs.remove(bucket, &gone);
            }
        }
        Ok(())
    }

    /// Those of them that were deleted: a file goes a moment after its row, and the next head makes
    /// all of them known as those that a head may name.
    async fn deleted_soon(
        &self,
        bucket: BucketId,
        ids: &[BlobId],
        looks: &mut u32,
    ) -> Result<Vec<BlobId>> {
        let inner = self.inner()?;
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, bucket);
        // Of one that can't be opened it is not known what was deleted: all of it stays.
        let Ok(opened) = opened.await else {
            return Ok(Vec::new());
        };
        loop {
            let gone = self.deleted(bucket, ids.to_vec()).await?;
            let without_row = opened.catalog.without_blob(ids.to_vec()).await?;
            if gone.len() >= without_row.len() || *looks == 0 {
                return Ok(gone);
            }
            *looks -= 1;
            tokio::time::sleep(COPY_GONE_LOOK).await;
        }
    }

    /// Before a copy is gone on with that has no room for the head which that takes: removes what
    /// the last start put and no head names.
    pub(in crate::replica) async fn give_room_before(&mut self) -> Result<()> {
        let inner = self.inner()?;
        let Some(known) = inner.copies.registry.get(&self.entry.name)?.known else {
            return Ok(());
        };
        if !self.is_in_folder() {
            // A head that the last start sent may come yet.
            self.doubt.get_or_insert_with(Instant::now);
            if self.is_in_doubt() {
                return Ok(());
            }
        }
        let place = Place::parse(&self.entry.url)?;
        let store = blocking(move || Ok(place.open(false)?)).await?;
        let copy = Copy::new(store, self.entry.id, &inner.keystore.system_key());
        if self.is_in_folder() {
            copy.remove_unfinished(UNFINISHED_AGE_WHEN_FULL).await?;
        }
        copy.remove_left(&known).await?;
        Ok(())
    }

    /// Removes from a store, which may be full, what no head of the window needs.
    pub(in crate::replica) async fn give_room(&mut self, writer: &mut CopyWriter) -> Result<()> {
        let Some(removing) = self.readers.begin_removal() else {
            return Ok(());
        };
        // One of which no answer came may be there: the next commit finds it.
        if self.notes_new() && !writer.is_newest().await? {
            return Ok(());
        }
        let is_sure = self.notes_new() && !self.is_in_doubt();
        if is_sure {
            self.remove_unnamed(writer).await?;
            if let Err(error) = self.leave_gone_buckets(writer).await {
                tracing::debug!(copy = self.name(), %error, "buckets stay that are gone");
            }
        }
        if self.readers.is_read() {
            return Ok(());
        }
        let swept = self.make_room(writer).await?;
        let is_only = swept.is_complete && swept.floor == writer.head().number;
        // What goes below may take long, and the head that is left needs nothing of it.
        drop(removing);
        if is_sure && is_only && !self.readers.is_read() {
            self.remove_unneeded(writer).await?;
        }
        Ok(())
    }

    /// Removes what failed rounds put, but for blobs, and for segments that the next head is to
    /// name.
    async fn remove_unnamed(&self, writer: &CopyWriter) -> Result<()> {
        if self.is_in_folder() {
            let copy = writer.copy();
            copy.remove_unfinished(UNFINISHED_AGE_WHEN_FULL).await?;
        }
        let mut stay: HashSet<BucketId> = self.chains.keys().copied().collect();
        let unfinished = self.unfinished.iter().filter(|(_, chain)| chain.is_some());
        stay.extend(unfinished.map(|(id, _)| *id));
        let count = writer.remove_unnamed(&stay).await?;
        tracing::debug!(copy = self.name(), count, "removed what no head names");
        Ok(())
    }

    /// Writes a head without the buckets that are gone here. What the copy has of these is of no
    /// use, and goes with it; a round may find no room for what it puts before its head.
    async fn leave_gone_buckets(&mut self, writer: &mut CopyWriter) -> Result<()> {
        let inner = self.inner()?;
        let rows = {
            let _changing = inner.changing_buckets.lock().await;
            if inner.system.is_an_erase_in_doubt() {
                return Ok(());
            }
            inner.system.buckets()
        };
        let is_there: HashSet<String> = rows.iter().map(|row| row.id.to_string()).collect();
        self.chains
            .retain(|id, _| is_there.contains(&id.to_string()));
        self.unfinished
            .retain(|id, _| is_there.contains(&id.to_string()));
        let mut next = writer.head().clone();
        next.buckets.retain(|id, _| is_there.contains(id));
        if next.buckets.len() == writer.head().buckets.len() {
            return Ok(());
        }
        // A sweep takes what was put of a bucket before a head that does not have it for what none
        // needs: it is put as a whole after that.
        let begun = self.chains.keys().chain(self.unfinished.keys()).copied();
        let is_new = |id: &BucketId| !next.buckets.contains_key(&id.to_string());
        let new: Vec<BucketId> = begun.filter(is_new).collect();
        for id in new {
            self.chains.remove(&id);
            self.unfinished.remove(&id);
            self.renewed.insert(id);
        }
        self.forget_gone(writer, writer.head().number).await?;
        // It names no more than the one before, so new blobs are as new as they were.
        writer.commit(next).await?;
        self.progress.window(writer.head());
        self.note_head(writer).await
    }

    /// Forgets lists of blobs that no head behind `from` or one before it names: such a head names
    /// what that one does. They are found again.
    pub(in crate::replica) async fn forget_gone(
        &mut self,
        writer: &CopyWriter,
        from: u64,
    ) -> Result<()> {
        let lists = match self.gone.take() {
            Some(lists) => lists,
            None => writer.gone_lists().await?,
        };
        let (behind, kept): (Vec<_>, Vec<_>) =
            lists.into_iter().partition(|list| list.head >= from);
        for list in &behind {
            writer.remove_list(list).await?;
        }
        self.gone = Some(kept);
        Ok(())
    }

    /// Removes blobs that are of no object any more, and that the newest head does not name, which
    /// is the only one. Of a bucket whose catalog can't be read all stays.
    async fn remove_unneeded(&self, writer: &CopyWriter) -> Result<()> {
        let inner = self.inner()?;
        let scratch = format!("room-{}", self.entry.cursor);
        let scratch = inner.folder.path().join(SCRATCH).join(scratch);
        for row in inner.system.buckets() {
            let gone = self.deleted_of(writer, row.id).await?;
            if gone.is_empty() {
                continue;
            }
            let removed = self.remove_but_named(writer, row.id, &gone, &scratch).await;
            let _ = fs::remove_dir_all(&scratch);
            if let Err(error) = removed {
                let bucket = row.id;
                tracing::debug!(copy = self.name(), %bucket, %error, "blobs stay");
            }
        }
        Ok(())
    }

    /// The blobs of the copy, up to a number, that were deleted here.
    async fn deleted_of(&self, writer: &CopyWriter, bucket: BucketId) -> Result<Vec<BlobId>> {
        let mut gone = Vec::new();
        let mut listed = pin!(writer.blobs(bucket).ready_chunks(BLOBS_LISTED));
        while let Some(there) = listed.next().await {
            let there: Vec<BlobId> = there.into_iter().collect::<Result<_, _>>()?;
            gone.extend(self.deleted(bucket, there).await?);
            if gone.len() >= COPY_GONE_MAX {
                break;
            }
        }
        Ok(gone)
    }

    /// Removes those of them that the newest head does not name.
    async fn remove_but_named(
        &self,
        writer: &CopyWriter,
        bucket: BucketId,
        gone: &[BlobId],
        scratch: &Path,
    ) -> Result<()> {
        let catalog = self.catalog_in_head(writer, bucket, scratch).await?;
        for ids in gone.chunks(BLOBS_LISTED) {
            let unneeded = match &catalog {
                Some(catalog) => catalog.without_blob(ids.to_vec()).await?,
                None => ids.to_vec(),
            };
            writer.check_alone().await?;
            writer.remove_blobs(bucket, &unneeded).await?;
        }
        if let Some(catalog) = catalog {
            catalog.close().await;
        }
        Ok(())
    }

    /// A catalog as the newest head has it; none, if it has nothing of the bucket.
    async fn catalog_in_head(
        &self,
        writer: &CopyWriter,
        bucket: BucketId,
        scratch: &Path,
    ) -> Result<Option<Catalog>> {
        let Some(state) = writer.head().buckets.get(&bucket.to_string()) else {
            return Ok(None);
        };
        let file = new_file(scratch, CATALOG_FILE)?;
        let reader = CopyReader::of(writer)?;
        reader.catalog(bucket, state, Some(&file)).await?;
        let key = self.inner()?.keystore.bucket_key(bucket)?;
        let catalog = Catalog::open_read_only(scratch, &key.catalog_key()).await?;
        Ok(Some(catalog))
    }
}

#[cfg(test)]
mod tests;
