//! A blob on its way into its file, and the file until the catalog refers to it.

mod pipe;

mod from_socket;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use coffer_durable::check_own_folder;
use coffer_seal::BlobId;
use coffer_seal::limits::SEALED_CHUNK_BYTES;
use tokio::sync::oneshot;

use crate::blobs::buffers::{Buffer, WRITE, WRITE_MANY};
use crate::blobs::folder::{BlobStore, Inner, in_background};
use crate::blobs::path::path_of;
use crate::blobs::space_ahead;
use crate::blobs::write_stall;
use crate::database::readers::blocking;
use crate::error::{Result, StoreError};
use crate::free_space;
use crate::limits::WRITERS_MANY;

/// How many writers there are, in all buckets.
static WRITERS: AtomicUsize = AtomicUsize::new(0);

fn are_many() -> bool {
    WRITERS.load(Ordering::Relaxed) >= WRITERS_MANY
}

/// A file that sealed bytes are written to, from its beginning to its end. Dropping it removes
/// the file, which is made with the first bytes.
pub(crate) struct BlobFile {
    in_flight: Arc<InFlight>,
    flushed_bytes: u64,
    file: Option<Arc<File>>,
    /// The buffer before, on its way to the file: one at most.
    writing: Option<oneshot::Receiver<Result<Arc<File>>>>,
    _counted: Option<Counted>,
}

impl BlobFile {
    /// A file to be, of a blob with a new random id.
    pub(crate) fn new(store: &BlobStore) -> Self {
        let id = BlobId::random();
        store.inner.in_flight().insert(id);
        if let Some(cache) = &store.inner.cache {
            cache.begin_own((store.inner.bucket, id));
        }
        Self {
            in_flight: Arc::new(InFlight {
                store: store.inner.clone(),
                id,
                has_file: AtomicBool::new(false),
                is_in_doubt: AtomicBool::new(false),
            }),
            flushed_bytes: 0,
            file: None,
            writing: None,
            _counted: None,
        }
    }

    /// The blob's id.
    pub(crate) fn id(&self) -> BlobId {
        self.in_flight.id
    }

    /// A buffer to write from: less than [`SEALED_CHUNK_BYTES`] longer than what is written at
    /// once.
    pub(crate) fn buffer(&mut self) -> Buffer {
        let is_one_of_many = are_many();
        WRITERS.fetch_add(1, Ordering::Relaxed);
        self._counted = Some(Counted);
        if is_one_of_many {
            WRITE_MANY.take()
        } else {
            WRITE.take()
        }
    }

    /// Writes the front of a buffer whose first `filled` bytes are sealed: as much as begins and
    /// ends on the borders of pages. What is left is moved to the front; returns its length.
    pub(crate) async fn write_front(&mut self, out: &mut Buffer, filled: usize) -> Result<usize> {
        let written = self.written().await?;
        // Its bytes went away with a write that was not waited for to its end.
        let write_bytes = out.len().checked_sub(SEALED_CHUNK_BYTES);
        let write_bytes = write_bytes.ok_or(StoreError::Closed)?;
        // The first write makes the file, which may wait for the disk's journal.
        if written.is_some() && !write_stall::are_likely() {
            let began = Instant::now();
            self.in_flight
                .write_out(written, &out[..write_bytes], self.flushed_bytes)?;
            write_stall::note(began.elapsed());
            out.copy_within(write_bytes..filled, 0);
        } else if are_many() {
            self.write_and_wait(written, out, write_bytes).await?;
            out.copy_within(write_bytes..filled, 0);
        } else {
            let mut next = out.another();
            next[..filled - write_bytes].copy_from_slice(&out[write_bytes..filled]);
            let full = std::mem::replace(out, next);
            let (in_flight, offset_bytes) = (self.in_flight.clone(), self.flushed_bytes);
            self.writing = Some(write_stall::hand_over(move || {
                in_flight.write_out(written, &full[..write_bytes], offset_bytes)
            }));
        }
        self.flushed_bytes += write_bytes as u64;
        Ok(filled - write_bytes)
    }

    /// Has the front of a buffer written by the thread that waits, and waits, too: where many
    /// write, the others keep that thread busy, and none needs a second buffer to fill meanwhile.
    async fn write_and_wait(
        &mut self,
        written: Option<Arc<File>>,
        out: &mut Buffer,
        write_bytes: usize,
    ) -> Result<()> {
        let (in_flight, offset_bytes) = (self.in_flight.clone(), self.flushed_bytes);
        let full = out.take();
        let handed_over = write_stall::hand_over(move || {
            let file = in_flight.write_out(written, &full[..write_bytes], offset_bytes);
            (full, file)
        });
        let (full, file) = handed_over.await.map_err(|_| StoreError::Closed)?;
        *out = full;
        self.file = Some(file?);
        Ok(())
    }

    /// Writes the last `end` bytes, which are in `out`, and makes the whole file durable.
    pub(crate) async fn finish(
        mut self,
        out: Option<Buffer>,
        end: usize,
        plaintext_bytes: u64,
    ) -> Result<FinishedBlob> {
        let written = self.written().await?;
        let Self {
            in_flight,
            flushed_bytes,
            ..
        } = self;
        blocking(move || {
            let file = in_flight.write_out(
                written,
                &out.as_deref().unwrap_or_default()[..end],
                flushed_bytes,
            )?;
            // Others may need it while the disk is waited for.
            drop(out);
            space_ahead::give_back(&file, flushed_bytes + end as u64);
            let store = &in_flight.store;
            file.sync_data()
                .map_err(|error| store.failed("sync a blob", in_flight.id, error))?;
            if let Some(cache) = &store.cache {
                cache.made((store.bucket, in_flight.id), flushed_bytes + end as u64);
            }
            store.sync_entry(in_flight.id)?;
            Ok(FinishedBlob {
                in_flight,
                plaintext_bytes,
            })
        })
        .await
    }

    /// Waits for the buffer on its way, if there is one. The file, once there is one.
    async fn written(&mut self) -> Result<Option<Arc<File>>> {
        if let Some(writing) = &mut self.writing {
            let written = writing.await.unwrap_or(Err(StoreError::Closed));
            self.writing = None;
            self.file = Some(written?);
        }
        Ok(self.file.clone())
    }
}

/// A blob whose file is whole and durable. Dropping it removes the file, until the catalog refers
/// to it and [`FinishedBlob::keep`] has said so.
#[derive(Debug)]
pub struct FinishedBlob {
    in_flight: Arc<InFlight>,
    plaintext_bytes: u64,
}

impl FinishedBlob {
    /// The blob's id.
    pub fn id(&self) -> BlobId {
        self.in_flight.id
    }

    /// How many bytes of plaintext it holds.
    pub fn plaintext_bytes(&self) -> u64 {
        self.plaintext_bytes
    }

    /// Lets the file be: from now on the catalog says whether it is needed.
    pub fn keep(self) {
        self.in_flight.has_file.store(false, Ordering::Release);
    }

    /// Lets the file be whatever the catalog says, as long as this process runs: the commit that
    /// refers to it may come back with the next start, and that decides.
    pub fn keep_in_doubt(self) {
        self.in_flight.is_in_doubt.store(true, Ordering::Release);
        self.keep();
    }
}

/// That a blob is being written: as long as it lives, no sweep touches the file; afterwards there
/// is none, unless it was kept. Every job that works on the file holds one, too, so that the
/// last one to end cleans up.
#[derive(Debug)]
struct InFlight {
    store: Arc<Inner>,
    id: BlobId,
    has_file: AtomicBool,
    /// Whether it stays one that no sweep touches.
    is_in_doubt: AtomicBool,
}

impl InFlight {
    /// Writes sealed bytes where they belong; makes the file first where there is none. Blocks.
    fn write_out(
        &self,
        file: Option<Arc<File>>,
        sealed: &[u8],
        offset_bytes: u64,
    ) -> Result<Arc<File>> {
        let failed = |op, error: std::io::Error| self.store.failed(op, self.id, error);
        let file = match file {
            Some(file) => file,
            None => {
                self.has_file.store(true, Ordering::Release);
                let path = path_of(&self.store.dir, self.id);
                let created = create_file(&path, self.store.cache.is_some());
                Arc::new(created.map_err(|error| failed("create a blob", error))?)
            }
        };
        self.make_room(&file)?;
        space_ahead::take(&file, offset_bytes);
        file.write_all_at(sealed, offset_bytes)
            .map_err(|error| failed("write a blob", error))?;
        Ok(file)
    }

    /// Makes sure that the disk takes more.
    fn make_room(&self, file: &File) -> Result<()> {
        let is_full = || free_space::room_bytes_for(file) == 0;
        if is_full() {
            // A cache makes room.
            let has_evicted = self.store.cache.as_ref().map(|cache| cache.make_room(0));
            if has_evicted != Some(true) || is_full() {
                return Err(StoreError::Full);
            }
        }
        Ok(())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let (store, id) = (self.store.clone(), self.id);
        if self.has_file.load(Ordering::Acquire) {
            in_background(move || {
                store.unlink(&[id]);
                store.in_flight().remove(&id);
            });
        } else if !self.is_in_doubt.load(Ordering::Acquire) {
            store.in_flight().remove(&id);
            if let Some(cache) = &store.cache {
                cache.not_made((store.bucket, id));
            }
        }
    }
}

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        WRITERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Makes a blob's file, and the folders it stands in where they are missing. That of the bucket is
/// made in a cache alone: elsewhere it is missing only where the bucket was deleted meanwhile.
fn create_file(path: &Path, is_cache: bool) -> io::Result<File> {
    check_own_folder(path)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            // Never the data folder, which was moved away where it is missing.
            let depth = if is_cache { 4 } else { 2 };
            let folders: Vec<_> = folder.ancestors().take(depth).collect();
            for folder in folders.into_iter().rev() {
                make_folder(folder)?;
            }
            options.open(path)
        }
        (opened, _) => opened,
    }
}

/// Another writer may just have made it.
fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use coffer_seal::BucketId;

    use super::*;

    #[test]
    fn the_folder_of_a_bucket_that_is_gone_is_not_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let bucket = dir.path().join("bucket");
        let path = bucket.join("blobs/ab/blob");
        let refused = create_file(&path, false).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::NotFound);
        assert!(!bucket.exists());
        fs::create_dir(&bucket).unwrap();
        create_file(&path, false).unwrap();
    }

    #[tokio::test]
    async fn of_many_writers_each_has_one_buffer_while_the_disk_makes_them_wait() {
        let dir = tempfile::tempdir().unwrap();
        let store = BlobStore::new(dir.path(), BucketId([1; 16]));
        let others: Vec<_> = (0..WRITERS_MANY)
            .map(|_| {
                let mut file = BlobFile::new(&store);
                file.buffer();
                file
            })
            .collect();

        let mut file = BlobFile::new(&store);
        let mut out = file.buffer();
        let address = out.as_ptr();
        let write_bytes = out.len() - SEALED_CHUNK_BYTES;
        for round in 0..3 {
            out.fill(round);
            out[write_bytes..].fill(round + 100);
            let left = file.write_front(&mut out, write_bytes + 7).await.unwrap();
            assert_eq!((left, out[..7].to_vec()), (7, vec![round + 100; 7]));
            assert_eq!(out.as_ptr(), address, "the same buffer");
            assert!(file.writing.is_none(), "nothing waits");
        }
        let id = file.id();
        file.finish(Some(out), 7, 1).await.unwrap().keep();
        let written = fs::read(path_of(&store.inner.dir, id)).unwrap();
        assert_eq!(written.len(), 3 * write_bytes + 7);
        let rounds = written.chunks(write_bytes).zip(0..3);
        assert!(
            rounds
                .into_iter()
                .all(|(bytes, round)| bytes.iter().all(|&byte| byte == round))
        );
        drop(others);
    }
}
