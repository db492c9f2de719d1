//! What client and server say to each other: four bytes, little-endian, ask for so many bytes; the
//! answer comes in pieces of up to 16 KiB, each with a tag, or as it is.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::cipher::algorithm::TAG_BYTES;

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

/// The first `count` bytes of what there is to send.
pub(super) fn content(count: usize) -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let all = CONTENT.get_or_init(|| {
        let byte = |index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as u8;
        (0..ANSWER_BYTES_MAX as u32).map(byte).collect()
    });
    &all[..count.min(ANSWER_BYTES_MAX)]
}

/// The same in a file that lies in memory: for processes, which have no other memory in common.
pub(super) fn shared_content() -> io::Result<File> {
    let file = rustix::fs::memfd_create("content", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(content(ANSWER_BYTES_MAX))?;
    Ok(file)
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
    seal_piece(number, piece)
}

fn seal_piece(number: usize, piece: &mut Vec<u8>) -> io::Result<()> {
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

/// Answers one question on standard output, which is the client's connection, from standard input,
/// which is [`shared_content`]: what the process that serves one request does.
pub fn answer_on_standard_output(count: usize) -> io::Result<()> {
    let shared = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut connection = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    send_shared(&mut connection, &shared, count.min(ANSWER_BYTES_MAX))
}

/// Reads by place: where others read the same file makes no difference.
fn send_shared(stream: &mut impl Write, shared: &File, count: usize) -> io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE_BYTES + TAG_BYTES);
    for number in 0..count.div_ceil(PIECE_BYTES) {
        let from = number * PIECE_BYTES;
        piece.resize(PIECE_BYTES.min(count - from), 0);
        shared.read_exact_at(&mut piece, from as u64)?;
        seal_piece(number, &mut piece)?;
        stream.write_all(&piece)?;
    }
    Ok(())
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

    #[test]
    fn a_process_answers_as_the_others_do() {
        let shared = shared_content().unwrap();
        for count in [1, PIECE_BYTES, 40_000, ANSWER_BYTES_MAX] {
            let (mut expected, mut sent) = (Vec::new(), Vec::new());
            answer(&mut expected, count, true).unwrap();
            send_shared(&mut sent, &shared, count).unwrap();
            assert!(sent == expected, "{count}");
        }
    }
}
