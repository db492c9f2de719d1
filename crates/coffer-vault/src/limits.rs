//! Every limit of the vault, in one list; those of copies are a part of it.

mod copies;

pub use coffer_store::limits::OBJECT_NAME_MAX_BYTES;

pub use self::copies::*;

/// Shortest and longest bucket name, in bytes. S3 makes none of fewer than 3, and its front door
/// neither, but an administrator may.
pub const BUCKET_NAME_BYTES: std::ops::RangeInclusive<usize> = 1..=63;

/// Shortest bucket name that S3 makes, in bytes.
pub const S3_BUCKET_NAME_MIN_BYTES: usize = 3;

/// Most buckets on one server (the keystore has room for them).
pub const BUCKET_COUNT_MAX: usize = 10_000;

/// Largest object that one PUT, one part or one copy may carry (S3: 5 GiB).
pub const SINGLE_PUT_MAX_BYTES: u64 = 5 << 30;

/// Largest object (S3 in 2025: 48.8 TiB, which is 10,000 parts of 5 GiB).
pub const OBJECT_MAX_BYTES: u64 = 10_000 * SINGLE_PUT_MAX_BYTES;

/// Smallest part but for the last (S3: 5 MiB).
pub const PART_MIN_BYTES: u64 = 5 << 20;

/// Most parts of one upload, and the highest part number.
pub const PART_NUMBER_MAX: u32 = 10_000;

/// Most names in one multi-delete.
pub const DELETE_MANY_MAX: usize = 1_000;

/// So old a bucket's folder is before a start removes it that has no key and is empty.
pub const EMPTY_FOLDER_AGE: std::time::Duration = std::time::Duration::from_secs(3_600);

/// How long a start looks for catalogs that it does not understand, before it serves.
pub const START_LOOK: std::time::Duration = std::time::Duration::from_millis(500);

/// How often the anchor is written while anything is.
pub const ANCHOR_EVERY: std::time::Duration = std::time::Duration::from_secs(2);

/// How often the keystore is written for what is no administrative act.
pub const KEYSTORE_HOLDS_EVERY: std::time::Duration = std::time::Duration::from_secs(300);

/// How often a token is written for what is no administrative act, or is one of a data user.
pub const TOKEN_HOLDS_EVERY: std::time::Duration = std::time::Duration::from_secs(3_600);

/// How many catalogs stay open at once; the one unused for longest is closed for the next. Fewer
/// where the limit of open files is low.
pub const OPEN_BUCKETS_MAX: usize = 256;

/// But at least so many.
pub const OPEN_BUCKETS_MIN: usize = 4;

/// So many files an open catalog takes: database, log, the log's index, and those of readers.
pub const FILES_A_BUCKET: usize = 6;

/// Catalogs take no more than one in so many of the files that may be open; connections and blobs
/// take the others.
pub const CATALOG_SHARE: usize = 4;

/// So many connections a bucket notes before it sorts out those that have ended.
pub const CONNECTIONS_NOTED_MIN: usize = 256;

/// How long an erase waits for what it has cut to be gone.
pub const CUT_WAIT: std::time::Duration = std::time::Duration::from_secs(2);

/// How long an erase waits for commits under way, to count what they bring.
pub const COMMIT_WAIT: std::time::Duration = std::time::Duration::from_millis(50);

/// So many buckets that were not counted since the start an erase opens to count them.
pub const COUNTED_BY_OPENING_MAX: usize = 8;

/// How long to wait, in milliseconds, before each further attempt to destroy an old root key.
pub const SETTLE_PAUSES: [u64; 5] = [5, 20, 100, 400, 1_000];

/// How long to wait until it is known whether a bucket goes that is just being removed.
pub const OUT_OF_USE_WAIT: std::time::Duration = std::time::Duration::from_secs(1);

/// How long between looks at that.
pub const OUT_OF_USE_LOOK: std::time::Duration = std::time::Duration::from_millis(2);

/// How long until it is looked again whether an erase is ordered whose draft is in doubt.
pub const ERASE_DOUBT_LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// How often it looks meanwhile.
pub const CUT_LOOK: std::time::Duration = std::time::Duration::from_micros(500);

/// How long a request waits for its approvals, in milliseconds: a day.
pub const REQUEST_LIFE_MS: i64 = 24 * 60 * 60 * 1_000;

/// The most requests that wait for approvals at once.
pub const REQUESTS_MAX: usize = 100;

/// The most recipients of one export.
pub const EXPORT_RECIPIENTS_MAX: usize = 20;

/// How many receipts a page holds.
pub const RECEIPTS_PAGE: usize = 1_000;

/// How often a rotation walks over a catalog for data keys that were moved meanwhile.
pub const REWRAP_PASSES_MAX: usize = 10;

/// How many rewrapped data keys a rotation writes into a catalog at once. Each commit makes all
/// readers of the catalog forget the pages that they have opened, so there are to be few.
/// Tests see several of a few objects.
pub const REWRAP_COMMIT: usize = if cfg!(test) { 128 } else { 1_024 };

/// A rotation rests so many times as long as each step took, to leave the machine to others.
pub const REWRAP_REST: u32 = 4;

/// But no longer than this: a slow disk makes it slow enough.
pub const REWRAP_REST_MAX: std::time::Duration = std::time::Duration::from_millis(8);

/// How often a rotation looks whether copies have what it waits for.
pub const ROTATION_LOOKS_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// After so many looks the log tells of it.
pub const ROTATION_TELLS_AFTER: u32 = 150;

/// How many rotations are told of.
pub const ROTATIONS_TOLD_MAX: usize = 1_000;

/// Multipart uploads that one subject may have under way, in all buckets, unless it is told
/// otherwise.
pub const UPLOADS_PER_SUBJECT: usize = 10_000;

/// Buckets that one subject may have made, unless it is told otherwise.
pub const BUCKETS_PER_SUBJECT: usize = 1_000;

/// How often it is looked how much open buckets hold, for metrics.
pub const BUCKETS_LOOK: std::time::Duration = std::time::Duration::from_secs(30);

/// How often it is looked whether it is known of a commit in doubt that it stands, for quotas.
pub const DOUBTS_LOOK: std::time::Duration = std::time::Duration::from_millis(500);

/// The longest time between two of these looks, while that can't be told.
pub const DOUBTS_LOOK_MAX: std::time::Duration = std::time::Duration::from_secs(4);

/// How many damaged places are told of in the log within a minute.
pub const DAMAGED_PLACES_TOLD: usize = 256;

/// How many names `verify` takes from a catalog at a time.
pub const VERIFY_PAGE: usize = 100;

/// Length of an access key id, in characters, and of a secret access key.
pub const ACCESS_KEY_ID_CHARS: usize = 20;

/// Length of a secret access key, in characters: 40 of Base64 alphabet hold 240 bits.
pub const SECRET_ACCESS_KEY_CHARS: usize = 40;

/// How many events of `verify` may wait for the listener.
pub const VERIFY_EVENTS_WAITING: usize = 64;

/// How long what repeats is only counted in the audit log.
pub const REPEATS_WINDOW: std::time::Duration = std::time::Duration::from_secs(60);

/// How many kinds of events are watched for repeating at once.
pub const REPEATS_KEPT: usize = 4_096;

/// In how many places (buckets, levels, addresses) what repeats is counted on its own; in all
/// others together.
pub const PLACES_TOLD: usize = 8;

/// How many access key ids that no subject has are told within a minute, as they were claimed.
pub const STRANGERS_TOLD: usize = 8;

/// The longest claimed access key id that is told: real ones have 20, secrets 40.
pub const CLAIMED_ID_MAX_CHARS: usize = 32;

/// How many records of the audit log are read at a time.
pub const AUDIT_PAGE: usize = 256;

/// How many records of the audit log may wait for the listener.
pub const AUDIT_RECORDS_WAITING: usize = 256;

/// How often a follower of the audit log is told of news.
pub const AUDIT_FOLLOW_PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// The most of a fact that a record holds, in bytes: what may be longer is told over several
/// records.
pub const FACT_MAX_BYTES: usize = 2_000;

/// How often an act of one actor may fail within [`REPEATS_WINDOW`], once it has begun, before it
/// is refused for the rest of that time.
pub const ACT_FAILURES_MAX: u32 = 60;

/// How often repeats are looked at, and the audit log's last record is kept in `system.db`.
pub const AUDIT_TICK: std::time::Duration = std::time::Duration::from_secs(5);

/// How often `verify` tells how far it is.
pub const VERIFY_PROGRESS_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// Longest name of a subject, in bytes.
pub const SUBJECT_NAME_BYTES: usize = 63;

/// Most access keys of one subject. Once there are so many, a new one takes the place of the one
/// that expired first.
pub const ACCESS_KEY_COUNT_MAX: usize = 8;

/// Most subjects on one server. All are held in memory.
pub const SUBJECT_COUNT_MAX: usize = 10_000;

/// Most buckets that one subject may be granted something in.
pub const GRANT_COUNT_MAX: usize = 1_000;

/// Access keys that expire are looked for at least so often, should the clock be set meanwhile.
pub const EXPIRY_LOOK: std::time::Duration = std::time::Duration::from_secs(30);

/// How often it is looked for subjects to settle, where a time is set: an eighth of it, and no more
/// seldom or often than this.
pub const SETTLING_LOOK_LONGEST: std::time::Duration = std::time::Duration::from_secs(60);
/// See [`SETTLING_LOOK_LONGEST`].
pub const SETTLING_LOOK_SHORTEST: std::time::Duration = std::time::Duration::from_millis(50);

/// Whether the data folder can be written is tried at most so often, when it is asked for.
pub const TRY_WRITE_EVERY: std::time::Duration = std::time::Duration::from_secs(1);

/// How long that may take.
pub const TRY_WRITE_TIME: std::time::Duration = std::time::Duration::from_secs(5);

/// How many blobs that are wrong are told one by one.
pub const WRONG_BLOBS_MAX: usize = 1_000;

/// Failed sign-ins by one claimant in [`SIGN_IN_WINDOW`], after which it is not heard, unless a
/// front door is told another number.
pub const SIGN_IN_FAILURES: u32 = 10;

/// How long failed sign-ins count.
pub const SIGN_IN_WINDOW: std::time::Duration = std::time::Duration::from_secs(60);

/// Claimants whose failed sign-ins are remembered; the oldest make room.
pub const SIGN_IN_COUNTS: usize = 4096;

/// Events of a backup that wait for the one who listens.
pub const BACKUP_EVENTS_WAITING: usize = 4;

/// How often a backup tells how far it is.
pub const BACKUP_PROGRESS_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// How often a backup begins anew because the root key was changed under it.
pub const BACKUP_ATTEMPTS: usize = 5;

/// Blobs that a backup copies in one go, and their bytes, before it tells of them.
pub const BACKUP_BLOBS_AT_ONCE: usize = 64;

/// See [`BACKUP_BLOBS_AT_ONCE`].
pub const BACKUP_BYTES_AT_ONCE: u64 = 64 << 20;

/// Longest file of certificates or of a key that a backup takes along.
pub const TLS_FILE_MAX_BYTES: u64 = 1 << 20;

/// Bytes of the configuration of all buckets of a level together: it is held in memory. What the
/// server keeps for itself about a bucket, of some hundred bytes at most, does not count.
pub const CONFIGURATIONS_MAX_BYTES: usize = 8 << 20;

/// Bytes of the path of a backup's folder: what Linux takes.
pub(crate) const PATH_MAX_BYTES: usize = 4_095;

/// The last moment that can be written as a time: 9999-12-31T23:59:59.999Z.
pub(crate) const EXPIRY_MAX_MS: i64 = 253_402_300_799_999;

/// A system administrator is left while the access key of one counts for so long to come.
pub(crate) const ADMINISTRATOR_LEFT_MS: i64 = 24 * 60 * 60 * 1_000;

/// Rules of a lifecycle configuration (S3: 1,000).
pub const LIFECYCLE_RULES_MAX: usize = 1_000;

/// Characters of a lifecycle rule's ID (S3: 255).
pub const LIFECYCLE_ID_MAX_CHARS: usize = 255;

/// Tags of a lifecycle rule's filter: no object has more.
pub const LIFECYCLE_TAGS_MAX: usize = 10;

/// Days that a lifecycle rule counts (S3: 2^31 - 1).
pub const LIFECYCLE_DAYS_MAX: u32 = i32::MAX.cast_unsigned();

/// Newer versions that a rule for those that are not the newest may keep (S3: 100).
pub const NEWER_NONCURRENT_MAX: u32 = 100;

/// After how many days an upload is aborted that was not completed, unless a rule or the
/// configuration says otherwise.
pub const ABORT_UPLOADS_DAYS: std::num::NonZeroU32 = std::num::NonZeroU32::new(7).unwrap();

/// Rows that a run of lifecycle rules looks at between two rests.
pub(crate) const LIFECYCLE_PAGE: usize = 1_000;

/// Versions that it ends in one transaction. Each makes all readers of the catalog forget the pages
/// that they have opened, and other writes wait as long.
pub(crate) const LIFECYCLE_BATCH: usize = if cfg!(test) { 16 } else { 512 };

/// It rests so many times as long as each step took, to leave the machine to others.
pub(crate) const LIFECYCLE_REST: u32 = 2;

/// But no longer than this.
pub(crate) const LIFECYCLE_REST_MAX: std::time::Duration = std::time::Duration::from_millis(20);

/// How long after a start it begins.
pub(crate) const LIFECYCLE_AFTER_START: std::time::Duration = std::time::Duration::from_secs(5);

/// How often it looks whether a new day has begun, should the clock be set meanwhile.
pub(crate) const LIFECYCLE_LOOK: std::time::Duration = std::time::Duration::from_secs(60);

/// A bound on the locks of a bucket is raised by so many at least, so that few locks raise it.
pub(crate) const LOCK_BOUND_COUNT_STEP: u64 = 256;

/// A bound on when the locks of a bucket end is raised by so much more than it takes: a day, in
/// milliseconds.
pub(crate) const LOCK_BOUND_STEP_MS: i64 = 24 * 3_600 * 1_000;

/// A bound on the data keys that clients were given is raised by so many, so that few of them raise
/// it; after a crash as many may be told too many.
pub(crate) const KEY_RELEASES_STEP: u64 = 1_000;

/// By how much the time by which locks end follows the wall clock across a stop, at most: a week,
/// in milliseconds.
pub(crate) const LOCK_TIME_STOP_MAX_MS: i64 = 7 * 24 * 3_600 * 1_000;

/// By how much the wall clock must have moved otherwise than that time before it is told that it
/// was set: a minute, in milliseconds.
pub(crate) const LOCK_TIME_JUMP_MS: u64 = 60 * 1_000;

/// How long an object may be locked, where the configuration says nothing else: ten years, in days.
pub const LOCK_MAX_DAYS: u32 = 3_650;

/// The longest default retention (Amazon S3): a hundred years, in days.
pub const LOCK_DEFAULT_MAX_DAYS: u32 = 36_500;

/// An erase that a bound holds back counts the locks of so many buckets anew.
pub(crate) const LOCKS_COUNTED_AT_ERASE: usize = 64;

/// How often is kept how far that time has come, in milliseconds: an hour.
pub(crate) const LOCK_TIME_KEPT_EVERY_MS: i64 = 3_600 * 1_000;

/// A ticket of a sealed transfer, in bytes.
pub(crate) const TICKET_BYTES: usize = 32;

/// How long a ticket waits to be presented at the data port.
pub const TICKET_TIME: std::time::Duration = std::time::Duration::from_secs(60);

/// How long bytes that have arrived wait for their commit.
pub const ARRIVED_TIME: std::time::Duration = std::time::Duration::from_secs(600);

/// Sealed transfers at once, from their tickets to their ends.
pub const TRANSFERS_MAX: usize = 4_096;

/// Those of one subject.
pub const TRANSFERS_PER_SUBJECT: usize = 256;

/// How often it is looked whether the subject of a transfer under way still has its right.
pub(crate) const TRANSFER_LOOK: std::time::Duration = std::time::Duration::from_millis(400);

/// Blobs that wait to be verified, looked up at once.
pub(crate) const UNVERIFIED_PAGE: usize = 100;

/// When a bucket in which they could not be read is tried again.
pub(crate) const UNVERIFIED_AGAIN: std::time::Duration = std::time::Duration::from_secs(60);

/// Segments of one transfer: an object of more parts goes out in several.
pub const TRANSFER_SEGMENTS_MAX: usize = 256;

/// Locks of a bucket for the names of what is committed in it, where objects say who may do what.
pub(crate) const COMMIT_NAME_LOCKS: usize = 64;
