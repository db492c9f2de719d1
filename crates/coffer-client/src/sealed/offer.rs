//! What a server offers instead of an object's bytes: where they lie sealed, and what opens them.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coffer_seal::limits::{
    CHUNK_BYTES, CHUNK_COUNT_MAX, HEADER_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES,
};
use coffer_seal::{OpenError, Opener};
use serde::Deserialize;

use crate::limits::TRANSFER_SEGMENTS;
use crate::sealed::answers::{check_version, context, data_port, key, ticket, wrong};
use crate::sealed::data_port::DataPort;
use crate::sealed::error::SealedError;

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The bytes of the object: all of it, or a range.
    pub range: Range<u64>,
    /// How many bytes the object has.
    pub object_bytes: u64,
    /// The host of the HTTPS server, as it was asked; an address of IPv6 without brackets.
    pub host: &'a str,
}

/// Some bytes of an object that can be fetched from a data port, once.
pub struct Offer {
    pub(super) data_port: DataPort,
    pub(super) sealed_bytes: u64,
    pub(super) segments: Vec<Segment>,
    range: Range<u64>,
}

/// A run of whole chunks of one blob.
pub(super) struct Segment {
    pub(super) opener: Opener,
    pub(super) chunks: Range<u64>,
    /// Plaintext of the first chunk that is not wanted.
    pub(super) skip: usize,
    /// Plaintext that is wanted.
    pub(super) bytes: u64,
}

#[derive(Deserialize)]
struct OfferJson<'a> {
    version: u32,
    #[serde(borrow)]
    ticket: Cow<'a, str>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    port: Option<u16>,
    #[serde(default)]
    tls: bool,
    range: [u64; 2],
    bytes: u64,
    #[serde(borrow)]
    segments: Vec<SegmentJson<'a>>,
}

#[derive(Deserialize)]
struct SegmentJson<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    context: Cow<'a, str>,
    #[serde(borrow)]
    header: Cow<'a, str>,
    first_chunk: u64,
    sealed_bytes: u64,
    is_last: bool,
    skip: u64,
    bytes: u64,
}

impl Offer {
    /// Reads the body of an answer that has [`TRANSFER_HEADER`](super::TRANSFER_HEADER), and checks
    /// that it is an offer of what was asked for, and that its lengths fit.
    ///
    /// # Errors
    /// [`SealedError::Answer`].
    pub fn read(body: &[u8], asked: &Asked<'_>) -> Result<Self, SealedError> {
        let said: OfferJson<'_> =
            serde_json::from_slice(body).map_err(|_| wrong("cannot be read"))?;
        check_version(said.version)?;
        let range = said.range[0]..said.range[1];
        let starts_there = range.start == asked.range.start;
        if !starts_there || range.is_empty() || range.end > asked.range.end {
            return Err(wrong("is of another range than was asked for"));
        }
        if said.segments.len() > TRANSFER_SEGMENTS {
            return Err(wrong("has too many segments"));
        }
        // Where the object ends, the last chunk has to come, or a cut could not be told.
        let ends_object = range.end == asked.object_bytes;
        let count = said.segments.len();
        let ticket = ticket(&said.ticket)?;
        let data_port = data_port(
            said.url.as_deref(),
            (said.port, said.tls),
            asked.host,
            &ticket,
        )?;
        let mut segments = Vec::with_capacity(count);
        for (index, segment) in said.segments.iter().enumerate() {
            let place = Place {
                is_first: index == 0,
                must_end: ends_object || index + 1 < count,
            };
            segments.push(segment.checked(place)?);
        }
        let plain = sum(segments.iter().map(|segment| segment.bytes));
        let sealed = sum(said.segments.iter().map(|segment| segment.sealed_bytes));
        if plain != Some(range.end - range.start) || sealed != Some(said.bytes) {
            return Err(wrong("has lengths that do not add up"));
        }
        Ok(Self {
            data_port,
            sealed_bytes: said.bytes,
            segments,
            range,
        })
    }

    /// The bytes of the object that are offered: from the start of what was asked for, perhaps not
    /// as far.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }
}

fn sum(mut bytes: impl Iterator<Item = u64>) -> Option<u64> {
    bytes.try_fold(0, u64::checked_add)
}

/// What a segment's place among the others asks of it.
#[derive(Clone, Copy)]
struct Place {
    /// Only the first may begin within its blob.
    is_first: bool,
    /// Only the last may end within its blob.
    must_end: bool,
}

impl SegmentJson<'_> {
    fn checked(&self, place: Place) -> Result<Segment, SealedError> {
        let (chunks, plain_bytes) = self.layout().ok_or(wrong("has lengths of no chunks"))?;
        let starts = self.first_chunk == 0 && self.skip == 0;
        let ends = self.is_last && self.skip.checked_add(self.bytes) == Some(plain_bytes);
        if (!starts && !place.is_first) || (!ends && place.must_end) {
            return Err(wrong("leaves out bytes of the object"));
        }
        let wanted = self.skip.checked_add(self.bytes);
        let fits = wanted.is_some_and(|wanted| wanted <= plain_bytes);
        if self.skip >= CHUNK_BYTES as u64 || !fits {
            return Err(wrong("has lengths that do not add up"));
        }
        Ok(Segment {
            opener: self.opener(&chunks)?,
            chunks,
            skip: self.skip as usize,
            bytes: self.bytes,
        })
    }

    /// Its chunks, and how much plaintext they hold.
    fn layout(&self) -> Option<(Range<u64>, u64)> {
        let sealed_chunk = SEALED_CHUNK_BYTES as u64;
        let (full, rest) = (
            self.sealed_bytes / sealed_chunk,
            self.sealed_bytes % sealed_chunk,
        );
        let (count, last) = match (self.is_last, rest) {
            (false, 0) if full > 0 => (full, 0),
            (true, rest) => (full + 1, rest.checked_sub(TAG_BYTES as u64)?),
            _ => return None,
        };
        let end = self.first_chunk.checked_add(count)?;
        let plain = full * CHUNK_BYTES as u64 + last;
        (end <= CHUNK_COUNT_MAX).then_some((self.first_chunk..end, plain))
    }

    fn opener(&self, chunks: &Range<u64>) -> Result<Opener, SealedError> {
        let header = STANDARD.decode(self.header.as_bytes()).unwrap_or_default();
        let header: &[u8; HEADER_BYTES] = header
            .as_slice()
            .try_into()
            .map_err(|_| wrong("has no header of a blob"))?;
        // How long the blob is beyond this segment is not told, and does not matter: that the
        // last chunk here is full, or the last one of all, is what its length says.
        let before = self.first_chunk * SEALED_CHUNK_BYTES as u64;
        let message_bytes = HEADER_BYTES as u64
            + if self.is_last {
                before + self.sealed_bytes
            } else {
                chunks.end * SEALED_CHUNK_BYTES as u64 + TAG_BYTES as u64
            };
        let opener = Opener::new(
            &key(&self.key)?,
            &context(&self.context)?,
            header,
            message_bytes,
        );
        opener.map_err(|error| match error {
            OpenError::Commitment => wrong("has a key that is not of the blob"),
            _ => wrong("has lengths of no chunks"),
        })
    }
}
