//! Every limit and size of the keystore.

use coffer_seal::limits::{HEADER_BYTES, SEALED_CHUNK_BYTES, WRAPPED_KEY_BYTES};

/// The most levels a keystore holds.
pub const LEVEL_COUNT_MAX: usize = 1_024;

/// The most buckets a keystore holds.
pub const BUCKET_COUNT_MAX: usize = 10_000;

/// The longest level name, in bytes of UTF-8.
pub const LEVEL_NAME_MAX_BYTES: usize = 64;

/// The room of each of the keystore file's two copies, in bytes; the file is sparse.
pub const SLOT_BYTES: usize = 4 * 1024 * 1024;

/// The room of each of a root-key file's two texts, in bytes: a block of any disk, so that writing
/// one can't tear the other.
pub const PLACE_BYTES: usize = 4096;

/// Level and bucket ids, in bytes.
pub(crate) const ID_BYTES: usize = 16;

/// A set of categories as bits, in bytes.
pub(crate) const CATEGORIES_BYTES: usize = 128;

/// The body before its levels: version, system key, level count, in bytes.
pub(crate) const BODY_FIXED_BYTES: usize = 2 + 4 + WRAPPED_KEY_BYTES + 2 + 4;

/// The longest level in the body, in bytes: id, name with its length, label, generation, time of
/// creation, wrapped key.
pub(crate) const LEVEL_MAX_BYTES: usize =
    ID_BYTES + 1 + LEVEL_NAME_MAX_BYTES + 1 + CATEGORIES_BYTES + 4 + 8 + WRAPPED_KEY_BYTES;

/// A bucket in the body, in bytes: id, level's id, generation, wrapped key.
pub(crate) const BUCKET_BYTES: usize = 2 * ID_BYTES + 4 + WRAPPED_KEY_BYTES;

/// What a slot holds beside the sealed body, in bytes: the clear header and the checksum.
pub(crate) const FRAME_BYTES: usize = 40 + 32;

/// The longest body, in bytes.
pub(crate) const BODY_MAX_BYTES: usize =
    BODY_FIXED_BYTES + LEVEL_COUNT_MAX * LEVEL_MAX_BYTES + BUCKET_COUNT_MAX * BUCKET_BYTES;

const _: () = {
    assert!(CATEGORIES_BYTES * 8 == coffer_label::limits::CATEGORY_COUNT as usize);
    let chunk_count = BODY_MAX_BYTES / coffer_seal::limits::CHUNK_BYTES + 1;
    let sealed_max_bytes = HEADER_BYTES + chunk_count * SEALED_CHUNK_BYTES;
    assert!(
        FRAME_BYTES + sealed_max_bytes <= SLOT_BYTES,
        "a full keystore fits its slots"
    );
};
