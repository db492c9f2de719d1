//! What the objects hold: bytes that cost nothing to make and nothing to check.
//!
//! A body is a window that slides over one pattern of random bytes, again and again. The
//! pattern's length is a prime, so a chunk that arrives in another's place shows wherever chunks
//! begin at multiples of anything.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;

const PATTERN_BYTES: usize = 1_000_003;

/// The pattern's beginning once more after its end, so that pieces up to this length are whole.
const OVERLAP_BYTES: usize = 65_536;

/// What a body holds: its length, and where in the pattern it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Bytes of the body.
    pub length_bytes: u64,
    start: u64,
}

impl Content {
    /// A body that differs from the bodies of other numbers.
    pub fn new(length_bytes: u64, number: u64) -> Self {
        Self {
            length_bytes,
            start: number.wrapping_mul(7_919) % PATTERN_BYTES as u64,
        }
    }

    /// The bytes from an offset on: as many as are left, but no more than `most`, and no more
    /// than one can have of the pattern in a piece (which is 64 KiB at least).
    pub fn piece(&self, offset_bytes: u64, most: usize) -> &'static [u8] {
        let pattern = pattern();
        let from = ((self.start + offset_bytes) % PATTERN_BYTES as u64) as usize;
        let left = self.length_bytes.saturating_sub(offset_bytes);
        let length = most
            .min(pattern.len() - from)
            .min(usize::try_from(left).unwrap_or(most));
        &pattern[from..from + length]
    }

    /// Whether `found` is what stands at an offset. Looks at all of it.
    pub fn matches(&self, mut offset_bytes: u64, mut found: &[u8]) -> bool {
        while !found.is_empty() {
            let piece = self.piece(offset_bytes, found.len());
            if piece.is_empty() || piece != &found[..piece.len()] {
                return false;
            }
            offset_bytes += piece.len() as u64;
            found = &found[piece.len()..];
        }
        true
    }

    /// Writes all of it to a new file, durably.
    pub fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create_new(path)?;
        let mut offset_bytes = 0;
        while offset_bytes < self.length_bytes {
            let piece = self.piece(offset_bytes, PATTERN_BYTES);
            file.write_all(piece)?;
            offset_bytes += piece.len() as u64;
        }
        file.sync_data()
    }

    /// Whether a file holds this and nothing else.
    pub fn is_in(&self, path: &Path) -> io::Result<bool> {
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 1 << 20];
        let mut offset_bytes = 0;
        loop {
            let read_bytes = file.read(&mut buffer)?;
            if read_bytes == 0 {
                return Ok(offset_bytes == self.length_bytes);
            }
            if !self.matches(offset_bytes, &buffer[..read_bytes]) {
                return Ok(false);
            }
            offset_bytes += read_bytes as u64;
        }
    }

    /// Whether the first bytes of `found` are what stands at an offset: what a load client can
    /// afford for every record it receives.
    pub fn begins(&self, offset_bytes: u64, found: &[u8]) -> bool {
        const SAMPLE_BYTES: usize = 32;
        self.matches(offset_bytes, &found[..found.len().min(SAMPLE_BYTES)])
    }
}

fn pattern() -> &'static Bytes {
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    PATTERN.get_or_init(|| {
        // SplitMix64 (Steele, Lea, Flood 2014): not compressible, the same in every process.
        let mut state = 0x00c0_ffe4_u64;
        let mut pattern = Vec::with_capacity(PATTERN_BYTES + OVERLAP_BYTES);
        while pattern.len() < PATTERN_BYTES {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = state;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            pattern.extend((word ^ (word >> 31)).to_le_bytes());
        }
        pattern.truncate(PATTERN_BYTES);
        pattern.extend_from_within(..OVERLAP_BYTES);
        pattern.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_record_are_whole() {
        let content = Content::new(5_000_000, 1);
        for offset_bytes in (0..4_980_000).step_by(7) {
            assert_eq!(content.piece(offset_bytes, 16_384).len(), 16_384);
        }
    }

    #[test]
    fn pieces_join_to_the_whole() {
        let content = Content::new(2_500_000, 3);
        let mut whole = Vec::new();
        while (whole.len() as u64) < content.length_bytes {
            whole.extend_from_slice(content.piece(whole.len() as u64, 65_536));
        }
        assert_eq!(whole.len() as u64, content.length_bytes);
        assert!(content.matches(0, &whole));
        assert!(content.piece(content.length_bytes, 10).is_empty());
        // Neither another body, nor this one with a chunk at another's place, nor one too long.
        assert!(!Content::new(2_500_000, 4).begins(0, &whole));
        assert!(!content.matches(16_384, &whole[..16_384]));
        whole.push(0);
        assert!(!content.matches(0, &whole));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        content.write_to(&path).unwrap();
        assert!(content.is_in(&path).unwrap());
        assert!(!Content::new(2_500_001, 3).is_in(&path).unwrap());
        assert!(!Content::new(2_500_000, 4).is_in(&path).unwrap());
    }
}
