//! A simulated disk with a keystore on it.

use std::path::Path;

use coffer_durable::simulated::{Image, SimulatedDisk};
use coffer_durable::{Access, Disk, TwoSlots};

/// The length of each slot on such a disk: short, for thousands of them are opened.
pub(crate) const SMALL_SLOT_BYTES: usize = 16 * 1024;

pub(crate) const KEYSTORE: &str = "keystore";

pub(crate) fn path() -> &'static Path {
    Path::new(KEYSTORE)
}

/// A disk with an empty keystore.
pub(crate) fn empty() -> Image {
    Image::from([(KEYSTORE.to_owned(), vec![0; 2 * SMALL_SLOT_BYTES])])
}

pub(crate) fn slots(disk: &SimulatedDisk) -> TwoSlots {
    let file = disk.open(KEYSTORE, Access::Write).unwrap();
    TwoSlots::new(file, SMALL_SLOT_BYTES)
}
