//! What client and server say to each other. A request is nine bytes: what is wanted, of how many
//! bytes, at which place; numbers are little-endian. Plaintext goes in pieces of up to 16 KiB; what
//! is encrypted has a tag behind each piece.

use std::io::{self, Read};
use std::sync::OnceLock;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use clap::ValueEnum;

use crate::cipher::algorithm::TAG_BYTES;

/// Bytes of plaintext in a piece.
pub(super) const PIECE_BYTES: usize = 16_384;

/// The most of a request.
pub(super) const REQUEST_BYTES_MAX: usize = 1_000_000;

/// Places that a server has, each for a request: a file of 500 MB.
pub(super) const PLACES: usize = 500;

/// How a server says that it has done what has no other answer.
pub(super) const DONE: u8 = b'!';

/// Bytes before what is stored.
pub(super) const HEAD_BYTES: usize = 9;

/// Known to both sides. It protects nothing: what is sent is known to everybody.
const KEY: [u8; 32] = [0x5a; 32];

/// What a client wants of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wish {
    /// To get the first bytes of [`content`].
    Send,
    /// To give plaintext, which the server encrypts and keeps.
    Store,
    /// To get what was stored, as it lies there.
    GiveBack,
    /// That the server keeps nothing of what was stored.
    Forget,
}

impl Wish {
    const ALL: [Self; 4] = [Self::Send, Self::Store, Self::GiveBack, Self::Forget];

    /// As a command line tells it.
    pub(super) fn argument(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_owned())
    }
}

/// A request. What is out of bounds in one that came is brought into them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) wish: Wish,
    pub(super) bytes: usize,
    pub(super) place: usize,
}

impl Request {
    /// One within its bounds.
    pub(super) fn new(wish: Wish, bytes: usize, place: usize) -> Self {
        Self {
            wish,
            bytes: bytes.min(REQUEST_BYTES_MAX),
            place: place.min(PLACES - 1),
        }
    }

    /// As it goes over a connection.
    pub(super) fn head(self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        let known = Wish::ALL.iter().position(|one| *one == self.wish);
        head[0] = known.unwrap_or(0) as u8;
        head[1..5].copy_from_slice(&(self.bytes as u32).to_le_bytes());
        head[5..].copy_from_slice(&(self.place as u32).to_le_bytes());
        head
    }

    /// What such bytes ask for; None where they ask for nothing.
    pub(super) fn of_head(head: [u8; HEAD_BYTES]) -> Option<Self> {
        let [wish, a, b, c, d, e, f, g, h] = head;
        Some(Self::new(
            *Wish::ALL.get(usize::from(wish))?,
            u32::from_le_bytes([a, b, c, d]) as usize,
            u32::from_le_bytes([e, f, g, h]) as usize,
        ))
    }

    /// Reads one; None when the client has left.
    pub(super) fn read(stream: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; HEAD_BYTES];
        match stream.read_exact(&mut head) {
            Ok(()) => {
                let known = Self::of_head(head);
                let known = known.ok_or_else(|| io::Error::other("not a request"))?;
                Ok(Some(known))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How many bytes of plaintext each of its pieces has.
    pub(super) fn pieces(self) -> impl Iterator<Item = (usize, usize)> {
        let starts = (0..self.bytes).step_by(PIECE_BYTES).enumerate();
        starts.map(move |(number, start)| (number, PIECE_BYTES.min(self.bytes - start)))
    }
}

fn key() -> io::Result<&'static LessSafeKey> {
    static EXPANDED: OnceLock<Option<LessSafeKey>> = OnceLock::new();
    let expanded = EXPANDED.get_or_init(|| {
        let key = UnboundKey::new(&AES_256_GCM, &KEY).ok()?;
        Some(LessSafeKey::new(key))
    });
    expanded.as_ref().ok_or_else(|| io::Error::other("no key"))
}

fn nonce(place: usize, number: usize) -> Nonce {
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&(place as u32).to_be_bytes());
    bytes[4..].copy_from_slice(&(number as u64).to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// The first `count` bytes of what there is to send.
pub(super) fn content(count: usize) -> &'static [u8] {
    static CONTENT: OnceLock<Vec<u8>> = OnceLock::new();
    let all = CONTENT.get_or_init(|| {
        let byte = |index: u32| (index.wrapping_mul(2_654_435_761) >> 24) as u8;
        (0..REQUEST_BYTES_MAX as u32).map(byte).collect()
    });
    &all[..count.min(REQUEST_BYTES_MAX)]
}

/// Encrypts a piece in place, and appends its tag.
pub(super) fn seal_piece(place: usize, number: usize, piece: &mut Vec<u8>) -> io::Result<()> {
    let nonce = nonce(place, number);
    let sealed = key()?.seal_in_place_append_tag(nonce, Aad::empty(), piece);
    sealed.map_err(|_| io::Error::other("encrypting"))
}

/// Opens a piece in place; None when its tag is wrong.
pub(super) fn opened_piece(place: usize, number: usize, piece: &mut [u8]) -> Option<&[u8]> {
    let nonce = nonce(place, number);
    let opened = key().ok()?.open_in_place(nonce, Aad::empty(), piece);
    opened.ok().map(|piece| &*piece)
}

/// What a piece of so many bytes of plaintext is long where it is encrypted.
pub(super) fn sealed_bytes(plain_bytes: usize, encrypts: bool) -> usize {
    plain_bytes + if encrypts { TAG_BYTES } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written_and_within_bounds() {
        for wish in Wish::ALL {
            let request = Request::new(wish, 16_000, 99);
            let read = Request::read(&mut &request.head()[..]).unwrap();
            assert_eq!(read, Some(request));
        }
        let mut head = [0xff; HEAD_BYTES];
        assert_eq!(Request::of_head(head), None);
        Request::read(&mut &head[..]).unwrap_err();
        head[0] = 1;
        let widest = Request::new(Wish::Store, REQUEST_BYTES_MAX, PLACES - 1);
        assert_eq!(Request::of_head(head), Some(widest));
        assert_eq!(Request::read(&mut &head[..4]).unwrap(), None);
        let pieces: Vec<_> = Request::new(Wish::Send, 40_000, 0).pieces().collect();
        assert_eq!(pieces, [(0, 16_384), (1, 16_384), (2, 7_232)]);
    }
}
