//! One copy of the keystore, as it lies in its slot.
//!
//! ```text
//! magic(8) format(4) keystore-id(16) generation(8) sealed-length(4)   the clear header
//! sealed body                                                         Cobblestone-256
//! SHA-256 of all that (32)
//! ```
//!
//! The checksum protects against no attacker; it shows damage where there isn't the root
//! key, and tells a copy that was torn from one that belongs to another root key. The header is
//! bound into the sealing through the context.

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use coffer_seal::{Context, KeystoreId, open, seal};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::{FRAME_BYTES, SLOT_BYTES};
use crate::root::source::RootKey;

/// The newest format that is understood, and the one that is written.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"cofferKS";

pub(crate) const HEADER_BYTES: usize = 8 + 4 + 16 + 8 + 4;

const _: () = assert!(HEADER_BYTES + SHA256_OUTPUT_LEN == FRAME_BYTES);

/// What a slot's bytes turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundCopy {
    /// A whole copy.
    Intact(Copy),
    /// The magic, and a format that is not known here. `whole` when the checksum is right even
    /// so, which rules out damage.
    Newer {
        /// The format.
        found: u32,
        /// Whether the checksum is right.
        whole: bool,
    },
    /// Neither.
    Damaged,
}

/// A whole copy: header, sealed body and checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    keystore_id: KeystoreId,
    generation: u64,
    bytes: Vec<u8>,
}

impl FoundCopy {
    /// Reads what a slot begins with; what follows a copy is not looked at.
    pub(crate) fn parse(slot: &[u8]) -> Self {
        let Some(header) = slot.first_chunk::<HEADER_BYTES>() else {
            return Self::Damaged;
        };
        let (magic, rest) = split::<8>(header);
        let (format, rest) = split::<4>(rest);
        let (keystore_id, rest) = split::<16>(rest);
        let (generation, rest) = split::<8>(rest);
        let (sealed_bytes, _) = split::<4>(rest);
        let format = u32::from_be_bytes(format);
        if magic != MAGIC || format == 0 {
            return Self::Damaged;
        }
        // Within 32 bits, so the sum is within 64.
        let copy_bytes = FRAME_BYTES + u32::from_be_bytes(sealed_bytes) as usize;
        let copy = slot.get(..copy_bytes).filter(|copy| has_checksum(copy));
        match copy {
            _ if format > FORMAT => Self::Newer {
                found: format,
                whole: copy.is_some(),
            },
            Some(copy) => Self::Intact(Copy {
                keystore_id: KeystoreId(keystore_id),
                generation: u64::from_be_bytes(generation),
                bytes: copy.to_vec(),
            }),
            None => Self::Damaged,
        }
    }
}

impl Copy {
    /// Seals a body as a copy of this generation.
    pub(crate) fn seal(
        root: &RootKey,
        keystore_id: KeystoreId,
        generation: u64,
        body: &[u8],
    ) -> Self {
        let context = Context::keystore(keystore_id, generation);
        let sealed = seal(root.secret(), &context, body);
        let sealed_bytes = u32::try_from(sealed.len()).expect("a body fits a slot of 4 MiB");
        let mut bytes = Vec::with_capacity(FRAME_BYTES + sealed.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&FORMAT.to_be_bytes());
        bytes.extend_from_slice(&keystore_id.0);
        bytes.extend_from_slice(&generation.to_be_bytes());
        bytes.extend_from_slice(&sealed_bytes.to_be_bytes());
        bytes.extend_from_slice(&sealed);
        let checksum = digest(&SHA256, &bytes);
        bytes.extend_from_slice(checksum.as_ref());
        assert!(
            bytes.len() <= SLOT_BYTES,
            "limits.rs: a full keystore fits its slots"
        );
        Self {
            keystore_id,
            generation,
            bytes,
        }
    }

    /// Opens the body.
    pub(crate) fn open(&self, root: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        let context = Context::keystore(self.keystore_id, self.generation);
        let sealed = &self.bytes[HEADER_BYTES..self.bytes.len() - SHA256_OUTPUT_LEN];
        open(root.secret(), &context, sealed).map_err(|_| KeysError::WrongRoot)
    }

    pub(crate) fn keystore_id(&self) -> KeystoreId {
        self.keystore_id
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Header, sealed body and checksum.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A field, and what follows it. Callers split a header of which they know that it is long
/// enough.
fn split<const N: usize>(bytes: &[u8]) -> ([u8; N], &[u8]) {
    let (field, rest) = bytes
        .split_first_chunk::<N>()
        .expect("the fields add up to the header that was cut off");
    (*field, rest)
}

fn has_checksum(copy: &[u8]) -> bool {
    copy.split_last_chunk::<SHA256_OUTPUT_LEN>()
        .is_some_and(|(content, checksum)| digest(&SHA256, content).as_ref() == checksum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keystore::body::tests::fullest;

    #[test]
    fn the_fullest_keystore_fits_its_slot() {
        let copy = Copy::seal(
            &RootKey::generate(),
            KeystoreId([1; 16]),
            u64::MAX,
            &fullest().to_bytes(),
        );
        assert!(copy.as_bytes().len() <= SLOT_BYTES);
        let mut slot = copy.as_bytes().to_vec();
        slot.resize(SLOT_BYTES, 0);
        assert_eq!(FoundCopy::parse(&slot), FoundCopy::Intact(copy));
    }

    #[test]
    fn a_header_that_was_changed_with_its_checksum_does_not_open() {
        let root = RootKey::generate();
        let copy = Copy::seal(&root, KeystoreId([1; 16]), 5, b"body");
        for offset in 12..36 {
            let mut bytes = copy.as_bytes().to_vec();
            bytes[offset] ^= 1;
            let content_bytes = bytes.len() - SHA256_OUTPUT_LEN;
            let checksum = digest(&SHA256, &bytes[..content_bytes]);
            bytes[content_bytes..].copy_from_slice(checksum.as_ref());
            let FoundCopy::Intact(forged) = FoundCopy::parse(&bytes) else {
                panic!("the checksum is right");
            };
            assert!(
                matches!(forged.open(&root), Err(KeysError::WrongRoot)),
                "{offset}"
            );
        }
    }
}
