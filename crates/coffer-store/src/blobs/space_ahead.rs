//! Space on the disk for the bytes of a blob that come next, asked for a step ahead.
//!
//! On ext4 a write to where the file has its blocks already takes three quarters of the processor
//! time of one that has each of its blocks noted as to come. Other file systems are left alone: of
//! them it is not known, and some would be slower.

use std::fs::File;

use rustix::fs::{FallocateFlags, fallocate, fstatfs};

use crate::limits::SPACE_AHEAD_BYTES;

/// `f_type` of ext4, and of those before it, which refuse to be asked.
const EXT4: u64 = 0xEF53;

/// Takes space for a step, where one begins. The first one is left out, for most blobs end in it.
/// Where there is none, the write will tell.
pub(crate) fn take(file: &File, offset_bytes: u64) {
    let begins = offset_bytes > 0 && offset_bytes.is_multiple_of(SPACE_AHEAD_BYTES);
    if begins && is_ext4(file) {
        let _ = fallocate(
            file,
            FallocateFlags::KEEP_SIZE,
            offset_bytes,
            SPACE_AHEAD_BYTES,
        );
    }
}

/// Gives back what is left of the last step in a file that ends here. What can't be is lost until
/// the file is removed: less than a step.
pub(crate) fn give_back(file: &File, file_bytes: u64) {
    let has_rest = file_bytes > SPACE_AHEAD_BYTES && !file_bytes.is_multiple_of(SPACE_AHEAD_BYTES);
    if has_rest && is_ext4(file) {
        let _ = file.set_len(file_bytes);
    }
}

fn is_ext4(file: &File) -> bool {
    fstatfs(file).is_ok_and(|figures| figures.f_type as u64 == EXT4)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    #[test]
    fn a_file_that_ends_keeps_no_space_that_it_does_not_fill() {
        let step = SPACE_AHEAD_BYTES;
        for file_bytes in [step - 1, step, step + 1, 3 * step, 3 * step + 70_000] {
            let file = tempfile::tempfile().unwrap();
            let piece = vec![7; 64 << 10];
            let mut offset_bytes = 0;
            while offset_bytes < file_bytes {
                take(&file, offset_bytes);
                assert_eq!(
                    file.metadata().unwrap().len(),
                    offset_bytes,
                    "its length is kept"
                );
                let count = piece.len().min((file_bytes - offset_bytes) as usize);
                file.write_all_at(&piece[..count], offset_bytes).unwrap();
                offset_bytes += count as u64;
            }
            give_back(&file, file_bytes);
            file.sync_all().unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(metadata.len(), file_bytes);
            // Whole blocks, and some for what the file system says of them.
            let most_bytes = file_bytes.next_multiple_of(64 << 10) + (64 << 10);
            assert!(metadata.blocks() * 512 <= most_bytes, "{file_bytes}");
        }
    }
}
