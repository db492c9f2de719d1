//! Buffers that are used again and again.
//!
//! Asking the allocator for some hundred KiB and giving them back for every piece of a stream costs
//! more than the cipher does: it returns the pages to the kernel and faults them in again.
//!
//! No plaintext stays in a buffer that nobody uses: whoever writes some says where.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Mutex, PoisonError};

use coffer_seal::limits::{CHUNK_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::zeroize_buffer;

use crate::limits::{POOL_BYTES_MAX, READ_CHUNKS, READ_CHUNKS_MANY, WRITE_BYTES, WRITE_BYTES_MANY};

/// Plaintext on its way out, for few readers.
pub(crate) static READ: Pool = Pool::new(READ_CHUNKS * CHUNK_BYTES);
/// Plaintext on its way out, when there are many.
pub(crate) static READ_MANY: Pool = Pool::new(READ_CHUNKS_MANY * CHUNK_BYTES);
/// Sealed bytes on their way to a file, for few writers: a write, and the chunk that overlaps its
/// end.
pub(crate) static WRITE: Pool = Pool::new(WRITE_BYTES + SEALED_CHUNK_BYTES);
/// Sealed bytes on their way to a file, when there are many.
pub(crate) static WRITE_MANY: Pool = Pool::new(WRITE_BYTES_MANY + SEALED_CHUNK_BYTES);

/// A bounded list of free buffers of one size.
pub(crate) struct Pool {
    size_bytes: usize,
    free: Mutex<Vec<Box<[u8]>>>,
}

impl Pool {
    const fn new(size_bytes: usize) -> Self {
        Self {
            size_bytes,
            free: Mutex::new(Vec::new()),
        }
    }

    /// A buffer that holds zeros or what was sealed before: it is the user's to give out only what
    /// was written into it.
    pub(crate) fn take(&'static self) -> Buffer {
        let free = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let bytes = free.unwrap_or_else(|| vec![0; self.size_bytes].into_boxed_slice());
        Buffer {
            bytes,
            pool: self,
            plaintext: 0..0,
        }
    }
}

/// A buffer that goes back to its pool when dropped.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    pool: &'static Pool,
    /// Where plaintext lies, or may: zeroized when the buffer is dropped.
    plaintext: Range<usize>,
}

impl Buffer {
    /// A buffer from the same pool.
    pub(crate) fn another(&self) -> Self {
        self.pool.take()
    }

    /// Says where plaintext will lie, before it is written there; all else is none, or is sealed.
    pub(crate) fn set_plaintext(&mut self, range: Range<usize>) {
        self.plaintext = range.start..range.end.min(self.bytes.len());
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        zeroize_buffer(&mut self.bytes[self.plaintext.clone()]);
        let mut free = self
            .pool
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if (free.len() + 1) * self.pool.size_bytes <= POOL_BYTES_MAX {
            free.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_the_next_one_taken_and_the_pool_is_bounded() {
        static POOL: Pool = Pool::new(1 << 20);
        let first = POOL.take();
        let address = first.as_ptr();
        drop(first);
        assert_eq!(POOL.take().as_ptr(), address);

        let many: Vec<_> = (0..64).map(|_| POOL.take()).collect();
        drop(many);
        assert_eq!(POOL.free.lock().unwrap().len(), POOL_BYTES_MAX >> 20);
    }

    #[test]
    fn a_buffer_that_is_dropped_keeps_what_is_sealed_and_no_plaintext() {
        static POOL: Pool = Pool::new(8);
        let mut buffer = POOL.take();
        buffer.set_plaintext(2..20);
        buffer.fill(7);
        drop(buffer);
        assert_eq!(*POOL.take(), [7, 7, 0, 0, 0, 0, 0, 0]);
    }
}
