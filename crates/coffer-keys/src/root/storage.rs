//! What a file lies on: for receipts, which say what overwriting it proves.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor, statfs};

/// The file system and the disk below a file, as far as the system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Storage {
    file_system: &'static str,
    copies_on_write: bool,
    /// `None` when the system doesn't know, as of network and virtual disks.
    is_rotating: Option<bool>,
}

impl Storage {
    /// Looks at the folder of a file.
    pub(crate) fn below(path: &Path) -> Self {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let kind = statfs(folder).map_or(0, |found| found.f_type as u32);
        let (file_system, copies_on_write) = name(kind);
        Self {
            file_system,
            copies_on_write,
            is_rotating: is_rotating(folder),
        }
    }

    /// Such as "ext4 on flash".
    pub(crate) fn describe(&self) -> String {
        let disk = match self.is_rotating {
            Some(true) => "a disk that reports to rotate",
            Some(false) => "a disk that reports not to rotate",
            None => "storage of unknown kind",
        };
        format!("{} on {disk}", self.file_system)
    }

    /// What may be left of a file that was overwritten in place.
    pub(crate) fn remains(&self) -> &'static str {
        match (self.copies_on_write, self.is_rotating) {
            (true, _) => {
                "this file system copies on write: the overwritten bytes may stay on the medium, \
                 and in its snapshots"
            }
            (false, Some(true)) => {
                "if the disk rotates, as it reports (virtual disks do so without), what was \
                 overwritten can't be read again, unless the disk had moved it before"
            }
            (false, _) => {
                "flash and virtual disks write elsewhere what was to be overwritten: the old bytes \
                 may stay on the raw medium until it is sanitized"
            }
        }
    }
}

/// By `f_type` of statfs(2).
fn name(kind: u32) -> (&'static str, bool) {
    match kind {
        0xEF53 => ("ext4", false),
        0x5846_5342 => ("XFS", false),
        0x9123_683E => ("Btrfs", true),
        0x2FC1_2FC1 => ("ZFS", true),
        0xCA45_1A4E => ("bcachefs", true),
        0xF2F5_2010 => ("F2FS", true),
        0x794C_7630 => ("an overlay", true),
        0x0102_1994 => ("tmpfs", false),
        0x6969 => ("NFS", false),
        _ => ("a file system of unknown kind", false),
    }
}

/// What the kernel says of the disk, or of the disk that the partition is on.
fn is_rotating(folder: &Path) -> Option<bool> {
    let device = fs::metadata(folder).ok()?.dev();
    let block = PathBuf::from(format!(
        "/sys/dev/block/{}:{}",
        major(device),
        minor(device)
    ));
    ["queue/rotational", "../queue/rotational"]
        .iter()
        .find_map(|name| fs::read_to_string(block.join(name)).ok())
        .map(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_remain_follows_the_medium() {
        let storage = |copies_on_write, is_rotating| Storage {
            file_system: "a",
            copies_on_write,
            is_rotating,
        };
        assert!(storage(true, Some(true)).remains().contains("snapshots"));
        assert!(storage(false, Some(true)).remains().contains("rotates"));
        for unknown in [None, Some(false)] {
            assert!(storage(false, unknown).remains().contains("may stay"));
        }
        let here = Storage::below(Path::new("Cargo.toml"));
        assert!(here.describe().contains(" on "), "{}", here.describe());
    }
}
