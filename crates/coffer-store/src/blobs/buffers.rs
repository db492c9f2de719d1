//! Buffers that are used again and again.
//!
//! Asking the allocator for some hundred KiB and giving them back for every piece of a stream costs
//! more than the cipher does: it returns the pages to the kernel and faults them in again.
//!
//! A user says where it writes plaintext, and none stays in a buffer that goes back to its pool.
//! The pieces of one stream use the same buffers, one after another: what one leaves is overwritten
//! by the next, and zeroized once, when the stream ends.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Weak};

use coffer_seal::limits::{CHUNK_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::zeroize_buffer;
use parking_lot::Mutex;

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
        let free = self.free.lock().pop();
        let bytes = free.unwrap_or_else(|| vec![0; self.size_bytes].into_boxed_slice());
        Buffer {
            bytes,
            pool: self,
            plaintext: 0..0,
            stream: Weak::new(),
        }
    }
}

/// The buffers of one stream that are free. They go back to their pool when it is dropped; one that
/// is still with a client then goes back on its own.
#[derive(Default)]
pub(crate) struct StreamBuffers(Arc<Mutex<Vec<Buffer>>>);

impl StreamBuffers {
    /// A buffer of this size that the stream has used before, or one from the pool.
    pub(crate) fn take(&self, pool: &'static Pool) -> Buffer {
        let mut free = self.0.lock();
        let used = free.pop().filter(|used| std::ptr::eq(used.pool, pool));
        drop(free);
        let mut buffer = used.unwrap_or_else(|| pool.take());
        buffer.stream = Arc::downgrade(&self.0);
        buffer
    }
}

/// A buffer that goes back to its stream when dropped, or else to its pool.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    pool: &'static Pool,
    /// Where plaintext lies, or may: zeroized before the buffer goes back to its pool.
    plaintext: Range<usize>,
    /// Nowhere while the stream itself has it, and in a buffer that is of none.
    stream: Weak<Mutex<Vec<Buffer>>>,
}

impl Buffer {
    /// A buffer from the same pool.
    pub(crate) fn another(&self) -> Self {
        self.pool.take()
    }

    /// Takes its bytes; it is empty from then on.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            bytes: std::mem::take(&mut self.bytes),
            pool: self.pool,
            plaintext: std::mem::take(&mut self.plaintext),
            stream: std::mem::take(&mut self.stream),
        }
    }

    /// Says where plaintext will lie, before it is written there; all else is none, or is sealed.
    pub(crate) fn set_plaintext(&mut self, range: Range<usize>) {
        self.plaintext = range.start..range.end.min(self.bytes.len());
    }

    /// Says that plaintext will lie in the first so many bytes, beside what an earlier piece of
    /// the stream left.
    pub(crate) fn add_plaintext(&mut self, end: usize) {
        self.set_plaintext(0..end.max(self.plaintext.end));
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes.is_empty() {
            return; // They were taken.
        }
        if let Some(stream) = self.stream.upgrade() {
            let used = Buffer {
                bytes: std::mem::take(&mut self.bytes),
                pool: self.pool,
                plaintext: self.plaintext.clone(),
                stream: Weak::new(),
            };
            let mut free = stream.lock();
            free.push(used);
            return;
        }
        zeroize_buffer(&mut self.bytes[self.plaintext.clone()]);
        let mut free = self.pool.free.lock();
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
        assert_eq!(POOL.free.lock().len(), POOL_BYTES_MAX >> 20);
    }

    #[test]
    fn a_stream_keeps_its_buffers_until_it_ends_and_leaves_no_plaintext_in_them() {
        static POOL: Pool = Pool::new(8);
        static OTHER: Pool = Pool::new(4);
        let stream = StreamBuffers::default();
        let mut first = stream.take(&POOL);
        first.add_plaintext(6);
        first.fill(7);
        drop(first);

        let mut again = stream.take(&POOL);
        assert_eq!(*again, [7; 8], "the same buffer, not yet zeroized");
        again.add_plaintext(2);
        assert_eq!(stream.take(&OTHER).len(), 4);
        drop(again);
        drop(stream);
        assert_eq!(*POOL.take(), [0, 0, 0, 0, 0, 0, 7, 7]);
    }

    #[test]
    fn a_buffer_that_outlives_its_stream_goes_back_without_plaintext() {
        static POOL: Pool = Pool::new(8);
        let stream = StreamBuffers::default();
        let mut buffer = stream.take(&POOL);
        drop(stream);
        buffer.add_plaintext(8);
        buffer.fill(7);
        drop(buffer);
        assert_eq!(*POOL.take(), [0; 8]);
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
