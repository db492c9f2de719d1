//! Segments: pages of a catalog, with a sealed table that says which and what they are.
//!
//! `"cofferSG" format(4) sealed-length(4) sealed-table pages`, all numbers big-endian.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use coffer_seal::{BucketId, Context, SecretKey, open, seal};
use serde::{Deserialize, Serialize};

use crate::digest::{sha256, sha256_hex};
use crate::error::{ReplicaError, Result};
use crate::head::SegmentRef;
use crate::limits::{PAGE_BYTES, SEGMENT_PAGES_MAX, TABLE_MAX_BYTES};
use crate::names::{self, CopyId, Number};

const MAGIC: &[u8; 8] = b"cofferSG";
const FORMAT: u32 = 1;
const CLEAR_BYTES: usize = 16;

/// Number and hash of a page.
const ENTRY_BYTES: usize = 4 + 32;

/// What the table says beside the pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The segment before; none in the first of a base.
    pub(crate) previous: Option<SegmentRef>,
    /// How many commits the catalog had.
    pub(crate) commits: u64,
    /// How many pages the catalog had.
    pub(crate) page_count: u32,
    /// Whether the catalog is whole with this segment.
    pub(crate) is_last: bool,
}

/// A segment that was read and checked.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) description: Description,
    pub(crate) pages: Vec<(u32, Vec<u8>)>,
}

/// What the table is bound to.
fn context(copy: CopyId, bucket: BucketId, number: Number) -> Context {
    let mut bytes = b"coffer segment v1\0".to_vec();
    bytes.extend(copy.0);
    bytes.extend(bucket.0);
    bytes.extend(number.epoch.to_be_bytes());
    bytes.extend(number.number.to_be_bytes());
    Context::raw(bytes)
}

/// The bytes of a segment, and what refers to it.
pub(crate) fn write(
    key: &SecretKey,
    (copy, bucket, number): (CopyId, BucketId, Number),
    description: &Description,
    pages: &[(u32, Vec<u8>)],
) -> Result<(Vec<u8>, SegmentRef)> {
    let is_whole = |(_, page): &(u32, Vec<u8>)| page.len() == PAGE_BYTES;
    if pages.len() > SEGMENT_PAGES_MAX || !pages.iter().all(is_whole) {
        return Err(ReplicaError::TooLarge { what: "a segment" });
    }
    let described = serde_json::to_vec(description).unwrap_or_default();
    let mut table = (described.len() as u32).to_be_bytes().to_vec();
    table.extend(described);
    for (number, page) in pages {
        table.extend(number.to_be_bytes());
        table.extend(sha256(page));
    }
    let sealed = seal(key, &context(copy, bucket, number), &table);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_be_bytes());
    bytes.extend((sealed.len() as u32).to_be_bytes());
    bytes.extend(sealed);
    let reference = SegmentRef {
        at: number,
        sha256: sha256_hex(&bytes),
    };
    pages.iter().for_each(|(_, page)| bytes.extend(page));
    Ok((bytes, reference))
}

/// Reads a segment that `reference` names, and checks all of it.
pub(crate) fn read(
    key: &SecretKey,
    (copy, bucket): (CopyId, BucketId),
    reference: &SegmentRef,
    bytes: &[u8],
) -> Result<Segment> {
    let object = names::segment(bucket, reference.at).to_string();
    let altered = |problem| ReplicaError::Altered {
        object: object.clone(),
        problem,
    };
    let clear = bytes
        .get(..CLEAR_BYTES)
        .ok_or_else(|| altered("it is cut off"))?;
    let word =
        |at: usize| u32::from_be_bytes([clear[at], clear[at + 1], clear[at + 2], clear[at + 3]]);
    if clear[..8] != MAGIC[..] {
        return Err(altered("it is no segment"));
    }
    let end = CLEAR_BYTES + (word(12) as usize).min(TABLE_MAX_BYTES);
    let before_pages = bytes.get(..end).ok_or_else(|| altered("it is cut off"))?;
    if sha256_hex(before_pages) != reference.sha256 {
        return Err(altered("its hash is another one"));
    }
    // From here on it is what was written.
    if word(8) != FORMAT {
        return Err(ReplicaError::NewerFormat {
            found: word(8),
            known: FORMAT,
        });
    }
    let table = open(
        key,
        &context(copy, bucket, reference.at),
        &before_pages[CLEAR_BYTES..],
    );
    let table = table.map_err(|_| altered("its table does not open"))?;
    let (length, rest) = table
        .split_first_chunk::<4>()
        .ok_or_else(|| altered("no table"))?;
    let length = u32::from_be_bytes(*length) as usize;
    let (described, entries) = rest
        .split_at_checked(length)
        .ok_or_else(|| altered("no table"))?;
    let description: Description =
        serde_json::from_slice(described).map_err(|_| altered("its table is no table"))?;
    let (entries, spare) = entries.as_chunks::<ENTRY_BYTES>();
    let (bodies, left) = bytes[end..].as_chunks::<PAGE_BYTES>();
    if !spare.is_empty() || !left.is_empty() || bodies.len() != entries.len() {
        return Err(altered("it has not the pages that its table names"));
    }
    let mut pages = Vec::with_capacity(entries.len());
    for (entry, body) in entries.iter().zip(bodies) {
        let number = u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]);
        if number == 0 || verify_slices_are_equal(&sha256(body), &entry[4..]).is_err() {
            return Err(altered("a page is another one"));
        }
        pages.push((number, body.to_vec()));
    }
    Ok(Segment { description, pages })
}
