//! Reading a blob: sealed chunks out of its file, plaintext out.
//!
//! Most reads are served from the kernel's page cache, and for them a hop to another thread would
//! cost as much as the read. So bytes are asked for with `RWF_NOWAIT`: what is in the cache comes
//! at once, into a small buffer that stays in the processor's cache, and is opened from there into
//! the buffer that goes to the client. Only what the disk must deliver is read by the blocking
//! pool.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Poll, ready};

use bytes::Bytes;
use coffer_seal::limits::CHUNK_BYTES;
use coffer_seal::{BlobId, Opener, SecretKey};
use futures::{FutureExt, Stream};
use tokio::task::JoinHandle;

use crate::blobs::buffers::{Buffer, READ, READ_MANY, StreamBuffers};
use crate::blobs::cache::coming::Coming;
use crate::blobs::folder::BlobStore;
use crate::blobs::sealed_file::SealedFile;
use crate::error::{Result, StoreError};
use crate::limits::{CACHE_AHEAD_BYTES, READERS_MANY};

/// How many readers there are, in all buckets.
static READERS: AtomicUsize = AtomicUsize::new(0);

impl BlobStore {
    /// Opens a blob of which the catalog says that it holds `plaintext_bytes`. The reader begins
    /// with all of it; see [`BlobReader::range`].
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is missing, has another length or was not sealed for
    /// this blob under this key.
    pub async fn open(
        &self,
        id: BlobId,
        data_key: &SecretKey,
        plaintext_bytes: u64,
    ) -> Result<BlobReader> {
        let (opened, opener) = self.open_under(id, data_key, plaintext_bytes).await?;
        let source = SealedFile {
            store: self.inner.clone(),
            id,
            file: opened.file,
            opener,
            used: opened.used,
            is_slow: AtomicBool::new(false),
        };
        READERS.fetch_add(1, Ordering::Relaxed);
        let mut reader = BlobReader {
            source: Arc::new(source),
            next_chunk: 0,
            end_chunk: 0,
            plaintext: 0..0,
            buffers: StreamBuffers::default(),
            waiting: None,
            _counted: Counted,
        };
        reader.range(0..plaintext_bytes)?;
        Ok(reader)
    }
}

/// The plaintext of a blob, or of a range of it, as a stream. It ends with an error before the
/// first chunk that does not open. At the blob's end it is certain that nothing is missing.
pub struct BlobReader {
    source: Arc<SealedFile>,
    next_chunk: u64,
    end_chunk: u64,
    /// What is still to be given out.
    plaintext: Range<u64>,
    buffers: StreamBuffers,
    /// A piece that the blocking pool reads.
    waiting: Option<JoinHandle<(Buffer, Result<usize>)>>,
    _counted: Counted,
}

impl BlobReader {
    /// Reads only this range of the plaintext, in bytes, from its start on.
    ///
    /// # Errors
    /// [`StoreError::OutOfRange`] when it is not within the blob.
    pub fn range(&mut self, range: Range<u64>) -> Result<()> {
        let chunks = chunks_of(&range, &self.source.opener)?;
        (self.next_chunk, self.end_chunk) = (chunks.start, chunks.end);
        self.plaintext = range;
        self.waiting = None;
        Ok(())
    }

    /// How many chunks the next piece has.
    fn piece(&self, buffer: &Buffer) -> Range<u64> {
        let room = (buffer.len() / CHUNK_BYTES) as u64;
        let mut end = self.end_chunk.min(self.next_chunk + room);
        // An empty last chunk needs no room. It comes with the one before it, so that the last
        // byte is not given out before the end is proven.
        if end + 1 == self.end_chunk && self.source.is_empty_chunk(end) {
            end += 1;
        }
        self.next_chunk..end
    }

    /// Takes an opened piece: what of it lies in the range, if anything.
    fn give_out(&mut self, buffer: Buffer, chunks: u64) -> Option<Bytes> {
        let offset_bytes = self.next_chunk * CHUNK_BYTES as u64;
        self.next_chunk += chunks;
        let start = self.plaintext.start;
        let end = self.plaintext.end.min(self.next_chunk * CHUNK_BYTES as u64);
        if end <= start {
            return None;
        }
        self.plaintext.start = end;
        // Both lie within the buffer's chunks, which are far below 4 GiB.
        let within = (start - offset_bytes) as usize..(end - offset_bytes) as usize;
        Some(Bytes::from_owner(buffer).slice(within))
    }

    fn poll_piece(&mut self, cx: &mut std::task::Context<'_>) -> Poll<(Buffer, Result<usize>)> {
        if let Some(waiting) = &mut self.waiting {
            let piece = ready!(waiting.poll_unpin(cx));
            self.waiting = None;
            return Poll::Ready(
                piece.unwrap_or_else(|_| (READ_MANY.take(), Err(StoreError::Closed))),
            );
        }
        let is_one_of_many = READERS.load(Ordering::Relaxed) >= READERS_MANY;
        let pool = if is_one_of_many { &READ_MANY } else { &READ };
        let mut buffer = self.buffers.take(pool);
        let piece = self.piece(&buffer);
        if let Some((coming, end)) = self.source.coming(&piece) {
            let (source, is_far) = (
                self.source.clone(),
                end > coming.there() + CACHE_AHEAD_BYTES,
            );
            self.waiting = Some(if is_far {
                tokio::spawn(read_ahead(source, piece, buffer))
            } else {
                tokio::spawn(read_coming((source, coming.clone()), (piece, end), buffer))
            });
            return self.poll_piece(cx);
        }
        buffer.add_plaintext((piece.end - piece.start) as usize * CHUNK_BYTES);
        match self.source.open_cached(piece.clone(), &mut buffer) {
            Ok(0) => {}
            opened => return Poll::Ready((buffer, opened)),
        }
        let source = self.source.clone();
        self.waiting = Some(tokio::task::spawn_blocking(move || {
            let opened = source.open_waiting(piece, &mut buffer);
            (buffer, opened)
        }));
        self.poll_piece(cx)
    }
}

impl Stream for BlobReader {
    type Item = Result<Bytes>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        while self.next_chunk < self.end_chunk {
            let (buffer, opened) = ready!(self.poll_piece(cx));
            match opened {
                Ok(chunks) => {
                    if let Some(bytes) = self.give_out(buffer, chunks as u64) {
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                }
                Err(error) => {
                    self.end_chunk = self.next_chunk;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        Poll::Ready(None)
    }
}

/// Reads a piece as soon as it has come.
async fn read_coming(
    (source, coming): (Arc<SealedFile>, Arc<Coming>),
    (piece, end): (Range<u64>, u64),
    mut buffer: Buffer,
) -> (Buffer, Result<usize>) {
    match coming.until(end).await {
        Ok(()) => {}
        // There is no room for it: it is shown all the same, and not kept.
        Err(_) if coming.is_not_kept() => return read_ahead(source, piece, buffer).await,
        Err(error) => return (buffer, Err(error)),
    }
    let read = tokio::task::spawn_blocking(move || {
        buffer.add_plaintext((piece.end - piece.start) as usize * CHUNK_BYTES);
        let opened = source.open_waiting(piece, &mut buffer);
        (buffer, opened)
    });
    read.await
        .unwrap_or_else(|_| (READ_MANY.take(), Err(StoreError::Closed)))
}

/// Reads a piece that comes much later, or not at all, from where the blob comes from.
async fn read_ahead(
    source: Arc<SealedFile>,
    piece: Range<u64>,
    mut buffer: Buffer,
) -> (Buffer, Result<usize>) {
    let sealed = match source.part(&piece).await {
        Ok(sealed) => sealed,
        Err(error) => return (buffer, Err(error)),
    };
    let read = tokio::task::spawn_blocking(move || {
        buffer.add_plaintext((piece.end - piece.start) as usize * CHUNK_BYTES);
        let opened = source.open_from(piece, &sealed, &mut buffer);
        (buffer, opened)
    });
    read.await
        .unwrap_or_else(|_| (READ_MANY.take(), Err(StoreError::Closed)))
}

/// The chunks that a range of a blob's plaintext lies in: with the last one where it reaches to the
/// end, though that be empty, for it proves the end.
pub(crate) fn chunks_of(range: &Range<u64>, opener: &Opener) -> Result<Range<u64>> {
    let plaintext_bytes = opener.plaintext_bytes();
    if range.start > range.end || range.end > plaintext_bytes {
        return Err(StoreError::OutOfRange);
    }
    let start = range.start / CHUNK_BYTES as u64;
    let end = if range.end == plaintext_bytes {
        opener.chunk_count()
    } else if range.is_empty() {
        start
    } else {
        range.end.div_ceil(CHUNK_BYTES as u64)
    };
    Ok(start..end)
}

struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        READERS.fetch_sub(1, Ordering::Relaxed);
    }
}
