//! What is written, and what must come back.

use coffer_seal::random_bytes;

use std::sync::OnceLock;

use crate::error::{LabError, Result};

/// The experiments of 2007 wrote blocks of 1 MB.
pub(crate) const BLOCK_BYTES: usize = 1_000_000;

/// Bytes at the beginning of each block that number it.
const NUMBER_BYTES: usize = 8;

/// One random block, the same for all: it can't be compressed, and costs nothing while measuring.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        while block.len() < BLOCK_BYTES {
            block.extend_from_slice(&random_bytes::<4000>());
        }
        block.truncate(BLOCK_BYTES);
        block
    })
}

/// A piece of every block, by which plaintext at rest is found.
pub(crate) fn marker() -> &'static [u8] {
    &pattern()[100..164]
}

/// Numbered blocks, one after the other.
pub(crate) struct Content {
    block: Vec<u8>,
    next: u64,
    count: u64,
}

impl Content {
    pub(crate) fn new(count: u64) -> Self {
        Self {
            block: pattern().to_vec(),
            next: 0,
            count,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.count * BLOCK_BYTES as u64
    }

    /// The next block; None after the last.
    pub(crate) fn next(&mut self) -> Option<&[u8]> {
        if self.next == self.count {
            return None;
        }
        self.block[..NUMBER_BYTES].copy_from_slice(&self.next.to_le_bytes());
        self.next += 1;
        Some(&self.block)
    }
}

/// Takes what comes back in pieces of any length, and compares it.
pub(crate) struct Sink {
    taken: u64,
    count: u64,
    wrong_at: Option<u64>,
}

impl Sink {
    pub(crate) fn new(count: u64) -> Self {
        Self {
            taken: 0,
            count,
            wrong_at: None,
        }
    }

    pub(crate) fn take(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let (block, within) = (
                self.taken / BLOCK_BYTES as u64,
                self.taken % BLOCK_BYTES as u64,
            );
            let within = within as usize;
            let here = piece.len().min(BLOCK_BYTES - within);
            let (now, later) = piece.split_at(here);
            if !matches(block, within, now) || block >= self.count {
                self.wrong_at.get_or_insert(self.taken);
            }
            self.taken += here as u64;
            piece = later;
        }
    }

    /// Whether all came back, and as it was.
    pub(crate) fn complete(&self) -> Result<()> {
        let expected = self.count * BLOCK_BYTES as u64;
        let what = match self.wrong_at {
            Some(offset) => format!("other bytes came back, from offset {offset}"),
            None if self.taken != expected => {
                format!("{} bytes came back of {expected}", self.taken)
            }
            None => return Ok(()),
        };
        Err(LabError::Data {
            file: "what was stored".into(),
            what,
        })
    }
}

fn matches(block: u64, within: usize, piece: &[u8]) -> bool {
    let numbered = NUMBER_BYTES.saturating_sub(within).min(piece.len());
    let (number, rest) = piece.split_at(numbered);
    let from = within + numbered;
    *number == block.to_le_bytes()[within.min(NUMBER_BYTES)..][..numbered]
        && *rest == pattern()[from..from + rest.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(count: u64) -> Vec<u8> {
        let mut content = Content::new(count);
        let mut all = Vec::new();
        while let Some(block) = content.next() {
            all.extend_from_slice(block);
        }
        all
    }

    #[test]
    fn pieces_of_any_length_are_compared() {
        let all = all(3);
        for length in [1_000, 16_384, 999_997, 3_000_000] {
            let mut sink = Sink::new(3);
            all.chunks(length).for_each(|piece| sink.take(piece));
            sink.complete().unwrap();
        }
    }

    #[test]
    fn what_is_cut_off_changed_or_swapped_is_seen() {
        let whole = all(3);
        let mut changed = whole.clone();
        changed[1_500_000] ^= 1;
        let swapped = [
            &whole[1_000_000..2_000_000],
            &whole[..1_000_000],
            &whole[2_000_000..],
        ];
        let longer = [&whole[..], &[0]].concat();
        for faulty in [
            &whole[..2_999_999],
            &changed,
            &swapped.concat(),
            &longer,
            &[],
        ] {
            let mut sink = Sink::new(3);
            sink.take(faulty);
            sink.complete().unwrap_err();
        }
    }
}
