//! All changes of the folder's files, in their order, appended to one file.
//!
//! A record, all numbers little-endian:
//!
//! ```text
//! length(4) of what follows || what(1) || inode(8) || number(8) || path length(2) || path ||
//! second path's length(2) || second path || data
//! ```
//!
//! Each is written by one call to a file that is opened for appending, so that the test may append
//! records of its own between them.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::system::call;

/// What a record tells.
#[derive(Clone, Copy)]
pub(crate) enum What {
    /// `data` was written at the offset `number`.
    Write = 1,
    /// The file is `number` bytes long.
    Truncate = 2,
    /// The file was synced.
    Sync = 3,
    /// The folder `path` was synced.
    SyncFolder = 4,
    /// `path` was created.
    Create = 5,
    /// The folder `path` was made.
    MakeFolder = 6,
    /// `path` is called by the second path now; with a `number` of 1 they have changed names.
    Rename = 7,
    /// `path` was removed: a file or an empty folder.
    Remove = 8,
    /// The file has `path` as another name.
    Link = 9,
    /// A sync of the file was refused.
    SyncRefused = 10,
    /// A call was refused, with the error `number`.
    Refused = 11,
    /// All files and names were synced.
    SyncAll = 12,
}

static ROOT: OnceLock<Vec<u8>> = OnceLock::new();

/// The file's descriptor; below 0 there is none.
static TAPE: AtomicI32 = AtomicI32::new(-1);

/// One change at a time: the order of the records is that of the changes.
static ORDER: Mutex<()> = Mutex::new(());

/// Begins to record changes of files below `root`.
pub(crate) fn open(root: &OsStr, tape: &OsStr) {
    ROOT.get_or_init(|| root.as_bytes().to_vec());
    let opened = OpenOptions::new().append(true).create(true).open(tape);
    if let Ok(file) = opened {
        TAPE.store(out_of_the_way(file), Ordering::Release);
    }
}

/// Programs count on low numbers of descriptors.
fn out_of_the_way(file: File) -> i32 {
    // SAFETY: it duplicates a descriptor.
    let high = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 900) };
    if high < 0 { file.into_raw_fd() } else { high }
}

/// Whether changes of this path are recorded.
pub(crate) fn counts(path: &[u8]) -> bool {
    let Some(root) = ROOT.get() else { return false };
    path.strip_prefix(root.as_slice())
        .is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
}

/// The order of changes, held while one is made and recorded.
///
/// The tape is locked meanwhile, so that the test can kill the server between two of them: a change
/// that is not on the tape is none that a power cut could have left.
pub(crate) struct Turn(#[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

/// Waits for a turn.
pub(crate) fn turn() -> Turn {
    let turn = Turn(ORDER.lock().unwrap_or_else(PoisonError::into_inner));
    lock(libc::LOCK_EX);
    turn
}

impl Drop for Turn {
    fn drop(&mut self) {
        lock(libc::LOCK_UN);
    }
}

/// Locks the tape, or gives it up.
fn lock(how: i32) {
    let tape = TAPE.load(Ordering::Acquire);
    let interrupted = -i64::from(libc::EINTR);
    if tape >= 0 {
        while call(libc::SYS_flock, &[tape.into(), how.into(), 0, 0, 0, 0]) == interrupted {}
    }
}

/// A record; what is not named is empty.
#[derive(Default)]
pub(crate) struct Record<'a> {
    pub(crate) inode: u64,
    pub(crate) number: u64,
    pub(crate) path: &'a [u8],
    pub(crate) second: &'a [u8],
    pub(crate) data: &'a [&'a [u8]],
}

impl Turn {
    /// Appends a record.
    pub(crate) fn append(&self, what: What, record: &Record<'_>) {
        let tape = TAPE.load(Ordering::Acquire);
        if tape < 0 {
            return;
        }
        let mut bytes = vec![0; 4];
        bytes.push(what as u8);
        bytes.extend(record.inode.to_le_bytes());
        bytes.extend(record.number.to_le_bytes());
        for path in [record.path, record.second] {
            bytes.extend((path.len() as u16).to_le_bytes());
            bytes.extend(path);
        }
        record.data.iter().for_each(|piece| bytes.extend(*piece));
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let (start, length) = (bytes.as_ptr() as i64, bytes.len() as i64);
        let done = call(libc::SYS_write, &[tape.into(), start, length, 0, 0, 0]);
        assert_eq!(done, length, "the tape can't be written");
    }
}
