//! What a server holds, and how it answers requests from it. It lies in a file in memory, which
//! processes can have in common.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use crate::cipher::algorithm::TAG_BYTES;
use crate::server::protocol::{
    DONE, PIECE_BYTES, REQUEST_BYTES_MAX, Request, Wish, content, seal_piece, sealed_bytes,
};

/// A piece and its tag.
const STRIDE_BYTES: usize = PIECE_BYTES + TAG_BYTES;

/// What is stored at one place.
const PLACE_BYTES: usize = REQUEST_BYTES_MAX.div_ceil(PIECE_BYTES) * STRIDE_BYTES;

/// A file in memory: what is sent, and behind it what was stored, place by place.
pub(super) struct Memory {
    file: File,
}

impl Memory {
    /// With nothing stored.
    pub(super) fn new() -> io::Result<Self> {
        let file = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = File::from(file);
        file.write_all(content(REQUEST_BYTES_MAX))?;
        Ok(Self { file })
    }

    /// The file itself, for a process that answers in place of this one.
    pub(super) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Does what is wanted.
    pub(super) fn answer(
        &self,
        stream: &mut (impl Read + Write),
        request: Request,
        encrypts: bool,
    ) -> io::Result<()> {
        let mut piece = Vec::with_capacity(STRIDE_BYTES);
        match request.wish {
            Wish::Send if !encrypts => return stream.write_all(content(request.bytes)),
            Wish::Send => {
                for (number, plain) in content(request.bytes).chunks(PIECE_BYTES).enumerate() {
                    sealed_piece(number, plain, &mut piece)?;
                    stream.write_all(&piece)?;
                }
                return Ok(());
            }
            Wish::Store => {
                for (number, bytes) in request.pieces() {
                    piece.resize(bytes, 0);
                    stream.read_exact(&mut piece)?;
                    self.store(request.place, number, &mut piece, encrypts)?;
                }
            }
            Wish::GiveBack => {
                for (number, bytes) in request.pieces() {
                    piece.resize(sealed_bytes(bytes, encrypts), 0);
                    self.stored(request.place, number, &mut piece)?;
                    stream.write_all(&piece)?;
                }
                return Ok(());
            }
            Wish::Forget => self.forget()?,
        }
        stream.write_all(&[DONE])
    }

    /// Encrypts a piece that came, and keeps it.
    pub(super) fn store(
        &self,
        place: usize,
        number: usize,
        piece: &mut Vec<u8>,
        encrypts: bool,
    ) -> io::Result<()> {
        if encrypts {
            seal_piece(place, number, piece)?;
        }
        self.file.write_all_at(piece, offset(place, number))
    }

    /// A piece as it lies here.
    pub(super) fn stored(&self, place: usize, number: usize, piece: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(piece, offset(place, number))
    }

    /// Keeps nothing of what was stored.
    pub(super) fn forget(&self) -> io::Result<()> {
        self.file.set_len(REQUEST_BYTES_MAX as u64)
    }

    /// What is sent, read from the file: a process that has just begun has not made it.
    fn send_shared(&self, stream: &mut impl Write, request: Request) -> io::Result<()> {
        let mut piece = Vec::with_capacity(STRIDE_BYTES);
        for (number, bytes) in request.pieces() {
            piece.resize(bytes, 0);
            // By place: where others read the same file makes no difference.
            self.file
                .read_exact_at(&mut piece, (number * PIECE_BYTES) as u64)?;
            seal_piece(0, number, &mut piece)?;
            stream.write_all(&piece)?;
        }
        Ok(())
    }
}

fn offset(place: usize, number: usize) -> u64 {
    (REQUEST_BYTES_MAX + place * PLACE_BYTES + number * STRIDE_BYTES) as u64
}

/// A piece of what is sent, as it goes out.
pub(super) fn sealed_piece(number: usize, plain: &[u8], piece: &mut Vec<u8>) -> io::Result<()> {
    piece.clear();
    piece.extend_from_slice(plain);
    seal_piece(0, number, piece)
}

/// Answers one request on standard output, which is the client's connection; standard input is the
/// [`Memory`]: what the process that serves one request does.
pub fn answer_on_standard_output(wish: Wish, bytes: usize, place: usize) -> io::Result<()> {
    let memory = Memory {
        file: File::from(io::stdin().as_fd().try_clone_to_owned()?),
    };
    let mut connection = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let request = Request::new(wish, bytes, place);
    match wish {
        Wish::Send => memory.send_shared(&mut connection, request),
        _ => memory.answer(&mut connection, request, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::protocol::opened_piece;
    use std::io::Cursor;

    /// A connection on which `sent` comes, and what goes back.
    fn answered(memory: &Memory, request: Request, sent: &[u8], encrypts: bool) -> Vec<u8> {
        let mut stream = Cursor::new(sent.to_vec());
        memory.answer(&mut stream, request, encrypts).unwrap();
        stream.into_inner().split_off(sent.len())
    }

    fn opened(place: usize, sent: &mut [u8]) -> Vec<u8> {
        let pieces = sent.chunks_mut(STRIDE_BYTES).enumerate();
        let open = |(number, piece): (usize, &mut [u8])| {
            opened_piece(place, number, piece).unwrap().to_vec()
        };
        pieces.flat_map(open).collect()
    }

    #[test]
    fn what_is_sent_can_be_opened_and_is_no_plaintext() {
        let (memory, send) = (Memory::new().unwrap(), Request::new(Wish::Send, 40_000, 0));
        let mut sent = answered(&memory, send, &[], true);
        assert_eq!(sent.len(), 40_000 + 3 * TAG_BYTES);
        let plain = answered(&memory, send, &[], false);
        assert_ne!(plain[..64], sent[..64]);
        assert_eq!(opened(0, &mut sent), content(40_000));
    }

    #[test]
    fn what_is_stored_lies_encrypted_at_its_place_until_it_is_forgotten() {
        let memory = Memory::new().unwrap();
        let plain = content(40_000);
        for (place, encrypts) in [(3, true), (4, false)] {
            let request = |wish| Request::new(wish, plain.len(), place);
            let said = answered(&memory, request(Wish::Store), plain, encrypts);
            assert_eq!(said, [DONE]);
            let mut back = answered(&memory, request(Wish::GiveBack), &[], encrypts);
            assert_eq!(back[..64] == plain[..64], !encrypts);
            if encrypts {
                assert!(opened_piece(place + 1, 0, &mut back.clone()[..STRIDE_BYTES]).is_none());
                back = opened(place, &mut back);
            }
            assert_eq!(back, plain);
        }
        let forget = Request::new(Wish::Forget, 0, 0);
        assert_eq!(answered(&memory, forget, &[], true), [DONE]);
        memory.stored(3, 0, &mut [0]).unwrap_err();
    }

    #[test]
    fn a_process_sends_what_the_others_do() {
        let memory = Memory::new().unwrap();
        for count in [1, PIECE_BYTES, 40_000, REQUEST_BYTES_MAX] {
            let send = Request::new(Wish::Send, count, 0);
            let expected = answered(&memory, send, &[], true);
            let mut sent = Vec::new();
            memory.send_shared(&mut sent, send).unwrap();
            assert!(sent == expected, "{count}");
        }
    }
}
