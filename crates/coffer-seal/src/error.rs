//! Why something was not sealed or did not open.

use thiserror::Error;

/// Why a message, or a chunk of one, was not given out.
///
/// The variants tell causes apart for tests and for the code that decides what to do next. The
/// text does not: whatever was wrong with sealed bytes, the outside sees one opaque failure.
/// Only mistakes of the caller (an index or a buffer that doesn't fit) have a text of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No message has this length: it is shorter than a header and a tag, its last chunk is
    /// shorter than a tag, or it has too many chunks.
    #[error("the sealed bytes did not open")]
    Length {
        /// The whole message's length, in bytes.
        sealed_bytes: u64,
    },
    /// The message ends with a full chunk, or with a header: its last chunk is missing.
    #[error("the sealed bytes did not open")]
    Truncated {
        /// The whole message's length, in bytes.
        sealed_bytes: u64,
    },
    /// The commitment is not that of this key, salt and context.
    #[error("the sealed bytes did not open")]
    Commitment,
    /// The tag of a chunk does not verify, or the chunk has the wrong length.
    #[error("the sealed bytes did not open")]
    Chunk {
        /// The chunk's number, from 0.
        index: u64,
    },
    /// The caller asked for a chunk that the message doesn't have.
    #[error("chunk {index} of a message of {chunk_count} chunks was asked for")]
    NoSuchChunk {
        /// The chunk's number, from 0.
        index: u64,
        /// How many chunks the message has.
        chunk_count: u64,
    },
    /// The caller's buffer is too small for the chunk's plaintext.
    #[error("a chunk of {chunk_bytes} bytes was to be opened into a buffer of {out_bytes}")]
    Buffer {
        /// The chunk's plaintext, in bytes.
        chunk_bytes: usize,
        /// The buffer's length, in bytes.
        out_bytes: usize,
    },
}

/// Why a chunk was not sealed. Every variant but the last two is a mistake of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SealError {
    /// The plaintext's length is not that of the chunk: a full chunk is exactly
    /// [`CHUNK_BYTES`](crate::limits::CHUNK_BYTES) long, a last one shorter.
    #[error("{plaintext_bytes} bytes are not a chunk of this kind")]
    ChunkLength {
        /// The plaintext's length, in bytes.
        plaintext_bytes: usize,
    },
    /// The output is not exactly [`TAG_BYTES`](crate::limits::TAG_BYTES) longer than the
    /// plaintext.
    #[error("a sealed chunk of {sealed_bytes} bytes was to go into a buffer of {out_bytes}")]
    Buffer {
        /// What the sealed chunk needs, in bytes.
        sealed_bytes: usize,
        /// The buffer's length, in bytes.
        out_bytes: usize,
    },
    /// The message has as many chunks as it may have.
    #[error("the message is longer than a sealed message may be")]
    TooLong,
    /// The cipher itself failed.
    #[error("the cipher failed")]
    Cipher,
}
