//! Whether bytes look like ciphertext: Pearson's chi-square over byte values.
//!
//! Of ciphertext, each value is as frequent as any other. Over `n` bytes, `expected` being a 256th
//! of `n`, the sum over all values of `(count − expected)² / expected` has a mean of 255 and a
//! standard deviation of 22.6. A page fails above [`CHI_SQUARE_MAX`]: 12 deviations above the mean,
//! less than once in 10¹⁸ pages of ciphertext. English text reaches some 50,000 for 4 KiB, a page
//! of zeros a million. What is compressed well, and has no header, passes: the commitments tell it
//! from a sealed message.
//!
//! For fewer bytes than [`BYTES_MIN`], their halves of four bits are counted instead: 16 values,
//! a mean of 15, a limit of [`SHORT_CHI_SQUARE_MAX`]. Below [`SHORT_BYTES_MIN`] nothing is said.

/// The most that ciphertext may have, over values of bytes.
pub const CHI_SQUARE_MAX: f64 = 526.0;

/// The most that little ciphertext may have, over values of four bits.
pub const SHORT_CHI_SQUARE_MAX: f64 = 120.0;

/// From how many bytes on their values are counted.
pub const BYTES_MIN: usize = 1024;

/// Fewer bytes tell nothing.
pub const SHORT_BYTES_MIN: usize = 64;

/// Whether bytes may be ciphertext. Of a few bytes it is always said that they may.
pub fn looks_sealed(bytes: &[u8]) -> bool {
    match bytes.len() {
        0..SHORT_BYTES_MIN => true,
        SHORT_BYTES_MIN..BYTES_MIN => {
            let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            chi_square::<16>(halves) <= SHORT_CHI_SQUARE_MAX
        }
        _ => chi_square::<256>(bytes.iter().copied()) <= CHI_SQUARE_MAX,
    }
}

fn chi_square<const VALUES: usize>(values: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0_u32; VALUES];
    let mut total = 0_u32;
    for value in values {
        counts[usize::from(value)] += 1;
        total += 1;
    }
    let expected = f64::from(total) / VALUES as f64;
    let deviation = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
    counts.iter().map(deviation).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift64*: as even as ciphertext, and the same each time.
    fn noise(length: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn noise_passes_at_every_length() {
        for seed in 1..400 {
            for length in [0, 63, 64, 100, 1023, 1024, 2000, 4096, 16_400] {
                assert!(looks_sealed(&noise(length, seed)), "{length} {seed}");
            }
        }
    }

    #[test]
    fn what_can_be_read_does_not() {
        let text = "In the beginning was a recording, and no one was to hear it. ".repeat(80);
        let json = "{\"name\":\"a/b\",\"size\":12345},".repeat(160);
        for length in [64, 100, 1023, 1024, 4096] {
            for plain in [&text.as_bytes()[..length], &json.as_bytes()[..length]] {
                assert!(!looks_sealed(plain), "{length}");
            }
            assert!(!looks_sealed(&vec![0; length]), "{length} zeros");
        }
        let mut half = noise(4096, 7);
        half[..2048].fill(0);
        assert!(!looks_sealed(&half));
    }
}
