//! The head: the last record that is durable, sealed, in a file of two places that are written by
//! turns, so that a torn write leaves the other one.

use coffer_seal::{Context, open, seal};

use crate::limits::HASH_BYTES;
use crate::record::{AuditKey, Hash, Recorded};
use crate::segment::FORMAT;

/// The head's file.
pub(crate) const HEAD_NAME: &str = "head";

/// The room of each of the two places, in bytes: a block of any disk, so that writing one can't
/// tear the other.
const PLACE_BYTES: usize = 4096;

const MAGIC: &[u8; 8] = b"cofferAH";

/// What a place holds, in bytes: magic, format, sealed sequence, hash and segment.
const HEAD_BYTES: usize = 8 + 4 + 56 + 8 + HASH_BYTES + 4 + 16;

/// The length of the file, in bytes.
pub(crate) const HEAD_FILE_BYTES: usize = PLACE_BYTES + HEAD_BYTES;

/// The last durable record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) last: Recorded,
    /// The segment that it is in; that would hold the next one, if there is none.
    pub(crate) segment: u32,
}

/// What the head's file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// There is no such file.
    Missing,
    /// Neither place opens.
    Unreadable,
    /// A later version wrote it.
    Newer(u32),
    /// The newer one of both places.
    Found {
        head: Head,
        /// The place that it is in: the other one is written next.
        place: usize,
        /// The other place doesn't open: torn by a crash, or altered.
        is_torn: bool,
    },
}

impl Head {
    /// As it lies in a place.
    pub(crate) fn to_bytes(self, key: &AuditKey) -> Vec<u8> {
        let plaintext = [
            &self.last.sequence.to_be_bytes()[..],
            &self.last.hash.0,
            &self.segment.to_be_bytes(),
        ]
        .concat();
        let context = Context::audit_head(key.keystore_id());
        let sealed = seal(key.secret(), &context, &plaintext);
        [MAGIC, &FORMAT.to_be_bytes()[..], &sealed].concat()
    }

    /// The whole file, with the head in both places.
    pub(crate) fn to_file(self, key: &AuditKey) -> Vec<u8> {
        let mut file = self.to_bytes(key);
        file.resize(PLACE_BYTES, 0);
        file.extend(self.to_bytes(key));
        file
    }
}

/// Where a place begins, in bytes.
pub(crate) fn place_offset(place: usize) -> u64 {
    (place * PLACE_BYTES) as u64
}

/// Reads the file.
pub(crate) fn parse_head(key: &AuditKey, file: Option<&[u8]>) -> HeadState {
    let Some(file) = file else {
        return HeadState::Missing;
    };
    let places = [0, 1].map(|place| {
        let bytes = file.get(place * PLACE_BYTES..).unwrap_or_default();
        parse_place(key, bytes)
    });
    match places {
        [Err(format), _] | [_, Err(format)] => HeadState::Newer(format),
        [Ok(None), Ok(None)] => HeadState::Unreadable,
        [Ok(first), Ok(second)] => {
            let is_torn = first.is_none() || second.is_none();
            let sequence = |head: Option<Head>| head.map(|head| head.last.sequence);
            let (place, head) = if sequence(second) > sequence(first) {
                (1, second)
            } else {
                (0, first)
            };
            head.map_or(HeadState::Unreadable, |head| HeadState::Found {
                head,
                place,
                is_torn,
            })
        }
    }
}

/// The error is a format that is not known.
fn parse_place(key: &AuditKey, bytes: &[u8]) -> Result<Option<Head>, u32> {
    let Some((format, rest)) = bytes
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.split_first_chunk::<4>())
    else {
        return Ok(None);
    };
    let format = u32::from_be_bytes(*format);
    if format > FORMAT && rest.len() >= HEAD_BYTES - MAGIC.len() - 4 {
        return Err(format);
    }
    Ok(rest
        .get(..HEAD_BYTES - MAGIC.len() - 4)
        .and_then(|sealed| open_head(key, sealed)))
}

fn open_head(key: &AuditKey, sealed: &[u8]) -> Option<Head> {
    let context = Context::audit_head(key.keystore_id());
    let plaintext = open(key.secret(), &context, sealed).ok()?;
    let (sequence, rest) = plaintext.split_first_chunk::<8>()?;
    let (hash, rest) = rest.split_first_chunk::<HASH_BYTES>()?;
    let segment = u32::from_be_bytes(rest.try_into().ok()?);
    Some(Head {
        last: Recorded {
            sequence: u64::from_be_bytes(*sequence),
            hash: Hash(*hash),
        },
        segment,
    })
}
