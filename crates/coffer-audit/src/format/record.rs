//! Records: how an event becomes bytes in a segment, and back.
//!
//! ```text
//! frame  = length(4) || sequence(8) || sealed(length) || hash(32)
//! sealed = the sealed message of: previous hash(32) || event as JSON
//! hash   = SHA-256("coffer audit record v1" 0x00 || previous hash || sequence(8) || sealed)
//! ```
//!
//! The hash before lies under the seal as well: without the audit key no chain can be made
//! that leaves something out.

use std::fmt;

use aws_lc_rs::digest::{self, SHA256};
use coffer_seal::{Context, KeystoreId, SecretKey, open, seal};
use serde::Serialize;

use crate::event::{Event, Timed};
use crate::limits::{FRAME_HEADER_BYTES, HASH_BYTES, SEALED_MAX_BYTES, SEALED_MIN_BYTES};
use coffer_durable::rfc3339;

const HASH_PREFIX: &[u8] = b"coffer audit record v1\0";

/// The key that seals records, and the keystore that it belongs to.
pub struct AuditKey {
    key: SecretKey,
    keystore_id: KeystoreId,
}

impl AuditKey {
    /// The key of a keystore's audit log.
    pub fn new(key: SecretKey, keystore_id: KeystoreId) -> Self {
        Self { key, keystore_id }
    }

    pub(crate) fn keystore_id(&self) -> KeystoreId {
        self.keystore_id
    }

    pub(crate) fn secret(&self) -> &SecretKey {
        &self.key
    }
}

impl Clone for AuditKey {
    fn clone(&self) -> Self {
        Self::new(self.key.clone(), self.keystore_id)
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditKey(redacted)")
    }
}

/// A record's hash, which covers all records before it; as text, 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; HASH_BYTES]);

impl Hash {
    /// What stands for the hash of the record before the first.
    pub const NONE: Self = Self([0; HASH_BYTES]);

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let mut hash = [0; HASH_BYTES];
        hex::decode_to_slice(digits, &mut hash).ok()?;
        Some(Self(hash))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

/// Where a record is in the log: what a receipt names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Its number, from 1; 0 stands for an empty log.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Recorded {
    pub(crate) const NONE: Self = Self {
        sequence: 0,
        hash: Hash::NONE,
    };
}

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number, from 1.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
    /// The segment that it is in.
    pub segment: u32,
    /// When it happened, in milliseconds since 1970 (UTC). Numbers tell the order, not times.
    pub time_ms: i64,
    /// What happened.
    pub event: Event,
}

#[derive(Serialize)]
struct Exported<'a> {
    sequence: u64,
    time: String,
    #[serde(flatten)]
    event: &'a Event,
    hash: String,
}

impl Record {
    /// When it happened, as RFC 3339 writes it, in UTC.
    pub fn time(&self) -> String {
        rfc3339(self.time_ms)
    }

    /// The record as a JSON object on one line: `sequence`, `time` (RFC 3339), `act`, `actor`,
    /// `actor_name` and `access_key_id` if there are any, `outcome`, `details` if there are any,
    /// `hash`.
    pub fn to_json(&self) -> String {
        let exported = Exported {
            sequence: self.sequence,
            time: self.time(),
            event: &self.event,
            hash: self.hash.to_string(),
        };
        serde_json::to_string(&exported).expect("strings and integers are always JSON")
    }
}

/// What a frame holds, unopened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) sequence: u64,
    pub(crate) sealed: Vec<u8>,
    /// As it stands there.
    pub(crate) hash: Hash,
}

/// What a sealed record says.
pub(crate) struct Opening {
    pub(crate) previous: Hash,
    pub(crate) time_ms: i64,
    pub(crate) event: Event,
}

/// Adds the record that follows `last`; gives back where it is.
pub(crate) fn write_frame(
    key: &AuditKey,
    last: &Recorded,
    event: &[u8],
    out: &mut Vec<u8>,
) -> Recorded {
    let sequence = last.sequence + 1;
    let context = Context::audit(key.keystore_id, sequence);
    let sealed = seal(&key.key, &context, &[&last.hash.0, event].concat());
    let hash = chained(&last.hash, sequence, &sealed);
    let length = u32::try_from(sealed.len()).expect("an event is a few KiB at most");
    out.extend(length.to_be_bytes());
    out.extend(sequence.to_be_bytes());
    out.extend(&sealed);
    out.extend(hash.0);
    Recorded { sequence, hash }
}

/// The frame at the beginning of `bytes`, and its length in bytes. `None`: it is cut off, or its
/// length is none.
pub(crate) fn parse_frame(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (header, rest) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>()?;
    let (length, sequence) = header.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length) as usize;
    if !(SEALED_MIN_BYTES..=SEALED_MAX_BYTES).contains(&length) {
        return None;
    }
    let (sealed, rest) = rest.split_at_checked(length)?;
    let (hash, _) = rest.split_first_chunk::<HASH_BYTES>()?;
    let frame = Frame {
        sequence: u64::from_be_bytes(sequence.try_into().ok()?),
        sealed: sealed.to_vec(),
        hash: Hash(*hash),
    };
    Some((frame, FRAME_HEADER_BYTES + length + HASH_BYTES))
}

/// Whether bytes that are no frame are the beginning of one, by their form.
pub(crate) fn is_cut(bytes: &[u8]) -> bool {
    let length = bytes
        .first_chunk::<4>()
        .map(|length| u32::from_be_bytes(*length) as usize);
    length.is_none_or(|length| (SEALED_MIN_BYTES..=SEALED_MAX_BYTES).contains(&length))
}

impl Frame {
    /// Whether its hash is what it must be after `previous`.
    pub(crate) fn follows(&self, previous: &Hash) -> bool {
        chained(previous, self.sequence, &self.sealed) == self.hash
    }

    /// What it says, if it was sealed as record `sequence`.
    pub(crate) fn open_as(&self, key: &AuditKey, sequence: u64) -> Option<Opening> {
        let context = Context::audit(key.keystore_id, sequence);
        let plaintext = open(&key.key, &context, &self.sealed).ok()?;
        let (previous, event) = plaintext.split_first_chunk::<HASH_BYTES>()?;
        let Timed { time_ms, event } = serde_json::from_slice(event).ok()?;
        Some(Opening {
            previous: Hash(*previous),
            time_ms,
            event,
        })
    }

    /// Where it is, by what stands there.
    pub(crate) fn recorded(&self) -> Recorded {
        Recorded {
            sequence: self.sequence,
            hash: self.hash,
        }
    }
}

fn chained(previous: &Hash, sequence: u64, sealed: &[u8]) -> Hash {
    let mut context = digest::Context::new(&SHA256);
    context.update(HASH_PREFIX);
    context.update(&previous.0);
    context.update(&sequence.to_be_bytes());
    context.update(sealed);
    let digest = context.finish();
    Hash(digest.as_ref().try_into().expect("SHA-256 gives 32 bytes"))
}
