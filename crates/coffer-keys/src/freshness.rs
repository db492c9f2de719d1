//! How new the things below the keystore are, at least: so that an older copy of one of them, put
//! back alone, is found.
//!
//! The keystore holds the server's database, the audit log and the anchor; the anchor holds each
//! catalog; and the source of the root key holds the keystore, where it lies outside of the data
//! folder ([`RootSource::outside`](crate::RootSource::outside)). What is below is made durable
//! first: so what is found newer than it is held is as it should be, and what is found older was
//! put back.

use std::fmt;

use coffer_durable::rfc3339;
use coffer_seal::KeystoreId;

use crate::limits::HELD_BYTES;

/// What the keystore holds. All zeros: nothing, as in a keystore of before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// How many commits the server's database had.
    pub system_commits: u64,
    /// The number of a record of the audit log.
    pub audit_record: u64,
    /// The hash of that record.
    pub audit_hash: [u8; 32],
    /// The number of the anchor.
    pub anchor_number: u64,
    /// When it was so, in milliseconds since 1970 (UTC).
    pub held_ms: i64,
    /// Whether the source of the root key held the keystore's generation by then, and is to hold
    /// it for good.
    pub is_outside: bool,
}

impl Held {
    pub(crate) fn to_bytes(self) -> [u8; HELD_BYTES] {
        let mut bytes = [0; HELD_BYTES];
        let fields: [&[u8]; 6] = [
            &self.system_commits.to_be_bytes(),
            &self.audit_record.to_be_bytes(),
            &self.audit_hash,
            &self.anchor_number.to_be_bytes(),
            &self.held_ms.to_be_bytes(),
            &[u8::from(self.is_outside)],
        ];
        let mut rest = &mut bytes[..];
        for field in fields {
            let (place, behind) = rest.split_at_mut(field.len());
            place.copy_from_slice(field);
            rest = behind;
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; HELD_BYTES]) -> Option<Self> {
        let (system_commits, rest) = bytes.split_first_chunk()?;
        let (audit_record, rest) = rest.split_first_chunk()?;
        let (audit_hash, rest) = rest.split_first_chunk()?;
        let (anchor_number, rest) = rest.split_first_chunk()?;
        let (held_ms, rest) = rest.split_first_chunk()?;
        let is_outside = match rest {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        Some(Self {
            system_commits: u64::from_be_bytes(*system_commits),
            audit_record: u64::from_be_bytes(*audit_record),
            audit_hash: *audit_hash,
            anchor_number: u64::from_be_bytes(*anchor_number),
            held_ms: i64::from_be_bytes(*held_ms),
            is_outside,
        })
    }
}

/// A generation of the keystore, as the source of its root key holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldGeneration {
    /// The generation.
    pub generation: u64,
    /// When it was so, in milliseconds since 1970 (UTC).
    pub held_ms: i64,
}

/// What the source of a root key holds of the keystore's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// It lies in the data folder, or can hold nothing: it is put back with the folder.
    Nowhere,
    /// It could, and holds none: a new one, one from before, or a keyring after a reboot.
    Absent,
    /// The keystore was of this generation, at least.
    Held(HeldGeneration),
}

/// How a source holds the keystore's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// Not at all.
    Nowhere,
    /// On a medium: for good.
    OnMedium,
    /// In memory: until a reboot.
    InMemory,
    /// In a token: for good, and written rarely.
    InToken,
}

/// The bytes of a generation that a keyring or a token holds: keystore id(16) generation(8)
/// time(8).
pub(crate) const HELD_GENERATION_BYTES: usize = 16 + 8 + 8;

impl HeldGeneration {
    pub(crate) fn to_bytes(self, keystore_id: KeystoreId) -> [u8; HELD_GENERATION_BYTES] {
        let mut bytes = [0; HELD_GENERATION_BYTES];
        bytes[..16].copy_from_slice(&keystore_id.0);
        bytes[16..24].copy_from_slice(&self.generation.to_be_bytes());
        bytes[24..].copy_from_slice(&self.held_ms.to_be_bytes());
        bytes
    }

    /// `None` when that is none, or one of another keystore.
    pub(crate) fn from_bytes(bytes: &[u8], keystore_id: KeystoreId) -> Option<Self> {
        let rest = bytes.strip_prefix(&keystore_id.0)?;
        let (generation, rest) = rest.split_first_chunk()?;
        Some(Self {
            generation: u64::from_be_bytes(*generation),
            held_ms: i64::from_be_bytes(rest.try_into().ok()?),
        })
    }
}

/// An older keystore than its source holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeystoreRollback {
    /// The generation that was found.
    pub found: u64,
    /// What the source holds.
    pub held: HeldGeneration,
    /// The source.
    pub place: String,
}

impl fmt::Display for KeystoreRollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, held, place } = self;
        write!(
            f,
            "ROLLBACK: the keystore is an older copy, and perhaps the whole data folder: it is of \
             generation {found}, and {place} holds that it was of generation {} at {}. Put back \
             the newest copy; or `coffer serve --accept-rollback …` goes on from the older one \
             on purpose. Nothing was changed",
            held.generation,
            rfc3339(held.held_ms)
        )
    }
}
