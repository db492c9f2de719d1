//! From a data port: sealed bytes come, plaintext goes on, chunk by chunk.

use std::io::{self, Read};
use std::ops::Range;

use coffer_seal::OpenError;
use coffer_seal::limits::CHUNK_BYTES;

use crate::limits::TRANSFER_BATCH_CHUNKS;
use crate::sealed::error::SealedError;
use crate::sealed::head::read_head;
use crate::sealed::lane::{Lane, cut};
use crate::sealed::offer::{Offer, Segment};
use crate::sealed::stop::Stop;

impl Lane {
    /// Fetches what is offered, and hands on its plaintext piece by piece, in order, each with
    /// where it begins in the object. A piece is opened before it is handed on, but only when all
    /// came well does one know that nothing is missing.
    ///
    /// # Errors
    /// What went wrong on the way; [`SealedError::Local`] with the error of `give`.
    pub fn receive(
        &mut self,
        offer: &Offer,
        give: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), SealedError> {
        self.receive_until(offer, &Stop::default(), give)
    }

    /// The same, which `stop` ends.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub(crate) fn receive_until(
        &mut self,
        offer: &Offer,
        stop: &Stop,
        give: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), SealedError> {
        let received = self.received(offer, stop, give);
        stop.is_over();
        received
    }

    fn received(
        &mut self,
        offer: &Offer,
        stop: &Stop,
        mut give: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<(), SealedError> {
        let address = offer.data_port.address();
        let request = offer.data_port.request("GET", None);
        let mut stream = self.begin(&offer.data_port, &request, offer.sealed_bytes)?;
        let mut arriving = Arriving {
            address: &address,
            done: 0,
            of: offer.sealed_bytes,
        };
        let goes_on = stop.goes_by(stream.tcp());
        goes_on.map_err(|error| arriving.cut(error))?;
        let head = read_head(&mut stream);
        let (head, body) = head.map_err(|error| arriving.head_error(error))?;
        if head.status != 200 {
            let status = head.status;
            return Err(SealedError::Refused { address, status });
        }
        if head.content_length != Some(offer.sealed_bytes) {
            return Err(arriving.altered("its length"));
        }
        let mut reader = body.as_slice().chain(&mut stream);
        let mut at = offer.range().start;
        for segment in &offer.segments {
            let mut give = |piece: &[u8]| {
                at += piece.len() as u64;
                give(at - piece.len() as u64, piece)
            };
            self.segment(segment, &mut reader, &mut arriving, &mut give)?;
        }
        if head.stays {
            self.keep(address, stream);
        }
        Ok(())
    }

    fn segment(
        &mut self,
        segment: &Segment,
        reader: &mut impl Read,
        arriving: &mut Arriving<'_>,
        give: &mut impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), SealedError> {
        let (mut next, end) = (segment.chunks.start, segment.chunks.end);
        let mut wanted = segment.skip as u64..segment.skip as u64 + segment.bytes;
        while next < end {
            let batch = next..end.min(next + TRANSFER_BATCH_CHUNKS as u64);
            let bytes = sealed_range(segment, &batch);
            let sealed = &mut self.sealed[..bytes];
            let arrived = reader.read_exact(sealed);
            arrived.map_err(|error| arriving.cut(error))?;
            arriving.done += bytes as u64;
            let opened = open(segment, &batch, sealed, &mut self.plain);
            let opened = opened.map_err(|_| arriving.altered("a chunk does not open"))?;
            let here = cut_off(&wanted, opened);
            if !here.is_empty() {
                give(&self.plain[here]).map_err(SealedError::Local)?;
            }
            wanted = wanted.start.saturating_sub(opened as u64)
                ..wanted.end.saturating_sub(opened as u64);
            next = batch.end;
        }
        Ok(())
    }
}

/// How many sealed bytes a run of chunks has.
fn sealed_range(segment: &Segment, batch: &Range<u64>) -> usize {
    let end = segment.opener.chunk_range(batch.end - 1).end;
    (end - segment.opener.chunk_range(batch.start).start) as usize
}

/// Opens a run of chunks, one behind the other. Returns how many bytes they hold.
fn open(
    segment: &Segment,
    batch: &Range<u64>,
    mut sealed: &[u8],
    plain: &mut [u8],
) -> Result<usize, OpenError> {
    let mut opened = 0;
    for index in batch.clone() {
        let lies = segment.opener.chunk_range(index);
        let (chunk, rest) = sealed.split_at((lies.end - lies.start) as usize);
        opened += segment
            .opener
            .open_chunk(index, chunk, &mut plain[opened..])?;
        sealed = rest;
    }
    Ok(opened)
}

/// What of a piece of `opened` bytes is wanted, when `wanted` counts from the piece's beginning.
fn cut_off(wanted: &Range<u64>, opened: usize) -> Range<usize> {
    let within = |at: u64| at.min(opened as u64) as usize;
    within(wanted.start)..within(wanted.end)
}

const _: () = assert!(TRANSFER_BATCH_CHUNKS * CHUNK_BYTES < u32::MAX as usize);

/// How far a transfer has come.
struct Arriving<'a> {
    address: &'a str,
    done: u64,
    of: u64,
}

impl Arriving<'_> {
    fn cut(&self, source: io::Error) -> SealedError {
        cut(self.address.to_owned(), self.done, self.of, source)
    }

    fn altered(&self, what: &'static str) -> SealedError {
        SealedError::Altered {
            address: self.address.to_owned(),
            what,
        }
    }

    fn head_error(&self, error: io::Error) -> SealedError {
        match error.kind() {
            io::ErrorKind::InvalidData => self.altered("no answer of HTTP"),
            _ => self.cut(error),
        }
    }
}
