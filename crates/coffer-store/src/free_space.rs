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

/// How many bytes may be added to the file system that holds an open file.
pub(crate) fn room_bytes_for(file: impl AsFd) -> u64 {
    rustix::fs::fstatvfs(file).map_or(u64::MAX, |figures| room_bytes(&figures))
}

fn room_bytes(figures: &StatVfs) -> u64 {
    if figures.f_blocks == 0 {
        return u64::MAX; // there are such, in user space: they have no end to tell
    }
    let bytes = |blocks: u64| blocks.saturating_mul(figures.f_frsize);
    let reserve_bytes = (bytes(figures.f_blocks) / RESERVE_SHARE).min(RESERVE_MAX_BYTES);
    bytes(figures.f_bavail).saturating_sub(reserve_bytes)
}
