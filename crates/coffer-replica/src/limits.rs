//! Every limit and size of copies, in one place.

use std::time::Duration;

/// The most pages of a segment: 4 MiB, which are in memory when it is written.
pub const SEGMENT_PAGES_MAX: usize = 1_024;

/// A page of a catalog, in bytes. Part of the format.
pub const PAGE_BYTES: usize = 4_096;

/// The longest table of a segment, sealed, in bytes: more than its pages need.
pub const TABLE_MAX_BYTES: usize = 128 * 1_024;

/// The longest segment, in bytes.
pub const SEGMENT_MAX_BYTES: u64 = (TABLE_MAX_BYTES + SEGMENT_PAGES_MAX * PAGE_BYTES + 16) as u64;

/// A chain of so many segments beyond those that its base needs is followed by a new base.
pub const CHAIN_SEGMENTS_MAX: u32 = 2_048;

/// A chain may hold so many bytes beyond what its base has before a new base follows, and in any
/// case as many again as the base.
pub const CHAIN_SPARE_BYTES: u64 = 16 * 1_024 * 1_024;

/// The longest head, sealed, in bytes: 10,000 buckets and all files fit.
pub const HEAD_MAX_BYTES: u64 = 16 * 1_024 * 1_024;

/// The most pages of a record, of all catalogs: 4 MiB. More goes as segments, and a head.
pub const RECORD_PAGES_MAX: usize = 1_024;

/// The most bytes of files in a record.
pub const RECORD_FILES_MAX_BYTES: usize = 1_024 * 1_024;

/// The longest record, sealed, in bytes: more than that takes.
pub const RECORD_MAX_BYTES: u64 = 6 * 1_024 * 1_024;

/// So often a log is taken over again when a late record of its owner of before was faster, or a
/// head of the server that a standby ends.
pub const TURNS_TRIED: usize = 8;

/// The longest piece of a file, in bytes.
pub const PIECE_MAX_BYTES: usize = 8 * 1_024 * 1_024;

/// A file of more pieces is put whole again.
pub const PIECES_MAX: usize = 64;

/// So many bytes of a blob are in memory, and are put at once.
pub const BLOB_PART_BYTES: usize = 8 * 1_024 * 1_024;

/// A store that keeps what is removed is asked again after so long whether it still does: each
/// trial leaves a version of a byte there.
pub const VERSIONS_TRIED_EVERY: Duration = Duration::from_secs(600);

/// A longer time without a state is named as a gap, in milliseconds.
pub const GAP_MIN_MS: i64 = 5_000;

/// So long after a clock was put back a head says so, at the latest, where one comes at all.
pub const CLOCK_TOLD_WITHIN_MS: i64 = 60_000;

/// How many gaps are named; of more, the oldest are told as one.
pub const GAPS_MAX: usize = 64;

/// The longest time for which what was removed is kept: ten years, in milliseconds.
pub const KEEP_MAX_MS: i64 = 3_653 * 24 * 3_600 * 1_000;

/// The most blobs of a list of those that are of no object any more.
pub const GONE_LIST_MAX: usize = 100_000;

/// The longest such list, sealed, in bytes: more than that takes.
pub const GONE_LIST_MAX_BYTES: u64 = 8 * 1_024 * 1_024;

/// The longest keystore, sealed for recipients and armored, in bytes.
pub const KEYSTORE_MAX_BYTES: u64 = 8 * 1_024 * 1_024;

/// So often the newest keystore is looked for that is replaced while it is read.
pub const KEYSTORE_LOOKS: u32 = 3;

/// So many heads are read at once where all are.
pub const HEADS_READ_AT_ONCE: usize = 8;

/// So many heads behind the oldest, and before the newest, are tried where that does not open.
pub const HEADS_TRIED: u64 = 8;

/// So many objects are removed at once.
pub const REMOVED_AT_ONCE: usize = 8;

/// So many names of a folder's list wait to be taken.
pub const LISTED_AT_ONCE: usize = 1_024;

/// What a put that was ended half-way left in a folder is removed when it is this old.
pub const UNFINISHED_AGE: Duration = Duration::from_secs(3_600);

/// The same, where there is no room: longer than a put goes on without writing anything.
pub const UNFINISHED_AGE_WHEN_FULL: Duration = Duration::from_secs(60);

/// The most names of one folder, or of the keystores, that are taken from a store: of folders of a
/// thousand numbers each there are no more in a window of ten years.
pub const LISTED_MAX: usize = 400_000;

/// What a start left that made the log of an engine, and did not end, is no more objects than this.
pub const BEGUN_OBJECTS_MAX: usize = 1_000;

/// The most blobs of a bucket whose ids begin with the same byte: of a thousand million in all.
pub const BLOBS_LISTED_MAX: usize = 4_000_000;

/// A list may have so many pages in a row that nothing is in.
pub const EMPTY_PAGES_MAX: usize = 100;

/// How long a request to a store may take.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request may take that sends next to nothing, with all that it is tried again, and how
/// long what is read may not go on.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// A request that sends more has a second more for so many bytes each.
pub const SLOWEST_BYTES_PER_SECOND: u64 = 64 * 1_024;

/// How long it may take to connect to a store.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a request that failed is tried again at once; after that the round is.
pub const RETRIES: usize = 2;

/// How long it is tried again for.
pub const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest file of credentials or certificates, in bytes.
pub const SETTINGS_MAX_BYTES: u64 = 256 * 1_024;

/// How long a request about an engine's lease may take, all in all.
pub const LEASE_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The longest lease, in bytes.
pub const LEASE_MAX_BYTES: u64 = 4_096;

/// The longest address in a lease, in bytes: a host name of 253, a colon and a port fit.
pub const LEASE_ADDRESS_MAX_BYTES: usize = 300;

/// The longest time for which a lease counts, in milliseconds: others wait for so long where its
/// gateway is gone.
pub const LEASE_LASTS_MAX_MS: u64 = 60_000;

/// How often a lease changes hands, or is renewed, at the most: more than in any time there is.
pub const LEASE_COUNT_MAX: u64 = 1 << 53;

/// The longest identity of an engine, sealed, in bytes.
pub const IDENTITY_MAX_BYTES: u64 = 16 * 1_024;
