//! The aws-chunked framing of a body: taken off, with the signatures of its chunks checked and its
//! trailers read.
//!
//! Some clients send a whole upload as one chunk, so the bytes of a chunk are passed on as they
//! arrive, all but its last piece: that one waits for the signature. A body whose signatures are
//! not right so ends in an error before it is complete, and nothing is made of one that does.

use std::collections::VecDeque;

use aws_lc_rs::digest;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::limits::{
    CHUNK_LINE_MAX_BYTES, GATHERED_BYTES, SIGNED_CHUNK_MIN_BYTES, SMALL_PIECE_BYTES,
    TRAILERS_MAX_BYTES,
};
use crate::signature::signer::ChunkSignatures;

/// Why a body's framing is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkFault {
    /// No aws-chunked framing.
    Malformed,
    /// A chunk or the trailers have another signature.
    Signature,
    /// The body ends before its last chunk.
    Incomplete,
    /// What follows the last chunk are no trailers.
    Trailers,
    /// A signed chunk is too small to have another behind it.
    TooSmall,
}

#[derive(Debug)]
enum Expect {
    /// The line before a chunk.
    Line,
    /// Bytes of a chunk.
    Data { remaining_bytes: u64 },
    /// The line break after a chunk, of which so many bytes are still to come.
    Break { remaining: u8 },
    /// Trailers and the end.
    Tail,
}

/// What a chunk is to be checked by once it is complete.
struct Signed {
    signature: String,
    hash: digest::Context,
}

/// Reads one body.
pub(crate) struct ChunkReader {
    signatures: Option<ChunkSignatures>,
    expect: Expect,
    /// The line that is being read, or the trailers.
    line: Vec<u8>,
    /// The chunk that is being read, where chunks are signed.
    signed: Option<Signed>,
    /// Whether the chunk before was so small that only the end may follow.
    is_last: bool,
    /// Small pieces, which others hold for a while, each with its own overhead.
    gathered: BytesMut,
}

impl ChunkReader {
    /// A reader at the beginning of a body, whose chunks are signed if there are signatures.
    pub(crate) fn new(signatures: Option<ChunkSignatures>) -> Self {
        Self {
            signatures,
            expect: Expect::Line,
            line: Vec::new(),
            signed: None,
            is_last: false,
            gathered: BytesMut::new(),
        }
    }

    /// Queues what is still held back, for no more will come, and gives the trailers.
    pub(crate) fn end(&mut self, queue: &mut VecDeque<Bytes>) -> Result<HeaderMap, ChunkFault> {
        if !matches!(self.expect, Expect::Tail) {
            return Err(ChunkFault::Incomplete);
        }
        self.pass_gathered(queue);
        let (trailers, signature) = read_trailers(&self.line).ok_or(ChunkFault::Trailers)?;
        match (&self.signatures, signature) {
            (Some(signatures), Some(signature))
                if !signatures.is_of_trailers(&signature, &canonical_trailers(&trailers)) =>
            {
                return Err(ChunkFault::Signature);
            }
            (Some(_), None) if !trailers.is_empty() => return Err(ChunkFault::Trailers),
            _ => {}
        }
        Ok(trailers)
    }

    /// Takes what arrived and queues the bytes of the object.
    pub(crate) fn push(
        &mut self,
        mut bytes: Bytes,
        queue: &mut VecDeque<Bytes>,
    ) -> Result<(), ChunkFault> {
        while !bytes.is_empty() {
            match self.expect {
                Expect::Line => self.take_line(&mut bytes)?,
                Expect::Data { remaining_bytes } => {
                    self.take_data(&mut bytes, remaining_bytes, queue)?;
                }
                Expect::Break { remaining } => self.take_break(&mut bytes, remaining)?,
                Expect::Tail => {
                    if self.line.len() + bytes.len() > TRAILERS_MAX_BYTES {
                        return Err(ChunkFault::Trailers);
                    }
                    self.line.extend_from_slice(&std::mem::take(&mut bytes));
                }
            }
        }
        Ok(())
    }

    fn take_line(&mut self, bytes: &mut Bytes) -> Result<(), ChunkFault> {
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let piece = bytes.split_to(end.map_or(bytes.len(), |end| end + 1));
        if self.line.len() + piece.len() > CHUNK_LINE_MAX_BYTES {
            return Err(ChunkFault::Malformed);
        }
        self.line.extend_from_slice(&piece);
        if end.is_none() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        let (size_bytes, signature) = chunk_line(&line).ok_or(ChunkFault::Malformed)?;
        if let Some(signatures) = &mut self.signatures {
            let signature = signature.ok_or(ChunkFault::Malformed)?;
            if self.is_last && size_bytes > 0 {
                return Err(ChunkFault::TooSmall);
            }
            self.is_last = size_bytes < SIGNED_CHUNK_MIN_BYTES;
            let hash = digest::Context::new(&digest::SHA256);
            if size_bytes > 0 {
                self.signed = Some(Signed {
                    signature: signature.to_owned(),
                    hash,
                });
            } else if !signatures.is_next(signature, &hash.finish()) {
                return Err(ChunkFault::Signature);
            }
        }
        self.expect = match size_bytes {
            0 => Expect::Tail,
            remaining_bytes => Expect::Data { remaining_bytes },
        };
        Ok(())
    }

    fn take_data(
        &mut self,
        bytes: &mut Bytes,
        remaining_bytes: u64,
        queue: &mut VecDeque<Bytes>,
    ) -> Result<(), ChunkFault> {
        let taken = usize::try_from(remaining_bytes).map_or(bytes.len(), |n| n.min(bytes.len()));
        let piece = bytes.split_to(taken);
        let remaining_bytes = remaining_bytes - taken as u64;
        self.expect = match remaining_bytes {
            0 => Expect::Break { remaining: 2 },
            _ => Expect::Data { remaining_bytes },
        };
        if let Some(signed) = &mut self.signed {
            signed.hash.update(&piece);
        }
        if remaining_bytes == 0
            && let Some(signed) = self.signed.take()
            && let Some(signatures) = &mut self.signatures
            && !signatures.is_next(&signed.signature, &signed.hash.finish())
        {
            return Err(ChunkFault::Signature);
        }
        self.pass(piece, queue);
        Ok(())
    }

    /// Queues bytes of the object: large pieces as they are, small ones together.
    fn pass(&mut self, piece: Bytes, queue: &mut VecDeque<Bytes>) {
        if piece.len() >= SMALL_PIECE_BYTES {
            self.pass_gathered(queue);
            queue.push_back(piece);
            return;
        }
        self.gathered.extend_from_slice(&piece);
        if self.gathered.len() >= GATHERED_BYTES {
            self.pass_gathered(queue);
        }
    }

    fn pass_gathered(&mut self, queue: &mut VecDeque<Bytes>) {
        if !self.gathered.is_empty() {
            queue.push_back(std::mem::take(&mut self.gathered).freeze());
        }
    }

    fn take_break(&mut self, bytes: &mut Bytes, remaining: u8) -> Result<(), ChunkFault> {
        let byte = bytes.split_to(1);
        let expected: &[u8] = if remaining == 2 { b"\r" } else { b"\n" };
        if byte != expected {
            return Err(ChunkFault::Malformed);
        }
        self.expect = match remaining {
            2 => Expect::Break { remaining: 1 },
            _ => Expect::Line,
        };
        Ok(())
    }
}

/// What a chunk's line announces: its length, in at most eight hexadecimal digits, and perhaps a
/// signature.
fn chunk_line(line: &[u8]) -> Option<(u64, Option<&str>)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?;
    let (digits, extension) = match line.split_once(';') {
        Some((digits, extension)) => (digits, Some(extension)),
        None => (line, None),
    };
    let is_length = (1..=8).contains(&digits.len());
    if !is_length || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let signature = extension.and_then(|text| text.strip_prefix("chunk-signature="));
    Some((u64::from_str_radix(digits, 16).ok()?, signature))
}

/// Trailers, a line each, and their signature, which is one of the lines.
fn read_trailers(tail: &[u8]) -> Option<(HeaderMap, Option<String>)> {
    let mut trailers = HeaderMap::new();
    let mut signature = None;
    for line in std::str::from_utf8(tail).ok()?.lines() {
        if line.is_empty() {
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let value = value.trim_ascii();
        if name.eq_ignore_ascii_case("x-amz-trailer-signature") {
            signature = Some(value.to_owned());
        } else {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            trailers.append(name, HeaderValue::from_str(value).ok()?);
        }
    }
    Some((trailers, signature))
}

/// What the signature of the trailers covers.
fn canonical_trailers(trailers: &HeaderMap) -> Vec<u8> {
    let mut lines: Vec<_> = trailers
        .iter()
        .map(|(name, value)| [name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"].concat())
        .collect();
    lines.sort_unstable();
    lines.concat()
}

#[cfg(test)]
mod tests;
