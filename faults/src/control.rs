//! Which calls fail, as a page of memory says that is shared with the test.
//!
//! Numbers of eight bytes, the processor's own order:
//!
//! | at | what |
//! |---|---|
//! | 0 | which [`Kind`]s count, a bit each |
//! | 8 | the first counted call that fails, from 0 |
//! | 16 | how many fail in a row |
//! | 24 | with which error |
//! | 32 | how many were counted; the program that sets the others sets this to 0 |
//! | 40 | how many failed |
//! | 48 | the length of a text; a call counts only if its path holds it |
//! | 56 | that text |

use std::ffi::OsStr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// What a call does, as far as it matters for what fails.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Open,
    Write,
    Sync,
    SyncFolder,
    Truncate,
    Rename,
    Remove,
    MakeFolder,
    Link,
    Read,
}

const PAGE_BYTES: usize = 4096;

const TEXT: usize = 56;

static PAGE: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Maps the page; without one, nothing ever fails.
pub(crate) fn open(path: &OsStr) {
    let Ok(file) = std::fs::File::options().read(true).write(true).open(path) else {
        return;
    };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, which stays for as long as the process lives.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE_BYTES,
            access,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED, "{}", path.display());
    PAGE.store(page.cast(), Ordering::Release);
}

fn number(page: *mut u8, at: usize) -> &'static AtomicU64 {
    // SAFETY: the page is mapped for good and `at` a multiple of eight within it.
    unsafe { &*page.add(at).cast::<AtomicU64>() }
}

/// Counts a call; the error that it is to fail with, if it is to.
pub(crate) fn refusal(kind: Kind, path: &[u8]) -> Option<i64> {
    let page = PAGE.load(Ordering::Acquire);
    if page.is_null() {
        return None;
    }
    let get = |at| number(page, at).load(Ordering::Acquire);
    if get(0) & (1 << kind as u64) == 0 || !holds_text(page, path) {
        return None;
    }
    let counted = number(page, 32).fetch_add(1, Ordering::AcqRel);
    let (first, count) = (get(8), get(16));
    if counted < first || counted - first >= count {
        return None;
    }
    number(page, 40).fetch_add(1, Ordering::AcqRel);
    Some(get(24) as i64)
}

fn holds_text(page: *mut u8, path: &[u8]) -> bool {
    let length = number(page, 48).load(Ordering::Acquire) as usize;
    let length = length.min(PAGE_BYTES - TEXT);
    // SAFETY: it lies within the page; the test does not change it while a server works.
    let text = unsafe { std::slice::from_raw_parts(page.add(TEXT), length) };
    text.is_empty() || path.windows(length).any(|piece| piece == text)
}
