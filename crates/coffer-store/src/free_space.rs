//! Whether a disk is nearly full.
//!
//! What adds data stops a little before the disk is full, so that there is room left for what takes
//! data away: even a deletion has to write first.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::StatVfs;

use crate::limits::{RESERVE_MAX_BYTES, RESERVE_SHARE};

/// How many bytes may be added to the file system that holds `path`.
pub fn room_bytes_at(path: &Path) -> u64 {
    // What can't be told is left to the write to find out.
    rustix::fs::statvfs(path).map_or(u64::MAX, |figures| room_bytes(&figures))
}

/// How many bytes are to be freed on the file system that holds `path` before any may be added;
/// none, where some may.
pub(crate) fn short_bytes_at(path: &Path) -> Option<u64> {
    let figures = rustix::fs::statvfs(path).ok()?;
    let available_bytes = figures.f_bavail.saturating_mul(figures.f_frsize);
    let is_short = room_bytes(&figures) == 0;
    // With the reserve alone there is still no room.
    is_short.then(|| reserve_bytes(&figures).saturating_sub(available_bytes) + 1)
}

/// How many bytes may be added to the file system that holds an open file.
pub(crate) fn room_bytes_for(file: impl AsFd) -> u64 {
    rustix::fs::fstatvfs(file).map_or(u64::MAX, |figures| room_bytes(&figures))
}

fn room_bytes(figures: &StatVfs) -> u64 {
    if figures.f_blocks == 0 {
        return u64::MAX; // there are such, in user space: they have no end to tell
    }
    let available_bytes = figures.f_bavail.saturating_mul(figures.f_frsize);
    available_bytes.saturating_sub(reserve_bytes(figures))
}

/// How many stay free.
fn reserve_bytes(figures: &StatVfs) -> u64 {
    let all_bytes = figures.f_blocks.saturating_mul(figures.f_frsize);
    (all_bytes / RESERVE_SHARE).min(RESERVE_MAX_BYTES)
}
