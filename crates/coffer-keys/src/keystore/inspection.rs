//! What can be seen of a keystore without its root key.

use std::fs::OpenOptions;
use std::ops::Range;
use std::path::Path;

use crate::error::KeysError;
use crate::keystore::slot::{HEADER_BYTES, Slot};
use crate::keystore::state::open_file;
use crate::limits::FRAME_BYTES;
use crate::medium::Medium;

/// What one of the two copies looks like from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyView {
    /// Magic, format and checksum are right.
    Whole {
        /// The keystore's generation in this copy.
        generation: u64,
        /// Where in the file its sealed body is.
        sealed: Range<u64>,
        /// Whether something else than zeros follows it in its slot.
        has_remains: bool,
    },
    /// A format that is not known here.
    Newer {
        /// The format.
        format: u32,
    },
    /// Neither.
    Damaged,
}

/// Looks at both copies of a keystore, without opening them.
///
/// # Errors
///
/// When the file can't be read.
pub fn inspect_keystore(path: &Path) -> Result<[CopyView; 2], KeysError> {
    let file = open_file(path, OpenOptions::new().read(true))?;
    let view = |slot: u64| -> Result<CopyView, KeysError> {
        let slot_bytes = Medium::slot_bytes(&file);
        let start = slot * slot_bytes as u64;
        let bytes = Medium::read(&file, start, slot_bytes).map_err(KeysError::io("read", path))?;
        Ok(match Slot::parse(&bytes) {
            Slot::Intact(copy) => {
                let copy_bytes = copy.as_bytes().len();
                let sealed_start = start + HEADER_BYTES as u64;
                CopyView::Whole {
                    generation: copy.generation(),
                    sealed: sealed_start..sealed_start + (copy_bytes - FRAME_BYTES) as u64,
                    has_remains: bytes[copy_bytes..].iter().any(|byte| *byte != 0),
                }
            }
            Slot::Newer { found, .. } => CopyView::Newer { format: found },
            Slot::Damaged => CopyView::Damaged,
        })
    };
    Ok([view(0)?, view(1)?])
}
