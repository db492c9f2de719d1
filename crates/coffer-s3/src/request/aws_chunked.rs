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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::signature::signer::tests::example_chunks;

    fn read(
        signatures: Option<ChunkSignatures>,
        body: &[u8],
        piece: usize,
    ) -> Result<(Vec<Bytes>, HeaderMap), ChunkFault> {
        let mut reader = ChunkReader::new(signatures);
        let mut queue = VecDeque::new();
        for piece in body.chunks(piece) {
            reader.push(Bytes::copy_from_slice(piece), &mut queue)?;
        }
        let trailers = reader.end(&mut queue)?;
        Ok((queue.into(), trailers))
    }

    /// The body of AWS's example.
    fn example(payload: u8) -> Vec<u8> {
        let chunk = |length: usize, signature: &str| {
            let line = format!("{length:x};chunk-signature={signature}\r\n");
            [line.as_bytes(), &vec![payload; length], b"\r\n"].concat()
        };
        [
            chunk(
                65_536,
                "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
            ),
            chunk(
                1_024,
                "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
            ),
            chunk(
                0,
                "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
            ),
        ]
        .concat()
    }

    #[test]
    fn signed_chunks_are_checked() {
        let body = example(b'a');
        for piece in [1, 1_000, body.len()] {
            let (pieces, trailers) = read(Some(example_chunks()), &body, piece).unwrap();
            assert_eq!(pieces.concat(), vec![b'a'; 66_560]);
            assert!(trailers.is_empty());
        }
        let fault = |body: &[u8]| read(Some(example_chunks()), body, 4_096).err();
        assert_eq!(fault(&example(b'b')), Some(ChunkFault::Signature));
        let short = &body[..body.len() - 88];
        assert_eq!(fault(short), Some(ChunkFault::Incomplete));
        let unsigned_trailer = [&body[..body.len() - 2], b"x-amz-a:1\r\n\r\n"].concat();
        assert_eq!(fault(&unsigned_trailer), Some(ChunkFault::Trailers));
        let zeros = "0".repeat(64);
        let wrong = format!("x-amz-a:1\r\nx-amz-trailer-signature:{zeros}\r\n\r\n");
        let wrong = [&body[..body.len() - 2], wrong.as_bytes()].concat();
        assert_eq!(fault(&wrong), Some(ChunkFault::Signature));
        assert_eq!(fault(b"1\r\na\r\n0\r\n\r\n"), Some(ChunkFault::Malformed));
    }

    #[test]
    fn a_signed_chunk_is_passed_on_but_for_what_waits_for_its_signature() {
        for (payload, passed) in [(b'a', 65_536), (b'b', 60_000)] {
            let body = example(payload);
            let mut reader = ChunkReader::new(Some(example_chunks()));
            let mut queue = VecDeque::new();
            let line = "10000;chunk-signature=".len() + 64 + 2;
            let mut push = |range: std::ops::Range<usize>| {
                let piece = Bytes::copy_from_slice(&body[range]);
                let pushed = reader.push(piece, &mut queue);
                (pushed, queue.iter().map(Bytes::len).sum::<usize>())
            };
            assert_eq!(push(0..line + 60_000), (Ok(()), 60_000));
            let (pushed, bytes) = push(line + 60_000..line + 65_536);
            assert_eq!(pushed.is_ok(), payload == b'a');
            assert_eq!(bytes, passed);
        }
    }

    #[test]
    fn what_is_no_framing_is_refused() {
        let long = vec![b'1'; CHUNK_LINE_MAX_BYTES + 1];
        let tail = [b"0\r\n".to_vec(), vec![b'a'; TRAILERS_MAX_BYTES + 1]].concat();
        let bodies: [&[u8]; 6] = [
            b"\r\n",
            b"1\na\n",
            b"xyz\r\n",
            b"100000000\r\n",
            b"1\r\nab\r\n",
            &long,
        ];
        for body in bodies {
            for signatures in [None, Some(example_chunks())] {
                let refused = read(signatures, body, 7);
                assert_eq!(refused, Err(ChunkFault::Malformed), "{body:?}");
            }
        }
        for body in [&b"0\r\nno trailer\r\n"[..], &tail] {
            assert_eq!(read(None, body, 7), Err(ChunkFault::Trailers), "{body:?}");
        }
    }

    #[test]
    fn many_small_chunks_become_few() {
        let body = [b"1\r\na\r\n".repeat(100_000), b"0\r\n\r\n".to_vec()].concat();
        let (pieces, _) = read(None, &body, 50_000).unwrap();
        assert_eq!(pieces.concat(), vec![b'a'; 100_000]);
        assert!(pieces.len() < 100, "{}", pieces.len());
    }

    proptest! {
        #[test]
        fn unsigned_bodies_give_payload_and_trailers(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..6),
            piece in 1usize..60,
        ) {
            let mut body = Vec::new();
            for chunk in &chunks {
                body.extend(format!("{:X}\r\n", chunk.len()).as_bytes());
                body.extend(chunk);
                body.extend(b"\r\n");
            }
            body.extend(b"0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n");
            let (pieces, trailers) = read(None, &body, piece).unwrap();
            prop_assert_eq!(pieces.concat(), chunks.concat());
            prop_assert_eq!(&trailers["x-amz-checksum-crc32"], "AAAAAA==");
        }

        #[test]
        fn nothing_that_arrives_breaks_it(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(None, &body, 13);
            let _ = read(Some(example_chunks()), &body, 13);
        }
    }
}
