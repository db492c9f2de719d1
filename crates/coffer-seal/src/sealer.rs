//! Sealing as the plaintext arrives, chunk by chunk.

use std::fmt;

use aws_lc_rs::error::Unspecified;

use crate::context::Context;
use crate::error::SealError;
use crate::limits::{CHUNK_BYTES, CHUNK_COUNT_MAX, HEADER_BYTES, SALT_BYTES, TAG_BYTES};
use crate::message_key::MessageKey;
use crate::secret::{SecretKey, random_bytes};

/// Seals one message: its header, then full chunks, then a last one that is shorter.
///
/// Chunks go from one buffer into another in one pass, without an allocation. A sealer counts
/// its chunks itself and ends with the last, so no nonce can be used twice.
///
/// ```
/// use coffer_seal::{Context, Sealer, SecretKey, limits, open};
///
/// let (key, context) = (SecretKey::generate(), Context::raw(*b"example"));
/// let plaintext = vec![7; limits::CHUNK_BYTES + 100];
/// let (full, last) = plaintext.split_at(limits::CHUNK_BYTES);
///
/// let mut sealer = Sealer::new(&key, &context);
/// let mut message = sealer.header().to_vec();
/// let mut chunk = vec![0; limits::SEALED_CHUNK_BYTES];
/// sealer.seal_chunk(full, &mut chunk)?;
/// message.extend_from_slice(&chunk);
/// chunk.truncate(last.len() + limits::TAG_BYTES);
/// sealer.seal_last(last, &mut chunk)?;
/// message.extend_from_slice(&chunk);
///
/// assert_eq!(*open(&key, &context, &message).unwrap(), plaintext);
/// # Ok::<(), coffer_seal::SealError>(())
/// ```
pub struct Sealer {
    key: MessageKey,
    header: [u8; HEADER_BYTES],
    next_index: u64,
}

impl Sealer {
    /// A sealer with a salt of its own; `key` and `context` are what opening will need.
    pub fn new(key: &SecretKey, context: &Context) -> Self {
        // 192 random bits: under one key, 2^80 messages reach a chance of 2^-32 that two salts
        // are the same (C2SP chunked-encryption v1, "Security analysis").
        Self::with_salt(key, context, &random_bytes())
    }

    /// A sealer with a given salt, which must never be used twice with the same key: only for
    /// comparing with known messages.
    pub(crate) fn with_salt(key: &SecretKey, context: &Context, salt: &[u8; SALT_BYTES]) -> Self {
        let (key, header) = MessageKey::derive(key, context, salt);
        Self {
            key,
            header,
            next_index: 0,
        }
    }

    /// What the message begins with.
    pub fn header(&self) -> &[u8; HEADER_BYTES] {
        &self.header
    }

    /// Seals the next full chunk: exactly [`CHUNK_BYTES`] into exactly
    /// [`SEALED_CHUNK_BYTES`](crate::limits::SEALED_CHUNK_BYTES).
    ///
    /// # Errors
    ///
    /// When a length is not that, or when the message has no room for this chunk and a last one.
    /// The chunk is then not sealed and the sealer is where it was.
    pub fn seal_chunk(&mut self, plaintext: &[u8], out: &mut [u8]) -> Result<(), SealError> {
        check_full(plaintext.len())?;
        check_out(plaintext, out)?;
        let index = self.next_full(plaintext.len())?;
        sealed(self.key.seal_chunk(index, plaintext, out))
    }

    /// Seals the next full chunk where it lies: exactly
    /// [`SEALED_CHUNK_BYTES`](crate::limits::SEALED_CHUNK_BYTES), of which the first
    /// [`CHUNK_BYTES`] are plaintext and the rest room for the tag.
    ///
    /// # Errors
    ///
    /// As [`Sealer::seal_chunk`].
    pub fn seal_chunk_in_place(&mut self, chunk: &mut [u8]) -> Result<(), SealError> {
        let index = self.next_full(chunk.len().saturating_sub(TAG_BYTES))?;
        sealed(self.key.seal_chunk_in_place(index, chunk))
    }

    /// Seals the last chunk where it lies: its plaintext, perhaps none, and [`TAG_BYTES`] of room.
    ///
    /// # Errors
    ///
    /// As [`Sealer::seal_last`].
    pub fn seal_last_in_place(self, chunk: &mut [u8]) -> Result<(), SealError> {
        let Some(plaintext_bytes) = chunk.len().checked_sub(TAG_BYTES) else {
            return Err(SealError::Buffer {
                sealed_bytes: TAG_BYTES,
                out_bytes: chunk.len(),
            });
        };
        check_last(plaintext_bytes)?;
        sealed(self.key.seal_chunk_in_place(self.next_index, chunk))
    }

    /// Seals the last chunk, which marks the message's end: fewer than [`CHUNK_BYTES`], perhaps
    /// none, into exactly [`TAG_BYTES`] more.
    ///
    /// # Errors
    ///
    /// When a length is not that. The message is lost then, for the sealer is used up.
    pub fn seal_last(self, plaintext: &[u8], out: &mut [u8]) -> Result<(), SealError> {
        check_last(plaintext.len())?;
        check_out(plaintext, out)?;
        sealed(self.key.seal_chunk(self.next_index, plaintext, out))
    }

    /// The index of the next full chunk, which counts as used from now on: were the cipher to fail
    /// half-way, the nonce would be spent all the same.
    fn next_full(&mut self, plaintext_bytes: usize) -> Result<u64, SealError> {
        check_full(plaintext_bytes)?;
        // A full chunk is never the last, so one more must find room.
        if self.next_index + 1 >= CHUNK_COUNT_MAX {
            return Err(SealError::TooLong);
        }
        let index = self.next_index;
        self.next_index += 1;
        Ok(index)
    }
}

fn sealed(done: Result<(), Unspecified>) -> Result<(), SealError> {
    done.map_err(|_| SealError::Cipher)
}

fn check_full(plaintext_bytes: usize) -> Result<(), SealError> {
    match plaintext_bytes {
        CHUNK_BYTES => Ok(()),
        _ => Err(SealError::ChunkLength { plaintext_bytes }),
    }
}

fn check_last(plaintext_bytes: usize) -> Result<(), SealError> {
    if plaintext_bytes < CHUNK_BYTES {
        Ok(())
    } else {
        Err(SealError::ChunkLength { plaintext_bytes })
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("next_index", &self.next_index)
            .finish_non_exhaustive()
    }
}

fn check_out(plaintext: &[u8], out: &[u8]) -> Result<(), SealError> {
    let sealed_bytes = plaintext.len() + TAG_BYTES;
    if out.len() == sealed_bytes {
        Ok(())
    } else {
        Err(SealError::Buffer {
            sealed_bytes,
            out_bytes: out.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::sealed_bytes;
    use crate::limits::{PLAINTEXT_MAX_BYTES, SEALED_CHUNK_BYTES};
    use crate::opener::Opener;

    #[test]
    fn sealing_in_place_gives_the_same_bytes() {
        let (key, context) = (SecretKey::generate(), Context::raw(*b"here"));
        let text: Vec<u8> = (0..CHUNK_BYTES + 77).map(|n| (n % 251) as u8).collect();
        let (full, last) = text.split_at(CHUNK_BYTES);
        let salt = random_bytes();
        let sealer = || Sealer::with_salt(&key, &context, &salt);

        let mut beside = sealer();
        let mut expected = vec![0; SEALED_CHUNK_BYTES + last.len() + TAG_BYTES];
        let (first, second) = expected.split_at_mut(SEALED_CHUNK_BYTES);
        beside.seal_chunk(full, first).unwrap();
        beside.seal_last(last, second).unwrap();

        let mut here = sealer();
        let room = [0; TAG_BYTES];
        let mut found = [full, &room, last, &room].concat();
        let (first, second) = found.split_at_mut(SEALED_CHUNK_BYTES);
        here.seal_chunk_in_place(first).unwrap();
        here.seal_last_in_place(second).unwrap();
        assert_eq!(found, expected);
    }

    #[test]
    fn sealing_in_place_refuses_chunks_of_other_lengths() {
        let mut sealer = Sealer::new(&SecretKey::generate(), &Context::raw(*b"here"));
        for bytes in [
            0,
            TAG_BYTES - 1,
            SEALED_CHUNK_BYTES - 1,
            SEALED_CHUNK_BYTES + 1,
        ] {
            assert!(
                sealer.seal_chunk_in_place(&mut vec![0; bytes]).is_err(),
                "{bytes}"
            );
        }
        assert_eq!(sealer.next_index, 0);
        for bytes in [0, TAG_BYTES - 1, SEALED_CHUNK_BYTES] {
            let sealer = Sealer::new(&SecretKey::generate(), &Context::raw(*b"here"));
            assert!(
                sealer.seal_last_in_place(&mut vec![0; bytes]).is_err(),
                "{bytes}"
            );
        }
    }

    #[test]
    fn the_last_chunk_that_a_message_may_have_is_a_last_one() {
        let (key, context) = (SecretKey::generate(), Context::raw(*b"long"));
        let mut sealer = Sealer::new(&key, &context);
        let header = *sealer.header();
        let message_bytes = sealed_bytes(PLAINTEXT_MAX_BYTES).unwrap();
        let opener = Opener::new(&key, &context, &header, message_bytes).unwrap();
        let (mut sealed, mut out) = (vec![0; SEALED_CHUNK_BYTES], vec![0; CHUNK_BYTES]);

        sealer.next_index = CHUNK_COUNT_MAX - 2;
        sealer.seal_chunk(&[5; CHUNK_BYTES], &mut sealed).unwrap();
        opener
            .open_chunk(CHUNK_COUNT_MAX - 2, &sealed, &mut out)
            .unwrap();
        assert_eq!(out, [5; CHUNK_BYTES]);

        let full = sealer.seal_chunk(&[6; CHUNK_BYTES], &mut sealed);
        assert_eq!(full, Err(SealError::TooLong));
        let last = [7; CHUNK_BYTES - 1];
        let sealed_last = &mut sealed[..SEALED_CHUNK_BYTES - 1];
        sealer.seal_last(&last, sealed_last).unwrap();
        let opened = opener.open_chunk(CHUNK_COUNT_MAX - 1, sealed_last, &mut out);
        assert_eq!(opened, Ok(last.len()));
        assert_eq!(out[..last.len()], last);
    }
}
