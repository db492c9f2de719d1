//! The head: the last record that is durable, sealed, in a file of two slots that are written by
//! turns.

use coffer_durable::Slot;
use coffer_seal::{Context, open, seal};

use crate::format::record::{AuditKey, Hash, Recorded};
use crate::format::segment::Cut;
use crate::limits::HASH_BYTES;

/// The head's file.
pub(crate) const HEAD_NAME: &str = "head";

/// The length of each of the two slots: a block of any disk, so that writing one can't tear the
/// other.
pub(crate) const HEAD_SLOT_BYTES: usize = 4096;

const MAGIC: &[u8; 8] = b"cofferAH";

/// The format of the head of a log from which nothing was removed.
const WHOLE_FORMAT: u32 = 1;

/// The newest format that is known: it says where the log begins as well.
const PRUNED_FORMAT: u32 = 2;

/// What is sealed, in bytes, beside its plaintext.
const SEAL_BYTES: usize = 56 + 16;

/// The plaintext, in bytes: sequence, hash and segment.
const WHOLE_BYTES: usize = 8 + HASH_BYTES + 4;

/// And then where the log begins: segment, and sequence and hash before it.
const PRUNED_BYTES: usize = WHOLE_BYTES + 4 + 8 + HASH_BYTES;

/// The most that the file holds, in bytes.
pub(crate) const HEAD_FILE_BYTES: usize = HEAD_SLOT_BYTES + 8 + 4 + PRUNED_BYTES + SEAL_BYTES;

/// The last durable record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) last: Recorded,
    /// The segment that it is in; that would hold the next one, if there is none.
    pub(crate) segment: u32,
    /// Where the log begins.
    pub(crate) cut: Cut,
}

/// What the head's file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadState {
    /// There is no such file.
    Missing,
    /// Neither slot opens.
    Unreadable,
    /// A later version wrote it.
    Newer(u32),
    /// The newer one of both slots.
    Found {
        head: Head,
        /// The slot that it is in: the other one is written next.
        slot: Slot,
        /// The other slot doesn't open: torn by a crash, or altered.
        is_torn: bool,
    },
}

impl Head {
    /// As it lies in a slot.
    pub(crate) fn to_bytes(self, key: &AuditKey) -> Vec<u8> {
        let mut plaintext = [
            &self.last.sequence.to_be_bytes()[..],
            &self.last.hash.0,
            &self.segment.to_be_bytes(),
        ]
        .concat();
        let format = match self.cut {
            Cut::NONE => WHOLE_FORMAT,
            cut => {
                plaintext.extend(cut.segment.to_be_bytes());
                plaintext.extend(cut.before.sequence.to_be_bytes());
                plaintext.extend(cut.before.hash.0);
                PRUNED_FORMAT
            }
        };
        let context = Context::audit_head(key.keystore_id());
        let sealed = seal(key.secret(), &context, &plaintext);
        [MAGIC, &format.to_be_bytes()[..], &sealed].concat()
    }

    /// The whole file, with the head in both slots.
    pub(crate) fn to_file(self, key: &AuditKey) -> Vec<u8> {
        let mut file = self.to_bytes(key);
        file.resize(HEAD_SLOT_BYTES, 0);
        file.extend(self.to_bytes(key));
        file
    }
}

/// Reads the file.
pub(crate) fn parse_head(key: &AuditKey, file: Option<&[u8]>) -> HeadState {
    let Some(file) = file else {
        return HeadState::Missing;
    };
    let slots = Slot::BOTH.map(|slot| {
        let bytes = file
            .get(slot as usize * HEAD_SLOT_BYTES..)
            .unwrap_or_default();
        parse_slot(key, bytes)
    });
    match slots {
        [Err(format), _] | [_, Err(format)] => HeadState::Newer(format),
        [Ok(None), Ok(None)] => HeadState::Unreadable,
        [Ok(first), Ok(second)] => {
            let is_torn = first.is_none() || second.is_none();
            let sequence = |head: Option<Head>| head.map(|head| head.last.sequence);
            let (slot, head) = if sequence(second) > sequence(first) {
                (Slot::B, second)
            } else {
                (Slot::A, first)
            };
            head.map_or(HeadState::Unreadable, |head| HeadState::Found {
                head,
                slot,
                is_torn,
            })
        }
    }
}

/// The error is a format that is not known.
fn parse_slot(key: &AuditKey, bytes: &[u8]) -> Result<Option<Head>, u32> {
    let Some((format, rest)) = bytes
        .strip_prefix(MAGIC)
        .and_then(|rest| rest.split_first_chunk::<4>())
    else {
        return Ok(None);
    };
    let format = u32::from_be_bytes(*format);
    let plaintext_bytes = match format {
        WHOLE_FORMAT => WHOLE_BYTES,
        PRUNED_FORMAT => PRUNED_BYTES,
        newer if newer > PRUNED_FORMAT && rest.len() >= WHOLE_BYTES + SEAL_BYTES => {
            return Err(format);
        }
        _ => return Ok(None),
    };
    let sealed = rest.get(..plaintext_bytes + SEAL_BYTES);
    Ok(sealed.and_then(|sealed| open_head(key, sealed)))
}

fn open_head(key: &AuditKey, sealed: &[u8]) -> Option<Head> {
    let context = Context::audit_head(key.keystore_id());
    let plaintext = open(key.secret(), &context, sealed).ok()?;
    let (sequence, rest) = plaintext.split_first_chunk::<8>()?;
    let (hash, rest) = rest.split_first_chunk::<HASH_BYTES>()?;
    let (segment, rest) = rest.split_first_chunk::<4>()?;
    let cut = match rest {
        [] => Cut::NONE,
        rest => {
            let (first, rest) = rest.split_first_chunk::<4>()?;
            let (sequence, hash) = rest.split_first_chunk::<8>()?;
            Cut {
                segment: u32::from_be_bytes(*first),
                before: Recorded {
                    sequence: u64::from_be_bytes(*sequence),
                    hash: Hash(hash.try_into().ok()?),
                },
            }
        }
    };
    Some(Head {
        last: Recorded {
            sequence: u64::from_be_bytes(*sequence),
            hash: Hash(*hash),
        },
        segment: u32::from_be_bytes(*segment),
        cut,
    })
}
