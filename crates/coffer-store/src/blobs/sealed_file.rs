//! A blob's file: sealed chunks read from the page cache or from the disk, and opened.

use std::cell::RefCell;
use std::fs::File;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{BlobId, Opener};
use rustix::fs::{Advice, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags};

use crate::blobs::cache::Use;
use crate::blobs::cache::coming::Coming;
use crate::blobs::folder::Inner;
use crate::error::{Result, StoreError};
use crate::limits::SCRATCH_CHUNKS;

pub(crate) mod open;

/// An open blob, shared by its reader and the job that reads for it.
pub(crate) struct SealedFile {
    pub(crate) store: Arc<Inner>,
    pub(crate) id: BlobId,
    /// None of a blob that has no place in its cache.
    pub(crate) file: Option<File>,
    pub(crate) opener: Opener,
    /// Of a blob in a cache.
    pub(crate) used: Option<Use>,
    /// The file system can't tell what is in the cache: all reads go to the blocking pool.
    pub(crate) is_slow: AtomicBool,
}

thread_local! {
    /// Sealed bytes between the kernel's cache and the cipher: small, so that it stays in the
    /// processor's cache, and one a thread, for it is never kept across a wait.
    static SCRATCH: RefCell<Box<[u8]>> =
        RefCell::new(vec![0; SCRATCH_CHUNKS * SEALED_CHUNK_BYTES].into_boxed_slice());
}

/// How bytes are had from the file: the number read, which may be less than asked for.
type ReadAt = fn(&SealedFile, &mut [u8], u64) -> Result<usize>;

impl SealedFile {
    /// Opens as many chunks of `piece` as the page cache has, into the front of `out`. 0: the disk
    /// is needed for the first of them.
    pub(crate) fn open_cached(&self, piece: Range<u64>, out: &mut [u8]) -> Result<usize> {
        if self.is_slow.load(Ordering::Relaxed) {
            return Ok(0);
        }
        self.open_chunks(piece, out, Self::read_cached)
    }

    /// The same, waiting for the disk.
    pub(crate) fn open_waiting(&self, piece: Range<u64>, out: &mut [u8]) -> Result<usize> {
        let sealed = self.opener.chunk_range(piece.start).start;
        if let Some(file) = &self.file {
            // A reader that had to wait once will read on: twice the usual read-ahead, and from
            // here.
            let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
            let length = std::num::NonZeroU64::new(2 * out.len() as u64);
            let _ = rustix::fs::fadvise(file, sealed, length, Advice::WillNeed);
        }
        match self.open_chunks(piece, out, Self::read_waiting)? {
            0 => Err(self.damaged("blob: its file is cut off")),
            chunks => Ok(chunks),
        }
    }

    fn open_chunks(&self, piece: Range<u64>, out: &mut [u8], read_at: ReadAt) -> Result<usize> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut opened = 0;
            let mut next = piece.start;
            while next < piece.end {
                let end = piece.end.min(next + SCRATCH_CHUNKS as u64);
                let offset_bytes = self.opener.chunk_range(next).start;
                let sealed_bytes = self.opener.chunk_range(end - 1).end - offset_bytes;
                // At most `SCRATCH_CHUNKS` sealed chunks.
                let asked = &mut scratch[..sealed_bytes as usize];
                let asked_bytes = asked.len();
                let count = match read_at(self, asked, offset_bytes) {
                    Ok(count) => count,
                    // What opened before the disk failed is given out first.
                    Err(_) if opened > 0 => return Ok(opened),
                    Err(error) => return Err(error),
                };
                let mut at = 0;
                while next < end {
                    let range = self.opener.chunk_range(next);
                    let length = (range.end - range.start) as usize;
                    let Some(sealed) = scratch[..count].get(at..at + length) else {
                        break;
                    };
                    let place = out.get_mut(opened * CHUNK_BYTES..).unwrap_or_default();
                    if self.opener.open_chunk(next, sealed, place).is_err() {
                        // So is what opened before the first chunk that does not.
                        return if opened > 0 {
                            Ok(opened)
                        } else {
                            Err(self.damaged("blob: a chunk does not open"))
                        };
                    }
                    at += length;
                    opened += 1;
                    next += 1;
                }
                if count < asked_bytes {
                    break;
                }
            }
            Ok(opened)
        })
    }

    fn read_cached(&self, out: &mut [u8], offset_bytes: u64) -> Result<usize> {
        let Some(file) = &self.file else {
            return Ok(0);
        };
        let flags = ReadWriteFlags::NOWAIT;
        match rustix::io::preadv2(file, &mut [IoSliceMut::new(out)], offset_bytes, flags) {
            Ok(count) => Ok(count),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.is_slow.store(true, Ordering::Relaxed);
                Ok(0)
            }
            Err(error) => Err(self.store.failed("read a blob", self.id, error)),
        }
    }

    fn read_waiting(&self, out: &mut [u8], offset_bytes: u64) -> Result<usize> {
        let file = self.file.as_ref().ok_or(StoreError::Closed)?;
        let mut filled = 0;
        while filled < out.len() {
            match file.read_at(&mut out[filled..], offset_bytes + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.store.failed("read a blob", self.id, error)),
            }
        }
        Ok(filled)
    }

    pub(crate) fn is_empty_chunk(&self, index: u64) -> bool {
        index * CHUNK_BYTES as u64 == self.opener.plaintext_bytes()
    }

    /// What brings these chunks, if they are not all there yet.
    pub(crate) fn coming(&self, chunks: &Range<u64>) -> Option<(&Arc<Coming>, u64)> {
        let coming = self.used.as_ref()?.coming.as_ref()?;
        let end = self.sealed_range(chunks).end;
        (coming.there() < end).then_some((coming, end))
    }

    /// These chunks as they are sealed, from where the blob comes from.
    pub(crate) async fn part(&self, chunks: &Range<u64>) -> Result<Bytes> {
        let used = self.used.as_ref().ok_or(StoreError::Closed)?;
        used.part(self.sealed_range(chunks)).await
    }

    /// Where chunks lie in the file, in bytes.
    fn sealed_range(&self, chunks: &Range<u64>) -> Range<u64> {
        let of = |chunk| self.opener.chunk_range(chunk);
        of(chunks.start).start..of(chunks.end.saturating_sub(1)).end
    }

    /// Opens sealed chunks into the front of `out`; how many.
    pub(crate) fn open_from(
        &self,
        chunks: Range<u64>,
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        let begin = self.sealed_range(&chunks).start;
        let mut opened = 0;
        for chunk in chunks {
            let range = self.opener.chunk_range(chunk);
            // Within a piece, which is far below 4 GiB.
            let range = (range.start - begin) as usize..(range.end - begin) as usize;
            let place = out.get_mut(opened * CHUNK_BYTES..).unwrap_or_default();
            let done = sealed
                .get(range)
                .map(|sealed| self.opener.open_chunk(chunk, sealed, place));
            if !matches!(done, Some(Ok(_))) {
                return Err(self.damaged("blob: a chunk does not open"));
            }
            opened += 1;
        }
        Ok(opened)
    }

    fn damaged(&self, what: &'static str) -> StoreError {
        if let Some(used) = &self.used {
            used.is_bad();
        }
        self.store.damaged(what, self.id)
    }
}

pub(crate) type Opened = Result<(File, [u8; HEADER_BYTES], u64), Errno>;

/// Opens a file and reads its header if that needs no disk. `None`: it does, or can't be told.
pub(crate) fn open_cached(path: &Path) -> Option<Opened> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = match rustix::fs::openat2(
        rustix::fs::CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::CACHED,
    ) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Some(Err(Errno::NOENT)),
        Err(_) => return None,
    };
    let mut header = [0; HEADER_BYTES];
    let count = rustix::io::preadv2(
        &file,
        &mut [IoSliceMut::new(&mut header)],
        0,
        ReadWriteFlags::NOWAIT,
    );
    if count != Ok(HEADER_BYTES) {
        return None;
    }
    // What is open has its inode in memory.
    Some(rustix::fs::fstat(&file).map(|stat| (file, header, stat.st_size.unsigned_abs())))
}

pub(crate) fn open_waiting(path: &Path) -> Opened {
    let as_errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let file = File::open(path).map_err(as_errno)?;
    let file_bytes = file.metadata().map_err(as_errno)?.len();
    let mut header = [0; HEADER_BYTES];
    match file.read_exact_at(&mut header, 0) {
        // Too short for a header: the length will tell.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
        read => read.map_err(as_errno)?,
    }
    Ok((file, header, file_bytes))
}
