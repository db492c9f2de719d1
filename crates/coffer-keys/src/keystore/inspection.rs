//! What can be seen of a keystore without its root key.

use std::ops::Range;
use std::path::Path;

use coffer_durable::{Access, Slot};
use coffer_seal::KeystoreId;

use crate::error::KeysError;
use crate::keystore::copy::{FoundCopy, HEADER_BYTES};
use crate::keystore::state::open_slots;
use crate::limits::{FRAME_BYTES, SLOT_BYTES};

/// What one of the two copies looks like from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyView {
    /// Magic, format and checksum are right.
    Whole {
        /// The keystore's id, as it says in the clear.
        id: KeystoreId,
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
    let mut slots = open_slots(path, Access::Read)?;
    let mut view = |slot: Slot| -> Result<CopyView, KeysError> {
        let start = slot as u64 * SLOT_BYTES as u64;
        let bytes = slots.read(slot).map_err(KeysError::io("read", path))?;
        Ok(match FoundCopy::parse(&bytes) {
            FoundCopy::Intact(copy) => {
                let copy_bytes = copy.as_bytes().len();
                let sealed_start = start + HEADER_BYTES as u64;
                CopyView::Whole {
                    id: copy.keystore_id(),
                    generation: copy.generation(),
                    sealed: sealed_start..sealed_start + (copy_bytes - FRAME_BYTES) as u64,
                    has_remains: bytes[copy_bytes..].iter().any(|byte| *byte != 0),
                }
            }
            FoundCopy::Newer { found, .. } => CopyView::Newer { format: found },
            FoundCopy::Damaged => CopyView::Damaged,
        })
    };
    Ok([view(Slot::A)?, view(Slot::B)?])
}
