//! Every cryptographic size and limit, in one place.
//!
//! All but the last are fixed by C2SP chunked-encryption v1 instantiated as Cobblestone-256; none
//! of those may change without a new format.

/// Plaintext of a chunk, in bytes. Only the last chunk is shorter, and it always is.
pub const CHUNK_BYTES: usize = 16 * 1024;

/// An AES-256-GCM tag, in bytes.
pub const TAG_BYTES: usize = 16;

/// A full chunk as it lies in a message: ciphertext and tag, in bytes.
pub const SEALED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

/// The random salt that a message begins with, in bytes.
pub const SALT_BYTES: usize = 24;

/// The key commitment that follows the salt, in bytes.
pub const COMMITMENT_BYTES: usize = 32;

/// What stands before the first chunk: salt and commitment, in bytes.
pub const HEADER_BYTES: usize = SALT_BYTES + COMMITMENT_BYTES;

/// Every secret key, in bytes.
pub const KEY_BYTES: usize = 32;

/// The most chunks a message may have, the last one included.
pub const CHUNK_COUNT_MAX: u64 = 1 << 38;

/// The most plaintext a message may hold, in bytes: all chunks full but the last, which is one
/// byte short of full.
pub const PLAINTEXT_MAX_BYTES: u64 = CHUNK_COUNT_MAX * CHUNK_BYTES as u64 - 1;

/// The shortest message, in bytes: an empty last chunk alone.
pub const MESSAGE_MIN_BYTES: usize = HEADER_BYTES + TAG_BYTES;

/// A sealed [`SecretKey`](crate::SecretKey), in bytes: a message of one short chunk.
pub const WRAPPED_KEY_BYTES: usize = HEADER_BYTES + KEY_BYTES + TAG_BYTES;

/// A wrapped key that another key has sealed again, in bytes.
pub const WRAPPED_TWICE_BYTES: usize = HEADER_BYTES + WRAPPED_KEY_BYTES + TAG_BYTES;

// The layout that docs/FORMAT.md promises, as the compiler sees it.
const _: () = {
    assert!(CHUNK_BYTES == 16_384);
    assert!(SEALED_CHUNK_BYTES == 16_400);
    assert!(HEADER_BYTES == 56);
    assert!(WRAPPED_KEY_BYTES == 104);
    assert!(WRAPPED_TWICE_BYTES == 176);
    assert!(KEY_BYTES < CHUNK_BYTES, "a wrapped key is one last chunk");
    assert!(PLAINTEXT_MAX_BYTES == (1 << 52) - 1);
    assert!(
        (PLAINTEXT_MAX_BYTES as u128)
            + (CHUNK_COUNT_MAX as u128) * (TAG_BYTES as u128)
            + (HEADER_BYTES as u128)
            <= i64::MAX as u128,
        "every offset within a message fits a file offset"
    );
};

/// How much memory for keys is added at a time, in bytes: room for 512 keys, which suits the least
/// `RLIMIT_MEMLOCK` in use, of 64 KiB.
pub const KEY_REGION_BYTES: usize = 16 * 1024;
