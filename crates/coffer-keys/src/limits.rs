//! Every limit and size of the keystore.

use coffer_seal::limits::{HEADER_BYTES, SEALED_CHUNK_BYTES, WRAPPED_KEY_BYTES};

/// The most levels a keystore holds.
pub const LEVEL_COUNT_MAX: usize = 1_024;

/// The most buckets a keystore holds.
pub const BUCKET_COUNT_MAX: usize = 10_000;

/// The longest level name, in bytes.
pub const LEVEL_NAME_MAX_BYTES: usize = 63;

/// The most custodians that an erase or an export of a level may take.
pub const APPROVALS_MAX: u8 = 9;

/// The generations of a bucket's key that are kept at once: the current, and the one before it.
pub const BUCKET_GENERATION_COUNT_MAX: usize = 2;

/// The longest export that is read, in bytes: a full keystore, sealed and armored.
pub const EXPORT_MAX_BYTES: usize = 2 * SLOT_BYTES;

/// The room of each of the keystore file's two copies, in bytes; the file is sparse.
pub const SLOT_BYTES: usize = 4 * 1024 * 1024;

/// The room of each of a root-key file's two texts, in bytes: a block of any disk, so that writing
/// one can't tear the other.
pub const TEXT_SLOT_BYTES: usize = 4096;

/// The longest root-key source as text, in bytes: two paths and two labels.
pub const SOURCE_SPEC_MAX_BYTES: usize = 12 * 1024;

/// The longest record of root-key sources, in bytes: two of them, and a heading.
pub const SOURCE_RECORD_MAX_BYTES: usize = 2 * SOURCE_SPEC_MAX_BYTES + 128;

/// The longest name of a root key in the kernel's keyring, in bytes.
pub const KEYRING_NAME_MAX_BYTES: usize = 64;

/// The longest PIN of a token, in bytes.
pub const PIN_MAX_BYTES: usize = 255;

/// Memory of Argon2id for passphrases, in KiB; RFC 9106, section 4, second recommended option.
pub const ARGON2_MEMORY_KIB: u32 = 64 * 1024;

/// Passes of Argon2id; as above.
pub const ARGON2_PASSES: u32 = 3;

/// Lanes of Argon2id; as above.
pub const ARGON2_LANES: u32 = 4;

/// The most memory that a root-key file may ask of Argon2id, in KiB.
pub const ARGON2_MEMORY_MAX_KIB: u32 = 4 * 1024 * 1024;

/// The most passes, and the most lanes, that a root-key file may ask of Argon2id.
pub const ARGON2_PASSES_MAX: u32 = 64;

/// The work factor of scrypt for an engine's identity under a passphrase: 2 to the power of this,
/// which takes 128 MiB.
pub const IDENTITY_WORK_FACTOR: u8 = 17;

/// The highest that is run, for one that was sealed by another program: it takes 1 GiB.
pub const IDENTITY_WORK_FACTOR_MAX: u8 = 20;

/// The work factor for an engine's identity under a key that a token seals: 256 random bits.
pub(crate) const IDENTITY_WORK_FACTOR_OF_KEY: u8 = 1;

/// Level and bucket ids, in bytes.
pub(crate) const ID_BYTES: usize = 16;

/// A set of categories as bits, in bytes.
pub(crate) const CATEGORIES_BYTES: usize = 128;

/// A generation of a key in the body, in bytes: number, wrapped key.
pub(crate) const GENERATION_BYTES: usize = 4 + WRAPPED_KEY_BYTES;

/// What the body holds of the things below the keystore, in bytes: commits of `system.db`, number
/// and hash of a record, number of the anchor, time, whether the source holds something.
pub(crate) const HELD_BYTES: usize = 8 + 8 + 32 + 8 + 8 + 1;

/// The body without levels and buckets, in bytes: version, system key, receipt key, what it holds,
/// counts.
pub(crate) const BODY_FIXED_BYTES: usize = 2 + 2 * GENERATION_BYTES + HELD_BYTES + 2 + 4;

/// How far a counter is raised beyond what was held when a rollback is accepted: further than what
/// was put aside can have come since it was last held, so that it is never taken for the newer one.
pub const ROLLBACK_STEP: u64 = 1_000_000;

/// The longest file with a keystore's generation that is read, in bytes.
pub(crate) const GENERATION_FILE_MAX_BYTES: usize = 256;

/// The room of each of the anchor's two copies, in bytes; the file is sparse.
pub const ANCHOR_SLOT_BYTES: usize = 512 * 1024;

/// The anchor without its buckets, in bytes: version, commits of `system.db`, number and hash of a
/// record, time, count.
pub(crate) const ANCHOR_FIXED_BYTES: usize = 2 + 8 + 8 + 32 + 8 + 4;

/// A bucket in the anchor, in bytes: id, commits.
pub(crate) const ANCHOR_BUCKET_BYTES: usize = ID_BYTES + 8;

/// What a slot of the anchor holds beside the sealed bytes: magic, format, number, length.
pub(crate) const ANCHOR_FRAME_BYTES: usize = 8 + 4 + 8 + 4;

/// The longest level in the body, in bytes: id, name with its length, label, options, count of
/// exports, time of creation, key.
pub(crate) const LEVEL_MAX_BYTES: usize =
    ID_BYTES + 1 + LEVEL_NAME_MAX_BYTES + 1 + CATEGORIES_BYTES + 2 + 4 + 8 + GENERATION_BYTES;

/// The longest bucket in the body, in bytes: id, level's id, count of generations, generations,
/// catalog's key.
pub(crate) const BUCKET_MAX_BYTES: usize =
    2 * ID_BYTES + 1 + BUCKET_GENERATION_COUNT_MAX * GENERATION_BYTES + WRAPPED_KEY_BYTES;

/// What a slot holds beside the sealed body, in bytes: the clear header and the checksum.
pub(crate) const FRAME_BYTES: usize = 40 + 32;

/// The longest body, in bytes.
pub(crate) const BODY_MAX_BYTES: usize =
    BODY_FIXED_BYTES + LEVEL_COUNT_MAX * LEVEL_MAX_BYTES + BUCKET_COUNT_MAX * BUCKET_MAX_BYTES;

const _: () = {
    assert!(CATEGORIES_BYTES * 8 == coffer_label::limits::CATEGORY_COUNT as usize);
    let chunk_count = BODY_MAX_BYTES / coffer_seal::limits::CHUNK_BYTES + 1;
    let sealed_max_bytes = HEADER_BYTES + chunk_count * SEALED_CHUNK_BYTES;
    assert!(
        FRAME_BYTES + sealed_max_bytes <= SLOT_BYTES,
        "a full keystore fits its slots"
    );
    let anchor_max_bytes = ANCHOR_FIXED_BYTES + BUCKET_COUNT_MAX * ANCHOR_BUCKET_BYTES;
    let chunk_count = anchor_max_bytes / coffer_seal::limits::CHUNK_BYTES + 1;
    assert!(
        ANCHOR_FRAME_BYTES + HEADER_BYTES + chunk_count * SEALED_CHUNK_BYTES <= ANCHOR_SLOT_BYTES,
        "a full anchor fits its slots"
    );
};
