//! A loop device: an image file as a block device.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::host::programs::{clean_up, command, run};
use crate::host::undo::Undo;

/// Where the kernel lists block devices.
const BLOCK_DEVICES: &str = "/sys/block";

/// One that is attached; detached when it goes.
pub(super) struct LoopDevice {
    /// The device.
    pub(super) path: PathBuf,
    _undo: Undo,
}

impl LoopDevice {
    /// Attaches an image, with direct I/O where the file system below has it: then blocks lie in
    /// memory once, and what is written goes to the disk.
    pub(super) fn attach(image: &Path) -> Result<Self> {
        // Its number is not known before, but its image is.
        let gone = image.to_owned();
        let undo = Undo::by(move || {
            for device in devices_of(&gone) {
                clean_up(command("losetup").arg("-d").arg(device));
            }
        });
        let path = run(command("losetup").args(["--find", "--show"]).arg(image))?;
        let device = Self {
            path: PathBuf::from(path.trim()),
            _undo: undo,
        };
        // A refusal is no failure: the settings tell which it is.
        let _ = run(command("losetup").arg("--direct-io=on").arg(&device.path));
        Ok(device)
    }

    /// How it reaches its image, as the kernel tells.
    pub(super) fn setting(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        let direct = Path::new(BLOCK_DEVICES).join(name).join("loop/dio");
        match fs::read_to_string(direct).unwrap_or_default().trim() {
            "1" => "a loop device with direct I/O (losetup --direct-io=on)".into(),
            _ => "a loop device without direct I/O: the file system below refuses it".into(),
        }
    }
}

/// The devices to which an image is attached.
fn devices_of(image: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(BLOCK_DEVICES).into_iter().flatten().flatten();
    let attached = all.filter(|device| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file"));
        backing.is_ok_and(|backing| Path::new(backing.trim_end()) == image)
    });
    attached
        .map(|device| Path::new("/dev").join(device.file_name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_attached_that_was_never_made() {
        assert!(devices_of(Path::new("/no/such/image")).is_empty());
    }
}
