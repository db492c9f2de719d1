//! Runs of a blob's chunks as they lie in its file, for those who open them elsewhere.

use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES};
use coffer_seal::{BlobId, Context, SecretKey};
use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags};

use crate::blobs::cache::Use;
use crate::blobs::folder::{BlobStore, Inner};
use crate::blobs::reader::chunks_of;
use crate::error::{Result, StoreError};
use crate::limits::PROBE_BYTES;

/// A run of whole sealed chunks of one blob, and which of its plaintext is wanted. Holds no key
/// and no open file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSegment {
    /// The blob.
    pub blob: BlobId,
    /// The blob's salt and commitment, which were found to be those of its key.
    pub header: [u8; HEADER_BYTES],
    /// The number of the first chunk.
    pub first_chunk: u64,
    /// Where the chunks lie in the file, in bytes.
    pub sealed: Range<u64>,
    /// Whether the blob's last chunk is among them.
    pub is_last: bool,
    /// Plaintext of the first chunk that is not wanted, in bytes.
    pub skip: u64,
    /// Plaintext that is wanted, in bytes.
    pub bytes: u64,
    /// How much plaintext the whole blob holds, in bytes.
    plaintext_bytes: u64,
}

impl BlobStore {
    /// The context that a blob of this bucket is sealed with.
    pub fn context(&self, id: BlobId) -> Context {
        Context::blob(self.inner.bucket, id)
    }

    /// Finds the chunks that hold `within`, a range of a blob's plaintext that is not empty. The
    /// catalog says that the blob holds `plaintext_bytes`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is missing, has another length or was not sealed for
    /// this blob under this key; [`StoreError::OutOfRange`].
    pub async fn sealed_segment(
        &self,
        id: BlobId,
        data_key: &SecretKey,
        plaintext_bytes: u64,
        within: Range<u64>,
    ) -> Result<SealedSegment> {
        let (opened, opener) = self.open_under(id, data_key, plaintext_bytes).await?;
        let header = opened.header;
        let chunks = chunks_of(&within, &opener)?;
        if within.is_empty() {
            return Err(StoreError::OutOfRange);
        }
        let start = opener.chunk_range(chunks.start).start;
        let end = opener.chunk_range(chunks.end - 1).end;
        Ok(SealedSegment {
            blob: id,
            header,
            first_chunk: chunks.start,
            sealed: start..end,
            is_last: chunks.end == opener.chunk_count(),
            skip: within.start - chunks.start * CHUNK_BYTES as u64,
            bytes: within.end - within.start,
            plaintext_bytes,
        })
    }

    /// Opens the file that a segment lies in. A pin from before must keep it there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when it is missing or is not what it was.
    pub async fn open_segment(&self, segment: &SealedSegment) -> Result<SegmentFile> {
        let opened = self.open_file(segment.blob, segment.plaintext_bytes);
        let opened = opened.await?;
        if opened.header != segment.header {
            let what = "blob: its header is another one";
            return Err(self.inner.damaged(what, segment.blob));
        }
        opened.whole().await?;
        let file = opened.file.ok_or(StoreError::Closed)?;
        Ok(SegmentFile {
            store: self.inner.clone(),
            blob: segment.blob,
            file,
            _used: opened.used,
            sealed: segment.sealed.clone(),
            is_slow: AtomicBool::new(false),
        })
    }
}

/// The file of a segment, open for reading.
#[derive(Debug)]
pub struct SegmentFile {
    store: Arc<Inner>,
    blob: BlobId,
    file: File,
    _used: Option<Use>,
    sealed: Range<u64>,
    /// The file system can't tell what is in the cache.
    is_slow: AtomicBool,
}

impl SegmentFile {
    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where the segment lies in it, in bytes.
    pub fn sealed(&self) -> Range<u64> {
        self.sealed.clone()
    }

    /// Whether a piece of the file is in the page cache, as far as a look now and then tells.
    pub fn is_cached(&self, piece: Range<u64>) -> bool {
        !self.is_slow.load(Ordering::Relaxed)
            && probes(piece).all(|offset_bytes| self.has_cached(offset_bytes))
    }

    /// Has a piece of the file read into the page cache. Waits for the disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn fetch(&self, piece: Range<u64>) -> Result<()> {
        let length = std::num::NonZeroU64::new(piece.end.saturating_sub(piece.start));
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::Sequential);
        let _ = rustix::fs::fadvise(&self.file, piece.start, length, Advice::WillNeed);
        for offset_bytes in probes(piece) {
            match self.file.read_at(&mut [0], offset_bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.store.failed("read a blob", self.blob, error)),
            }
        }
        Ok(())
    }

    /// What it means that the file ends before the segment does.
    pub fn cut_off(&self) -> StoreError {
        self.store.damaged("blob: its file is cut off", self.blob)
    }

    fn has_cached(&self, offset_bytes: u64) -> bool {
        let mut byte = [0];
        let out = &mut [IoSliceMut::new(&mut byte)];
        match rustix::io::preadv2(&self.file, out, offset_bytes, ReadWriteFlags::NOWAIT) {
            // The end of the file, or what is wrong with it, is for the sending to find.
            Ok(_) => true,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.is_slow.store(true, Ordering::Relaxed);
                false
            }
            Err(_) => false,
        }
    }
}

/// Where in a piece to look.
fn probes(piece: Range<u64>) -> impl Iterator<Item = u64> {
    let last = piece.end.checked_sub(1).filter(|last| *last >= piece.start);
    piece.step_by(PROBE_BYTES).chain(last)
}
