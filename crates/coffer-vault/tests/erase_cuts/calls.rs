//! The C library's calls that change files, in place of its own in this one test program: so each
//! write and sync is seen and can be refused, also those of SQLite.
//!
//! `unsafe`, for such a function takes what C gives it. Nothing else sees them all but a file
//! system of one's own, which takes root.

#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use coffer_durable::simulated::{NameChange, Step};

use crate::tape;

/// Fails a call.
fn refuse(code: c_int) -> c_int {
    // SAFETY: the pointer is that of this thread's `errno`, valid while the thread runs.
    unsafe { *libc::__errno_location() = code };
    -1
}

fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: a caller with a path gives a string that ends, valid for the call.
    Path::new(OsStr::from_bytes(
        unsafe { CStr::from_ptr(path) }.to_bytes(),
    ))
}

fn write_at(file: c_int, bytes: *const c_void, length: usize, offset: Option<i64>) -> isize {
    let real = |length: usize| {
        let (file, length) = (c_long::from(file), length as c_long);
        // SAFETY: these are the caller's own arguments, or fewer bytes of them.
        let done = unsafe {
            match offset {
                None => libc::syscall(libc::SYS_write, file, bytes, length),
                Some(offset) => libc::syscall(libc::SYS_pwrite64, file, bytes, length, offset),
            }
        };
        done as isize
    };
    let Some(mut running) = tape::of_descriptor(file) else {
        return real(length);
    };
    // SAFETY: it only asks for the descriptor's place.
    let offset = offset.unwrap_or_else(|| unsafe { libc::lseek(file, 0, libc::SEEK_CUR) });
    let is_refused = running.is_refused();
    let done = real(if is_refused { length / 2 } else { length });
    if let Ok(done) = usize::try_from(done) {
        // SAFETY: the caller vouches for `length` bytes, and no more were written.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), done) };
        let write = Step::Write {
            file: running.file(),
            offset: offset as usize,
            bytes: bytes.to_vec(),
        };
        running.push(write);
    }
    if is_refused {
        return refuse(libc::ENOSPC) as isize;
    }
    done
}

#[unsafe(no_mangle)]
extern "C" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    write_at(file, bytes, length, None)
}

#[unsafe(no_mangle)]
extern "C" fn pwrite(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    write_at(file, bytes, length, Some(offset))
}

#[unsafe(no_mangle)]
extern "C" fn pwrite64(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    write_at(file, bytes, length, Some(offset))
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(file: c_int, length: i64) -> c_int {
    // SAFETY: these are the caller's own arguments.
    let real =
        || unsafe { libc::syscall(libc::SYS_ftruncate, c_long::from(file), length) as c_int };
    let Some(mut running) = tape::of_descriptor(file) else {
        return real();
    };
    if running.is_refused() {
        return refuse(libc::EIO);
    }
    let done = real();
    let truncate = Step::Truncate {
        file: running.file(),
        length: length as usize,
    };
    running.push(truncate);
    done
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate64(file: c_int, length: i64) -> c_int {
    ftruncate(file, length)
}

/// The disk itself is not asked: what would be durable is known from the tape.
#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: c_int) -> c_int {
    let Some(mut running) = tape::of_descriptor(descriptor) else {
        return 0;
    };
    let path = running.path.clone();
    let is_folder = tape::descriptor_path(descriptor).is_some_and(|path| path.is_dir());
    match (running.is_refused(), is_folder) {
        (false, true) => running.push(Step::SyncFolder { path }),
        (true, true) => return refuse(libc::EIO),
        (false, false) => {
            let file = running.file();
            running.push(Step::Sync { file });
        }
        (true, false) => {
            let shown = running.refuse_sync();
            show(descriptor, &shown);
            return refuse(libc::EIO);
        }
    }
    0
}

/// Makes a file hold these bytes, and no others.
fn show(file: c_int, bytes: &[u8]) {
    let (file, length) = (c_long::from(file), bytes.len() as c_long);
    // SAFETY: the bytes are there for the calls, and no file that is recorded is mapped.
    let done = unsafe {
        libc::syscall(libc::SYS_ftruncate, file, length);
        libc::syscall(
            libc::SYS_pwrite64,
            file,
            bytes.as_ptr(),
            length,
            0 as c_long,
        )
    };
    assert_eq!(done, length);
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    fsync(descriptor)
}

/// Changes a name, and records it when that was done.
fn change_name(
    path: &Path,
    change: impl FnOnce(&mut tape::Running) -> NameChange,
    real: impl FnOnce() -> c_long,
) -> c_int {
    let Some(mut running) = tape::of_path(path) else {
        return real() as c_int;
    };
    if running.is_refused() {
        return refuse(libc::EIO);
    }
    let done = real() as c_int;
    if done == 0 {
        let change = change(&mut running);
        running.renamed(change);
    }
    done
}

fn removed(running: &mut tape::Running) -> NameChange {
    let path = running.path.clone();
    NameChange::Remove { path }
}

#[unsafe(no_mangle)]
extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let change = |running: &mut tape::Running| NameChange::Rename {
        from: running.below(path_of(from)),
        to: running.path.clone(),
    };
    change_name(path_of(to), change, || {
        // SAFETY: these are the caller's own arguments.
        unsafe { libc::syscall(libc::SYS_rename, from, to) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: these are the caller's own arguments.
    change_name(path_of(path), removed, || unsafe {
        libc::syscall(libc::SYS_unlink, path)
    })
}

#[unsafe(no_mangle)]
extern "C" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: these are the caller's own arguments.
    change_name(path_of(path), removed, || unsafe {
        libc::syscall(libc::SYS_rmdir, path)
    })
}

#[unsafe(no_mangle)]
extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    let within = match folder {
        libc::AT_FDCWD => PathBuf::new(),
        folder => tape::descriptor_path(folder).unwrap_or_default(),
    };
    let (of_folder, flags) = (c_long::from(folder), c_long::from(flags));
    // SAFETY: these are the caller's own arguments.
    change_name(&within.join(path_of(path)), removed, || unsafe {
        libc::syscall(libc::SYS_unlinkat, of_folder, path, flags)
    })
}

#[unsafe(no_mangle)]
extern "C" fn mkdir(path: *const c_char, mode: libc::mode_t) -> c_int {
    let change = |running: &mut tape::Running| {
        let path = running.path.clone();
        NameChange::MakeFolder { path }
    };
    // SAFETY: these are the caller's own arguments.
    change_name(path_of(path), change, || unsafe {
        libc::syscall(libc::SYS_mkdir, path, mode as c_long)
    })
}
