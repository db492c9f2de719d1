//! Every limit and size of the audit log.

use std::time::Duration;

use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, TAG_BYTES};

/// The longest name of an act, in bytes.
pub const ACT_MAX_BYTES: usize = 64;

/// The longest actor, in bytes.
pub const ACTOR_MAX_BYTES: usize = 256;

/// The most details of an event.
pub const DETAIL_COUNT_MAX: usize = 32;

/// The longest name of a detail, in bytes.
pub const DETAIL_NAME_MAX_BYTES: usize = 64;

/// The longest value of a detail, in bytes: an object name fits twice.
pub const DETAIL_VALUE_MAX_BYTES: usize = 2_048;

/// A SHA-256 hash, in bytes.
pub const HASH_BYTES: usize = 32;

/// The longest record before it is sealed, in bytes: hash of the one before, and the event as JSON.
/// So it is one chunk.
pub const RECORD_MAX_BYTES: usize = CHUNK_BYTES - 1;

/// The shortest sealed record, in bytes: an event is `{}` at least.
pub const SEALED_MIN_BYTES: usize = HEADER_BYTES + HASH_BYTES + 2 + TAG_BYTES;

/// The longest sealed record, in bytes.
pub const SEALED_MAX_BYTES: usize = HEADER_BYTES + RECORD_MAX_BYTES + TAG_BYTES;

/// What stands before a sealed record, in bytes: its length and its sequence.
pub(crate) const FRAME_HEADER_BYTES: usize = 4 + 8;

/// The shortest record on disk, in bytes.
pub const FRAME_MIN_BYTES: usize = FRAME_HEADER_BYTES + SEALED_MIN_BYTES + HASH_BYTES;

/// The longest record on disk, in bytes.
pub const FRAME_MAX_BYTES: usize = FRAME_HEADER_BYTES + SEALED_MAX_BYTES + HASH_BYTES;

/// A segment's header, in bytes.
pub const SEGMENT_HEADER_BYTES: usize = 8 + 4 + 16 + 4 + 8 + HASH_BYTES;

/// A segment ends with the group that brings it to this length, in bytes; see
/// [`Options`](crate::Options).
pub const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// The most segments: eight digits of a name.
pub const SEGMENT_NUMBER_MAX: u32 = 99_999_999;

/// A checkpoint follows this many records at the latest; see [`Options`](crate::Options).
pub const CHECKPOINT_EVERY: u32 = 1_000;

/// The most events that are written and synced together.
pub const GROUP_COUNT_MAX: usize = 256;

/// The most that the events of a group hold before they are sealed, in bytes, but for the last.
pub const GROUP_EVENT_BYTES: usize = 1024 * 1024;

/// The most that a group adds to a segment, in bytes. After a crash no more than this can lie
/// behind the head.
pub const GROUP_MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The most events that wait to be written; more than that wait for room.
pub const WAITING_MAX: usize = 4_096;

/// The most notes that wait to be written; more than that are dropped, and counted.
pub const NOTES_MAX: usize = 1_024;

/// How long a note waits for company.
pub const NOTE_LINGER: Duration = Duration::from_millis(500);

/// Nothing younger than this is pruned.
pub const PRUNE_MIN_AGE: Duration = Duration::from_hours(24);

/// How much is read at once, in bytes.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// The most findings that a report lists; the rest are counted.
pub const FINDINGS_MAX: usize = 100;

/// More than a checkpoint holds before it is sealed, in bytes.
const CHECKPOINT_MAX_BYTES: usize = 1024;

const _: () = {
    // At worst a checkpoint follows each event, and one the group.
    let frames = GROUP_COUNT_MAX * (FRAME_MIN_BYTES + FRAME_MIN_BYTES + CHECKPOINT_MAX_BYTES);
    let events = GROUP_EVENT_BYTES + FRAME_MAX_BYTES + FRAME_MIN_BYTES + CHECKPOINT_MAX_BYTES;
    assert!((frames + events) as u64 <= GROUP_MAX_BYTES);
    assert!(SEGMENT_HEADER_BYTES == 72);
    assert!(SEALED_MAX_BYTES == 16_455);
    assert!(READ_BYTES >= FRAME_MAX_BYTES);
    assert!(RECORD_MAX_BYTES < CHUNK_BYTES, "a record is one last chunk");
};
