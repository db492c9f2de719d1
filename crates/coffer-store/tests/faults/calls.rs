//! The C library's calls that write and sync files, in place of its own in this one test program:
//! so SQLite's can be refused, and it is known what a power cut would leave.
//!
//! `unsafe`, for such a function takes what C gives it.

#![allow(unsafe_code)]

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, OsStr, c_char, c_int, c_long, c_void};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

static DISK: Mutex<Option<Disk>> = Mutex::new(None);

/// There is no room for copies of logs. Apart from the rest, which is held while files are written
/// here.
pub(crate) static IS_COPY_FULL: AtomicBool = AtomicBool::new(false);

/// What is known of the files below one folder, and what is refused.
#[derive(Default)]
pub(crate) struct Disk {
    root: PathBuf,
    files: HashMap<PathBuf, Known>,
    /// So many syncs of a log fail from now on.
    pub(crate) failing_syncs: u32,
    /// So many syncs of the folder succeed from now on, before others fail.
    pub(crate) passing_folder_syncs: u32,
    /// So many syncs of the folder fail after that.
    pub(crate) failing_folder_syncs: u32,
    /// What the folder held when it was last synced.
    pub(crate) synced_names: HashSet<PathBuf>,
    /// How many calls were refused.
    pub(crate) refused_count: u32,
}

/// What of a file is on the disk for certain, and what was written since.
struct Known {
    durable: Vec<u8>,
    written: Vec<Range<usize>>,
}

/// Watches this folder from now on, which is empty.
pub(crate) fn watch(root: &Path) {
    let root = root.to_owned();
    let disk = Disk {
        root,
        ..Disk::default()
    };
    *DISK.lock() = Some(disk);
}

pub(crate) fn disk<T>(work: impl FnOnce(&mut Disk) -> T) -> T {
    work(DISK.lock().as_mut().unwrap())
}

/// Copies the folder as a killed process leaves it; or as a power cut does, after which a database
/// has what was synced and nothing else.
pub(crate) fn copy(to: &Path, is_power_cut: bool) {
    let held = DISK.lock();
    let disk = held.as_ref().unwrap();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        fs::create_dir_all(to.join(&folder)).unwrap();
        for entry in fs::read_dir(disk.root.join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            let from = disk.root.join(&path);
            match disk.files.get(&from) {
                _ if from.is_dir() => folders.push(path),
                Some(known) if is_power_cut => fs::write(to.join(path), &known.durable).unwrap(),
                _ => drop(fs::copy(&from, to.join(path)).unwrap()),
            }
        }
    }
}

impl Disk {
    /// The file behind a descriptor, if it is a database's and watched.
    fn watched(&self, file: c_int) -> Option<PathBuf> {
        let path = fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
        let name = path.file_name()?.to_str()?;
        let is_watched = path.starts_with(&self.root) && name.starts_with("catalog.db");
        (is_watched && path.exists()).then_some(path)
    }

    /// Whether anything was written to the file since it was synced.
    pub(crate) fn has_written(&self, path: &Path) -> bool {
        let known = self.files.get(path);
        known.is_some_and(|known| !known.written.is_empty())
    }

    fn is_root(&self, file: c_int) -> bool {
        fs::read_link(format!("/proc/self/fd/{file}")).is_ok_and(|path| path == self.root)
    }

    fn sync_names(&mut self) -> c_int {
        if self.passing_folder_syncs > 0 {
            self.passing_folder_syncs -= 1;
        } else if self.failing_folder_syncs > 0 {
            self.failing_folder_syncs -= 1;
            return self.refuse(libc::EIO);
        }
        let entries = fs::read_dir(&self.root).unwrap();
        self.synced_names = entries.map(|entry| entry.unwrap().path()).collect();
        0
    }

    fn refuse(&mut self, code: c_int) -> c_int {
        self.refused_count += 1;
        // SAFETY: the pointer is that of this thread's `errno`, valid while the thread runs.
        unsafe { *libc::__errno_location() = code };
        -1
    }

    /// What is known of a file; all of it is on the disk when it is met for the first time.
    fn known(&mut self, path: PathBuf) -> &mut Known {
        let met = |path: &PathBuf| Known {
            durable: fs::read(path).unwrap(),
            written: Vec::new(),
        };
        self.files.entry(path).or_insert_with_key(met)
    }

    fn synced(&mut self, path: PathBuf) {
        let file = File::open(&path).unwrap();
        let length = file.metadata().unwrap().len() as usize;
        let known = self.known(path);
        known.durable.resize(length, 0);
        for range in known.written.drain(..) {
            let range = range.start.min(length)..range.end.min(length);
            file.read_exact_at(&mut known.durable[range.clone()], range.start as u64)
                .unwrap();
        }
    }
}

fn write_at(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    let mut held = DISK.lock();
    let watched = held
        .as_mut()
        .and_then(|disk| Some((disk.watched(file)?, disk)));
    if let Some((path, disk)) = watched {
        let begin = offset as usize;
        disk.known(path).written.push(begin..begin + length);
    }
    let (file, length) = (c_long::from(file), length as c_long);
    // SAFETY: these are the caller's own arguments.
    unsafe { libc::syscall(libc::SYS_pwrite64, file, bytes, length, offset) as isize }
}

/// The standard library's, of which copies of logs are made.
#[unsafe(no_mangle)]
extern "C" fn write(file: c_int, bytes: *const c_void, length: usize) -> isize {
    if IS_COPY_FULL.load(Ordering::SeqCst) {
        let mut held = DISK.lock();
        let disk = held.as_mut().unwrap();
        let path = disk.watched(file);
        if path.is_some_and(|path| path.to_string_lossy().ends_with("-wal.new")) {
            return disk.refuse(libc::ENOSPC) as isize;
        }
    }
    let (file, length) = (c_long::from(file), length as c_long);
    // SAFETY: these are the caller's own arguments.
    unsafe { libc::syscall(libc::SYS_write, file, bytes, length) as isize }
}

/// What is known of a file goes with its name.
#[unsafe(no_mangle)]
extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    let mut held = DISK.lock();
    // SAFETY: these are the caller's own arguments, strings of C.
    let (done, [old, new]) = unsafe {
        let path = |name| PathBuf::from(OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
        let done = libc::renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to);
        (done, [from, to].map(path))
    };
    if let Some(disk) = held.as_mut().filter(|_| done == 0) {
        match disk.files.remove(&old) {
            Some(known) => drop(disk.files.insert(new, known)),
            None => drop(disk.files.remove(&new)),
        }
    }
    done
}

#[unsafe(no_mangle)]
extern "C" fn pwrite(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    write_at(file, bytes, length, offset)
}

#[unsafe(no_mangle)]
extern "C" fn pwrite64(file: c_int, bytes: *const c_void, length: usize, offset: i64) -> isize {
    write_at(file, bytes, length, offset)
}

/// After a sync that failed, the kernel takes what was written for written: the next one succeeds
/// without it.
#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    let mut held = DISK.lock();
    let Some(disk) = held.as_mut() else {
        return 0;
    };
    if disk.is_root(file) {
        return disk.sync_names();
    }
    let Some(path) = disk.watched(file) else {
        return 0;
    };
    if disk.failing_syncs > 0 && path.to_string_lossy().ends_with("-wal") {
        disk.failing_syncs -= 1;
        disk.known(path).written.clear();
        return disk.refuse(libc::EIO);
    }
    disk.synced(path);
    0
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    fsync(file)
}
