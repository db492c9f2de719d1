//! Opening any chunk of a message, in any order.

use std::fmt;
use std::ops::Range;

use crate::context::Context;
use crate::error::OpenError;
use crate::layout::Layout;
use crate::limits::{HEADER_BYTES, TAG_BYTES};
use crate::message_key::MessageKey;
use crate::secret::SecretKey;

/// Opens the chunks of one message, each on its own.
///
/// It keeps no state between chunks, so many threads may use one opener at once. Chunks go from
/// one buffer into another in one pass, without an allocation.
///
/// The message's length is taken from its store. A wrong one shows as soon as the last
/// chunk is opened: until then, bytes of earlier chunks are right, but that nothing was cut off
/// is not known.
///
/// ```
/// use coffer_seal::{Context, Opener, SecretKey, limits, seal};
///
/// let (key, context) = (SecretKey::generate(), Context::raw(*b"example"));
/// let message = seal(&key, &context, &[7; 40_000]);
///
/// let header = message.first_chunk::<{ limits::HEADER_BYTES }>().unwrap();
/// let opener = Opener::new(&key, &context, header, message.len() as u64)?;
/// let where_it_lies = opener.chunk_range(2);
/// let chunk = &message[where_it_lies.start as usize..where_it_lies.end as usize];
/// let mut out = [0; limits::CHUNK_BYTES];
/// assert_eq!(opener.open_chunk(2, chunk, &mut out)?, 40_000 - 2 * limits::CHUNK_BYTES);
/// # Ok::<(), coffer_seal::OpenError>(())
/// ```
pub struct Opener {
    key: MessageKey,
    layout: Layout,
}

impl Opener {
    /// An opener for the message of `sealed_bytes` (header and all) that begins with `header`.
    ///
    /// # Errors
    ///
    /// When no message has that length, or when the message was not sealed under this key and
    /// context.
    pub fn new(
        key: &SecretKey,
        context: &Context,
        header: &[u8; HEADER_BYTES],
        sealed_bytes: u64,
    ) -> Result<Self, OpenError> {
        let layout = Layout::of_message(sealed_bytes)?;
        let key = MessageKey::committed(key, context, header).ok_or(OpenError::Commitment)?;
        Ok(Self { key, layout })
    }

    /// How much plaintext the message holds, in bytes.
    pub fn plaintext_bytes(&self) -> u64 {
        self.layout.plaintext_bytes()
    }

    /// How many chunks the message has: at least one.
    pub fn chunk_count(&self) -> u64 {
        self.layout.chunk_count()
    }

    /// Where chunk `index` lies in the message, in bytes; empty at the message's end when there
    /// is no such chunk.
    pub fn chunk_range(&self, index: u64) -> Range<u64> {
        match self.layout.chunk_plaintext_bytes(index) {
            Some(plaintext_bytes) => {
                let start = Layout::chunk_offset_bytes(index);
                start..start + (plaintext_bytes + TAG_BYTES) as u64
            }
            None => {
                let end = self.chunk_range(self.chunk_count() - 1).end;
                end..end
            }
        }
    }

    /// Opens chunk `index` from `sealed`, exactly the bytes at [`Opener::chunk_range`], into the
    /// beginning of `out`. Returns how many bytes it holds; what follows in `out` is untouched.
    ///
    /// # Errors
    ///
    /// When the chunk does not open, or when index or buffer don't fit. Nothing of the chunk is
    /// in `out` then: where it would have been are zeros, or what was there before.
    pub fn open_chunk(
        &self,
        index: u64,
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, OpenError> {
        let chunk_bytes =
            self.layout
                .chunk_plaintext_bytes(index)
                .ok_or(OpenError::NoSuchChunk {
                    index,
                    chunk_count: self.chunk_count(),
                })?;
        if sealed.len() != chunk_bytes + TAG_BYTES {
            return Err(OpenError::Chunk { index });
        }
        let out_bytes = out.len();
        let out = out.get_mut(..chunk_bytes).ok_or(OpenError::Buffer {
            chunk_bytes,
            out_bytes,
        })?;
        let opened = self.key.open_chunk(index, sealed, out);
        opened
            .map(|()| chunk_bytes)
            .map_err(|_| OpenError::Chunk { index })
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener")
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}
