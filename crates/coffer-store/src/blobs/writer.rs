//! Writing a blob: plaintext in, sealed chunks into its file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES};
use coffer_seal::{BlobId, Context, SealError, Sealer, SecretKey};
use tokio::sync::oneshot;

use crate::blobs::buffers::{Buffer, WRITE, WRITE_MANY};
use crate::blobs::folder::{BlobStore, Inner, in_background};
use crate::blobs::path::path_of;
use crate::blobs::write_stall;
use crate::database::readers::blocking;
use crate::error::{Result, StoreError};
use crate::free_space;
use crate::limits::WRITERS_MANY;

/// How many writers there are, in all buckets.
static WRITERS: AtomicUsize = AtomicUsize::new(0);

impl BlobStore {
    /// Begins a blob with a new random id, sealed under `data_key`. Its file is made with the
    /// first bytes that are written to it.
    ///
    /// # Errors
    /// None so far; what the disk says comes from the writer.
    pub fn create(&self, data_key: &SecretKey) -> Result<BlobWriter> {
        let id = BlobId::random();
        self.inner.in_flight().insert(id);
        let in_flight = Arc::new(InFlight {
            store: self.inner.clone(),
            id,
            has_file: AtomicBool::new(false),
            is_in_doubt: AtomicBool::new(false),
        });
        let sealer = Sealer::new(data_key, &Context::blob(self.inner.bucket, id));
        let is_one_of_many = WRITERS.fetch_add(1, Ordering::Relaxed) >= WRITERS_MANY;
        let mut out = if is_one_of_many {
            WRITE_MANY.take()
        } else {
            WRITE.take()
        };
        out[..HEADER_BYTES].copy_from_slice(sealer.header());
        Ok(BlobWriter {
            in_flight,
            sealer,
            plaintext_bytes: 0,
            out,
            filled: HEADER_BYTES,
            begun: 0,
            flushed_bytes: 0,
            file: None,
            writing: None,
            _counted: Counted,
        })
    }
}

/// A blob being written. Dropping it removes its file.
pub struct BlobWriter {
    in_flight: Arc<InFlight>,
    sealer: Sealer,
    plaintext_bytes: u64,
    /// The first `filled` bytes are sealed and still to be written. Behind them lie `begun` bytes
    /// of a chunk that is still arriving, which will be sealed where it lies.
    out: Buffer,
    filled: usize,
    begun: usize,
    flushed_bytes: u64,
    file: Option<Arc<File>>,
    /// The buffer before, on its way to the file: one at most.
    writing: Option<oneshot::Receiver<Result<Arc<File>>>>,
    _counted: Counted,
}

impl BlobWriter {
    /// The blob's id.
    pub fn id(&self) -> BlobId {
        self.in_flight.id
    }

    /// Seals the bytes that come next.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`]; the blob can't be finished then.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        self.plaintext_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.begun == 0 {
                self.room().await?;
                if bytes.len() >= CHUNK_BYTES {
                    let chunk = bytes.split_to(CHUNK_BYTES);
                    let sealed = &mut self.out[self.filled..self.filled + SEALED_CHUNK_BYTES];
                    self.sealer.seal_chunk(&chunk, sealed).map_err(no_room)?;
                    self.filled += SEALED_CHUNK_BYTES;
                    continue;
                }
            }
            let start = self.filled + self.begun;
            let piece = bytes.split_to(bytes.len().min(CHUNK_BYTES - self.begun));
            self.out.set_plaintext(self.filled..start + piece.len());
            self.out[start..start + piece.len()].copy_from_slice(&piece);
            self.begun += piece.len();
            if self.begun == CHUNK_BYTES {
                let chunk = &mut self.out[self.filled..self.filled + SEALED_CHUNK_BYTES];
                self.sealer.seal_chunk_in_place(chunk).map_err(no_room)?;
                self.out.set_plaintext(0..0);
                self.filled += SEALED_CHUNK_BYTES;
                self.begun = 0;
            }
        }
        Ok(())
    }

    /// Seals the last chunk and makes the whole file durable.
    ///
    /// # Errors
    /// As [`BlobWriter::write`]; nothing is left behind.
    pub async fn finish(mut self) -> Result<FinishedBlob> {
        if self.begun == 0 {
            self.room().await?;
        }
        let written = self.written().await?;
        let Self {
            in_flight,
            sealer,
            plaintext_bytes,
            mut out,
            filled,
            begun,
            flushed_bytes,
            ..
        } = self;
        let end = filled + begun + TAG_BYTES;
        sealer
            .seal_last_in_place(&mut out[filled..end])
            .map_err(no_room)?;
        out.set_plaintext(0..0);
        blocking(move || {
            let file = in_flight.write_out(written, &out[..end], flushed_bytes)?;
            file.sync_data()
                .map_err(|error| StoreError::io("sync a blob", error))?;
            in_flight.store.sync_entry(in_flight.id)?;
            Ok(FinishedBlob {
                in_flight,
                plaintext_bytes,
            })
        })
        .await
    }

    /// Makes room for one more sealed chunk; none may have begun. Writes as much as begins and ends
    /// on the borders of pages; what is left is the end of the last chunk.
    async fn room(&mut self) -> Result<()> {
        if self.filled + SEALED_CHUNK_BYTES <= self.out.len() {
            return Ok(());
        }
        let written = self.written().await?;
        let write_bytes = self.out.len() - SEALED_CHUNK_BYTES;
        // The first write makes the file, which may wait for the disk's journal.
        if written.is_some() && !write_stall::are_likely() {
            let began = Instant::now();
            self.in_flight
                .write_out(written, &self.out[..write_bytes], self.flushed_bytes)?;
            write_stall::note(began.elapsed());
            self.out.copy_within(write_bytes..self.filled, 0);
        } else {
            let mut next = self.out.another();
            next[..self.filled - write_bytes].copy_from_slice(&self.out[write_bytes..self.filled]);
            let full = std::mem::replace(&mut self.out, next);
            let (in_flight, offset_bytes) = (self.in_flight.clone(), self.flushed_bytes);
            self.writing = Some(write_stall::hand_over(move || {
                in_flight.write_out(written, &full[..write_bytes], offset_bytes)
            }));
        }
        self.flushed_bytes += write_bytes as u64;
        self.filled -= write_bytes;
        Ok(())
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
        let file = match file {
            Some(file) => file,
            None => {
                self.has_file.store(true, Ordering::Release);
                let created = create_file(&path_of(&self.store.dir, self.id));
                Arc::new(created.map_err(|error| StoreError::io("create a blob", error))?)
            }
        };
        if free_space::room_bytes_for(&file) == 0 {
            return Err(StoreError::Full);
        }
        file.write_all_at(sealed, offset_bytes)
            .map_err(|error| StoreError::io("write a blob", error))?;
        Ok(file)
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
        }
    }
}

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        WRITERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The lengths are right, so it can only be that a blob has no room for more.
fn no_room(_: SealError) -> StoreError {
    StoreError::OutOfRange
}

fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            options.open(path)
        }
        (opened, _) => opened,
    }
}
