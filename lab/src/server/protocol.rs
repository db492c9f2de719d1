//! What client and server say to each other: four bytes, little-endian, ask for so many bytes; the
//! answer comes in pieces of up to 16 KiB, each with a tag, or as it is.

use std::io::{self, Read, Write};
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::algorithm::TAG_BYTES;

/// Bytes of plaintext in a piece.
pub(super) const PIECE_BYTES: usize = 16_384;

/// The most that is asked for.
pub(super) const ANSWER_BYTES_MAX: usize = 1_000_000;

/// Known to both sides. It protects nothing: what is sent is known to everybody.
const KEY: [u8; 32] = [0x5a; 32];

fn key() -> io::Result<&'static LessSafeKey> {
    static EXPANDED: OnceLock<Option<LessSafeKey>> = OnceLock::new();
    let expanded = EXPANDED.get_or_init(|| {
        let key = UnboundKey::new(&AES_256_GCM, &KEY).ok()?;
        Some(LessSafeKey::new(key))
    });
    expanded.as_ref().ok_or_else(|| io::Error::other("no key"))
}

fn nonce(number: usize) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&(number as u64).to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// The first `count` bytes of what there is to send, made anew.
fn make_content(count: usize) -> Vec<u8> {
    let byte = |index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as u8;
    (0..count.min(ANSWER_BYTES_MAX) as u32).map(byte).collect()
}

/// The first `count` bytes of what there is to send.
pub(super) fn content(count: usize) -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let all = CONTENT.get_or_init(|| make_content(ANSWER_BYTES_MAX));
    &all[..count.min(ANSWER_BYTES_MAX)]
}

/// Reads a question; None when the client has left.
pub(super) fn question(stream: &mut impl Read) -> io::Result<Option<usize>> {
    let mut bytes = [0; 4];
    match stream.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(
            (u32::from_le_bytes(bytes) as usize).min(ANSWER_BYTES_MAX),
        )),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A piece as it goes out.
pub(super) fn sealed_piece(number: usize, plain: &[u8], piece: &mut Vec<u8>) -> io::Result<()> {
    piece.clear();
    piece.extend_from_slice(plain);
    let sealed = key()?.seal_in_place_append_tag(nonce(number), Aad::empty(), piece);
    sealed.map_err(|_| io::Error::other("encrypting"))
}

/// Opens a piece in place; None when its tag is wrong.
pub(super) fn opened_piece(number: usize, piece: &mut [u8]) -> Option<&[u8]> {
    let opened = key()
        .ok()?
        .open_in_place(nonce(number), Aad::empty(), piece);
    opened.ok().map(|piece| &*piece)
}

/// Answers a question.
pub(super) fn answer(stream: &mut impl Write, count: usize, encrypts: bool) -> io::Result<()> {
    if encrypts {
        send_sealed(stream, content(count))
    } else {
        stream.write_all(content(count))
    }
}

fn send_sealed(stream: &mut impl Write, content: &[u8]) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE_BYTES + TAG_BYTES);
    for (number, plain) in content.chunks(PIECE_BYTES).enumerate() {
        sealed_piece(number, plain, &mut piece)?;
        stream.write_all(&piece)?;
    }
    Ok(())
}

/// Answers one question on standard output, which is the client's connection: what the process that
/// serves one request does. It makes no more content than it sends: others keep theirs.
pub fn answer_on_standard_output(count: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    send_sealed(&mut out, &make_content(count))?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_can_be_opened_and_is_no_plaintext() {
        let mut sent = Vec::new();
        answer(&mut sent, 40_000, true).unwrap();
        assert_eq!(sent.len(), 40_000 + 3 * TAG_BYTES);
        let mut open = Vec::new();
        answer(&mut open, 40_000, false).unwrap();
        assert_ne!(open[..64], sent[..64]);
        let plain: Vec<u8> = sent
            .chunks_mut(PIECE_BYTES + TAG_BYTES)
            .enumerate()
            .flat_map(|(number, piece)| opened_piece(number, piece).unwrap().to_vec())
            .collect();
        assert_eq!(plain, content(40_000));
    }
}
