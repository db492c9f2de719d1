//! Lengths: what a plaintext grows to, and which lengths a message can have.

use crate::error::OpenError;
use crate::limits::{
    CHUNK_BYTES, CHUNK_COUNT_MAX, HEADER_BYTES, PLAINTEXT_MAX_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES,
};

/// The length in bytes of the message that seals `plaintext_bytes`; `None` when that is over
/// [`PLAINTEXT_MAX_BYTES`].
///
/// ```
/// assert_eq!(coffer_seal::sealed_bytes(0), Some(56 + 16));
/// assert_eq!(coffer_seal::sealed_bytes(16_384), Some(56 + 16_400 + 16));
/// ```
pub const fn sealed_bytes(plaintext_bytes: u64) -> Option<u64> {
    if plaintext_bytes > PLAINTEXT_MAX_BYTES {
        return None;
    }
    let chunk_count = plaintext_bytes / CHUNK_BYTES as u64 + 1;
    Some(HEADER_BYTES as u64 + plaintext_bytes + chunk_count * TAG_BYTES as u64)
}

/// How much plaintext a message of `sealed_bytes` holds, in bytes.
///
/// # Errors
///
/// [`OpenError::Length`] or [`OpenError::Truncated`] when no message has this length. That a
/// length is possible doesn't mean that it is the message's own: only the last chunk's tag tells.
pub const fn plaintext_bytes(sealed_bytes: u64) -> Result<u64, OpenError> {
    match Layout::of_message(sealed_bytes) {
        Ok(layout) => Ok(layout.plaintext_bytes()),
        Err(error) => Err(error),
    }
}

/// The chunks of a message: `full_count` full ones, then a last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    full_count: u64,
    last_plaintext_bytes: usize,
}

impl Layout {
    /// The only way to cut a message of this length.
    pub(crate) const fn of_message(sealed_bytes: u64) -> Result<Self, OpenError> {
        let Some(body_bytes) = sealed_bytes.checked_sub(HEADER_BYTES as u64) else {
            return Err(OpenError::Length { sealed_bytes });
        };
        let full_count = body_bytes / SEALED_CHUNK_BYTES as u64;
        let last_sealed_bytes = (body_bytes % SEALED_CHUNK_BYTES as u64) as usize;
        if last_sealed_bytes == 0 {
            return Err(OpenError::Truncated { sealed_bytes });
        }
        if last_sealed_bytes < TAG_BYTES || full_count >= CHUNK_COUNT_MAX {
            return Err(OpenError::Length { sealed_bytes });
        }
        Ok(Self {
            full_count,
            last_plaintext_bytes: last_sealed_bytes - TAG_BYTES,
        })
    }

    pub(crate) const fn plaintext_bytes(&self) -> u64 {
        self.full_count * CHUNK_BYTES as u64 + self.last_plaintext_bytes as u64
    }

    pub(crate) const fn chunk_count(&self) -> u64 {
        self.full_count + 1
    }

    /// The plaintext of chunk `index`, in bytes; `None` when there is no such chunk.
    pub(crate) const fn chunk_plaintext_bytes(&self, index: u64) -> Option<usize> {
        if index < self.full_count {
            Some(CHUNK_BYTES)
        } else if index == self.full_count {
            Some(self.last_plaintext_bytes)
        } else {
            None
        }
    }

    /// Where chunk `index` begins in the message, in bytes. The index must be that of a chunk.
    pub(crate) const fn chunk_offset_bytes(index: u64) -> u64 {
        HEADER_BYTES as u64 + index * SEALED_CHUNK_BYTES as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_around_every_border() {
        for chunks in [0u64, 1, 2, 3, 1000, CHUNK_COUNT_MAX - 1] {
            for around in -2i64..=2 {
                let Some(plain) = (chunks * CHUNK_BYTES as u64).checked_add_signed(around) else {
                    continue;
                };
                let sealed = sealed_bytes(plain).unwrap();
                assert_eq!(plaintext_bytes(sealed), Ok(plain), "{plain} bytes");
            }
        }
    }

    #[test]
    fn only_lengths_that_a_plaintext_has_are_messages() {
        let possible: Vec<u64> = (0..=3 * CHUNK_BYTES as u64)
            .map(|plain| sealed_bytes(plain).unwrap())
            .collect();
        for sealed in 0..*possible.last().unwrap() {
            assert_eq!(
                plaintext_bytes(sealed).is_ok(),
                possible.binary_search(&sealed).is_ok(),
                "{sealed} bytes"
            );
        }
    }

    #[test]
    fn the_longest_message_is_the_limit() {
        let longest = sealed_bytes(PLAINTEXT_MAX_BYTES).unwrap();
        assert_eq!(plaintext_bytes(longest), Ok(PLAINTEXT_MAX_BYTES));
        assert_eq!(sealed_bytes(PLAINTEXT_MAX_BYTES + 1), None);
        for more in 1..=SEALED_CHUNK_BYTES as u64 + 1 {
            assert!(plaintext_bytes(longest + more).is_err(), "{more} over");
        }
        assert!(plaintext_bytes(u64::MAX).is_err());
    }
}
