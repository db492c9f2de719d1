//! The framing of aws-chunked bodies, before s3s reads it.
//!
//! s3s holds a whole chunk in memory before it passes it on, and some clients send a whole upload
//! as one chunk. A signed chunk can't be passed on before its signature was checked, so its length
//! is bounded here. An unsigned one can: it is cut into chunks of what has arrived, and many that
//! are small become one. Large ones are not copied; signatures, trailers and the end of the body
//! stay for s3s to check.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::limits::{
    CHUNK_LINE_MAX_BYTES, GATHERED_BYTES, SIGNED_CHUNK_MAX_BYTES, SMALL_PIECE_BYTES,
};

/// Whether chunks carry signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkStyle {
    /// Each chunk is signed.
    Signed,
    /// None is; a checksum follows, perhaps.
    Unsigned,
}

/// Why a body's framing is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkFault {
    /// No aws-chunked framing.
    Malformed,
    /// A signed chunk is longer than we would hold in memory.
    TooLarge,
}

#[derive(Debug)]
enum Expect {
    /// The line before a chunk.
    Line,
    /// Bytes of a chunk.
    Data { remaining_bytes: u64 },
    /// The line break after a chunk, of which so many bytes are still to come.
    Break { remaining: u8 },
    /// Trailers and the end, which s3s bounds and reads.
    Tail,
}

/// Follows the framing of one body.
#[derive(Debug)]
pub(crate) struct ChunkGuard {
    style: ChunkStyle,
    expect: Expect,
    line: Vec<u8>,
    /// Small pieces of unsigned chunks.
    gathered: BytesMut,
}

impl ChunkGuard {
    /// A guard at the beginning of a body.
    pub(crate) fn new(style: ChunkStyle) -> Self {
        Self {
            style,
            expect: Expect::Line,
            line: Vec::new(),
            gathered: BytesMut::new(),
        }
    }

    /// Queues what is still held back, for no more will come; whether the framing is complete.
    pub(crate) fn end(&mut self, queue: &mut VecDeque<Bytes>) -> bool {
        self.pass_gathered(queue);
        matches!(self.expect, Expect::Tail)
    }

    /// Takes what arrived and queues what s3s is to see.
    pub(crate) fn push(
        &mut self,
        mut bytes: Bytes,
        queue: &mut VecDeque<Bytes>,
    ) -> Result<(), ChunkFault> {
        while !bytes.is_empty() {
            match self.expect {
                Expect::Line => self.take_line(&mut bytes, queue)?,
                Expect::Data { remaining_bytes } => {
                    self.take_data(&mut bytes, remaining_bytes, queue);
                }
                Expect::Break { remaining } => self.take_break(&mut bytes, remaining, queue)?,
                Expect::Tail => queue.push_back(std::mem::take(&mut bytes)),
            }
        }
        Ok(())
    }

    fn take_line(
        &mut self,
        bytes: &mut Bytes,
        queue: &mut VecDeque<Bytes>,
    ) -> Result<(), ChunkFault> {
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
        let size_bytes = chunk_size(&line).ok_or(ChunkFault::Malformed)?;
        self.expect = match size_bytes {
            0 => Expect::Tail,
            remaining_bytes => Expect::Data { remaining_bytes },
        };
        if self.style == ChunkStyle::Signed && size_bytes > SIGNED_CHUNK_MAX_BYTES {
            return Err(ChunkFault::TooLarge);
        }
        if self.style == ChunkStyle::Signed || size_bytes == 0 {
            self.pass_gathered(queue);
            queue.push_back(Bytes::from(line));
        }
        Ok(())
    }

    fn take_data(&mut self, bytes: &mut Bytes, remaining_bytes: u64, queue: &mut VecDeque<Bytes>) {
        let taken = usize::try_from(remaining_bytes).map_or(bytes.len(), |n| n.min(bytes.len()));
        let piece = bytes.split_to(taken);
        let remaining_bytes = remaining_bytes - taken as u64;
        self.expect = match remaining_bytes {
            0 => Expect::Break { remaining: 2 },
            _ => Expect::Data { remaining_bytes },
        };
        if self.style == ChunkStyle::Signed {
            queue.push_back(piece);
        } else if piece.len() < SMALL_PIECE_BYTES {
            self.gathered.extend_from_slice(&piece);
            if self.gathered.len() >= GATHERED_BYTES {
                self.pass_gathered(queue);
            }
        } else {
            self.pass_gathered(queue);
            pass_chunk(piece, queue);
        }
    }

    fn pass_gathered(&mut self, queue: &mut VecDeque<Bytes>) {
        if !self.gathered.is_empty() {
            pass_chunk(std::mem::take(&mut self.gathered).freeze(), queue);
        }
    }

    fn take_break(
        &mut self,
        bytes: &mut Bytes,
        remaining: u8,
        queue: &mut VecDeque<Bytes>,
    ) -> Result<(), ChunkFault> {
        let byte = bytes.split_to(1);
        let expected: &[u8] = if remaining == 2 { b"\r" } else { b"\n" };
        if byte != expected {
            return Err(ChunkFault::Malformed);
        }
        if self.style == ChunkStyle::Signed {
            queue.push_back(byte);
        }
        self.expect = match remaining {
            2 => Expect::Break { remaining: 1 },
            _ => Expect::Line,
        };
        Ok(())
    }
}

/// Queues an unsigned chunk.
fn pass_chunk(piece: Bytes, queue: &mut VecDeque<Bytes>) {
    queue.push_back(Bytes::from(format!("{:x}\r\n", piece.len())));
    queue.push_back(piece);
    queue.push_back(Bytes::from_static(b"\r\n"));
}

/// The length that a chunk's line announces: hexadecimal digits up to `;` or the line break. s3s
/// reads at most eight digits, and so do we.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';' || byte == b'\r').next()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn through(style: ChunkStyle, body: &[u8], piece: usize) -> Result<Vec<Bytes>, ChunkFault> {
        let mut guard = ChunkGuard::new(style);
        let mut queue = VecDeque::new();
        for piece in body.chunks(piece) {
            guard.push(Bytes::copy_from_slice(piece), &mut queue)?;
        }
        guard.end(&mut queue);
        Ok(queue.into())
    }

    /// The payload of an unsigned body whose every chunk is in one piece, and what follows it.
    fn payload(pieces: &[Bytes]) -> (Vec<u8>, Vec<u8>) {
        let mut payload = Vec::new();
        let mut rest = pieces.concat();
        loop {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let size = chunk_size(&rest[..end]).unwrap() as usize;
            rest.drain(..end);
            if size == 0 {
                return (payload, rest);
            }
            payload.extend(rest.drain(..size));
            assert_eq!(rest.drain(..2).collect::<Vec<_>>(), b"\r\n");
        }
    }

    #[test]
    fn signed_bodies_pass_unchanged() {
        let body = b"5;chunk-signature=ab\r\nhello\r\n0;chunk-signature=cd\r\n\r\n";
        for piece in 1..body.len() {
            assert_eq!(
                through(ChunkStyle::Signed, body, piece).unwrap().concat(),
                body
            );
        }
    }

    #[test]
    fn signed_chunks_are_bounded() {
        let line = format!("{:x};chunk-signature=ab\r\n", SIGNED_CHUNK_MAX_BYTES + 1);
        let refused = through(ChunkStyle::Signed, line.as_bytes(), 9);
        assert_eq!(refused, Err(ChunkFault::TooLarge));
    }

    #[test]
    fn what_is_no_framing_is_refused() {
        let long = vec![b'1'; CHUNK_LINE_MAX_BYTES + 1];
        let bodies: [&[u8]; 5] = [
            b"\r\n",
            b"xyz\r\n",
            b"100000000\r\n",
            b"1\r\nab\r\n",
            long.as_slice(),
        ];
        for body in bodies {
            for style in [ChunkStyle::Signed, ChunkStyle::Unsigned] {
                assert_eq!(
                    through(style, body, 7),
                    Err(ChunkFault::Malformed),
                    "{body:?}"
                );
            }
        }
    }

    #[test]
    fn many_small_chunks_become_few() {
        let body = [b"1\r\na\r\n".repeat(100_000), b"0\r\n".to_vec()].concat();
        let seen = through(ChunkStyle::Unsigned, &body, 50_000).unwrap();
        assert_eq!(payload(&seen), (vec![b'a'; 100_000], Vec::new()));
        assert!(seen.len() < 100, "{}", seen.len());
    }

    proptest! {
        #[test]
        fn unsigned_bodies_keep_payload_and_trailers(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..6),
            piece in 1usize..60,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:X}\r\n", chunk.len()).as_bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            let tail = b"x-amz-checksum-crc32:AAAAAA==\r\n\r\n";
            body.extend(b"0\r\n");
            body.extend(tail);
            let seen = through(ChunkStyle::Unsigned, &body, piece).unwrap();
            prop_assert_eq!(payload(&seen), (chunks.concat(), tail.to_vec()));
        }

        #[test]
        fn nothing_that_arrives_breaks_it(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = through(ChunkStyle::Unsigned, &body, 13);
            let _ = through(ChunkStyle::Signed, &body, 13);
        }
    }
}
