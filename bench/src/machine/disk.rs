//! The disk and the page cache, in the same state before every run.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::error::{Doing, Result};

/// Writes back whatever is dirty, so that no run pays for what another left behind.
pub fn settle() {
    rustix::fs::sync();
}

/// Writes so many bytes to a file and removes it, so that the kernel has pages at hand.
///
/// Under a hypervisor that takes free memory back (a balloon with free page reporting), the first
/// touch of a page that was free for some seconds costs several times what writing to it does:
/// 0.4 CPU seconds a gigabyte have been seen to become 1.0, charged to the server whose upload
/// happens to need the page. The kernel gives out first what was freed last. Elsewhere this
/// changes nothing.
pub fn warm_page_cache(path: &Path, bytes: u64) -> Result<()> {
    static PIECE: [u8; 64 * 1024] = [0x77; 64 * 1024];
    let writing = || format!("writing {}", path.display());
    let mut file = File::create(path).doing(writing)?;
    for _ in 0..bytes.div_ceil(PIECE.len() as u64) {
        file.write_all(&PIECE).doing(writing)?;
    }
    fs::remove_file(path).doing(|| format!("removing {}", path.display()))
}
