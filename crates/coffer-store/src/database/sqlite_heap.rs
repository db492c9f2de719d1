//! SQLite's heap, zeroized as it is given back: pages of catalogs lie on it, opened, with the names
//! of objects and what small ones hold.
//!
//! SQLCipher has a setting of its own for this, which also locks each block in memory: two system
//! calls for whatever SQLite needs memory for.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi;

/// The functions of SQLite's own heap.
struct Heap {
    malloc: unsafe extern "C" fn(c_int) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    size: unsafe extern "C" fn(*mut c_void) -> c_int,
}

static HEAP: OnceLock<Heap> = OnceLock::new();

/// Makes SQLite zeroize what it frees, in all databases of the process. To be called once, before
/// SQLite is used for anything: it refuses later.
pub(crate) fn zeroize_what_sqlite_frees() {
    let mut methods = MaybeUninit::<ffi::sqlite3_mem_methods>::uninit();
    // SAFETY: this option takes a pointer to where the methods shall be written, and nobody else
    // configures SQLite. They are read only if it says that it has written them.
    let mut methods = unsafe {
        let code = ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, methods.as_mut_ptr());
        assert_eq!(code, ffi::SQLITE_OK, "SQLite has not been used yet");
        methods.assume_init()
    };
    let whole = "SQLite's heap has all of its methods";
    let heap = Heap {
        malloc: methods.xMalloc.expect(whole),
        free: methods.xFree.expect(whole),
        size: methods.xSize.expect(whole),
    };
    if HEAP.set(heap).is_err() {
        return; // done before
    }
    methods.xFree = Some(free);
    methods.xRealloc = Some(realloc);
    // SAFETY: this option takes a pointer to methods, which SQLite copies. Those that were put in
    // keep to what SQLite asks of them.
    let code = unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw mut methods) };
    assert_eq!(code, ffi::SQLITE_OK, "SQLite has not been used yet");
}

fn heap() -> &'static Heap {
    HEAP.get()
        .expect("set before SQLite knows of these functions")
}

/// SQLite calls it with blocks of its heap, never with null.
unsafe extern "C" fn free(block: *mut c_void) {
    let heap = heap();
    // SAFETY: the block is SQLite's heap's, of the size that this says, and nobody uses it any
    // more. SQLite and its heap are code of another language: no write to memory that they are
    // handed is left out.
    unsafe {
        let bytes = usize::try_from((heap.size)(block)).unwrap_or(0);
        ptr::write_bytes(block.cast::<u8>(), 0, bytes);
        (heap.free)(block);
    }
}

/// SQLite calls it with blocks of its heap and sizes above 0. The block moves always: were it grown
/// by the heap, what it held would stay where it was.
unsafe extern "C" fn realloc(block: *mut c_void, size: c_int) -> *mut c_void {
    let heap = heap();
    // SAFETY: as above; the new block is of the size that was asked for, and none of the old one.
    unsafe {
        let grown = (heap.malloc)(size);
        if !grown.is_null() {
            let bytes = usize::try_from(size.min((heap.size)(block))).unwrap_or(0);
            ptr::copy_nonoverlapping(block.cast::<u8>(), grown.cast::<u8>(), bytes);
            free(block);
        }
        grown
    }
}
