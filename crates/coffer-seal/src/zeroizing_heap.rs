//! A heap that keeps nothing of what was on it.
//!
//! Plaintext passes through buffers of libraries (TLS, HTTP, XML) as much as through our own. A
//! program whose global allocator this is has none of it left in memory that was freed, whose ever
//! it was. See `docs/decisions/0024-plaintext-is-zeroized-where-it-is-freed.md`.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};

use zeroize::optimization_barrier;

/// The system's allocator, with every block zeroized when it is given back.
#[derive(Debug, Clone, Copy, Default)]
pub struct ZeroizingHeap;

// SAFETY: blocks are the system's, handed on as they are. `realloc` is the trait's own, made of
// these: so a block that grows leaves nothing where it was.
unsafe impl GlobalAlloc for ZeroizingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to what this very function asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives back a block of this layout, which nobody uses any more; for
        // writing zeros it matters not whether all of it was ever written.
        unsafe {
            block.write_bytes(0, layout.size());
            zeroized(std::slice::from_raw_parts(block, layout.size()));
            System.dealloc(block, layout);
        }
    }
}

/// Zeroizes a buffer, as fast as memory can be written.
pub fn zeroize_buffer(buffer: &mut [u8]) {
    buffer.fill(0);
    zeroized(buffer);
}

/// Keeps the compiler from leaving out a write of zeros that nobody reads.
#[inline]
fn zeroized(bytes: &[u8]) {
    optimization_barrier(bytes);
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    const RECORD: &[u8] = b"a record that nobody may find";

    /// A block that was given back belongs to the system, and may not be looked at. So this looks
    /// at what the system gives next for the same layout, if that is the same block; another test
    /// may have been given it meanwhile. The compiler takes two blocks of an allocator for
    /// different ones, and new ones for unwritten: so it is not told that these are such.
    fn holds_nothing_when_given_again(size: usize) -> Option<bool> {
        let layout = Layout::from_size_align(size, 16).unwrap();
        // SAFETY: the blocks are used within their layout, and given back once.
        unsafe {
            let block = black_box(ZeroizingHeap.alloc(layout));
            let end = size - RECORD.len();
            block.add(end).copy_from(RECORD.as_ptr(), RECORD.len());
            ZeroizingHeap.dealloc(block, layout);
            let next = black_box(System.alloc(layout));
            let left =
                (next == block).then(|| std::slice::from_raw_parts(next.add(end), RECORD.len()));
            let holds_nothing = left.map(|left| left.iter().all(|&byte| byte == 0));
            System.dealloc(next, layout);
            holds_nothing
        }
    }

    #[test]
    fn a_block_that_was_given_back_holds_nothing() {
        for size in [64, 1_000, 20_000] {
            let shown = (0..1_000).find_map(|_| holds_nothing_when_given_again(size));
            assert_eq!(shown, Some(true), "none is what shows nothing");
        }
    }

    #[test]
    fn a_block_that_grows_keeps_its_bytes() {
        let layout = Layout::from_size_align(48, 8).unwrap();
        // SAFETY: as above.
        unsafe {
            let block = ZeroizingHeap.alloc_zeroed(layout);
            block.add(40).write(7);
            let grown = ZeroizingHeap.realloc(block, layout, 96);
            assert_eq!((grown.read(), grown.add(40).read()), (0, 7));
            ZeroizingHeap.dealloc(grown, Layout::from_size_align(96, 8).unwrap());
        }
    }
}
