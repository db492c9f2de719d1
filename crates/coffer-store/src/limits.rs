//! Every limit and size of the store, in one place.

use std::time::Duration;

/// The longest object name, in bytes of UTF-8 (Amazon S3, "Naming Amazon S3 objects").
pub const OBJECT_NAME_MAX_BYTES: usize = 1_024;

/// Objects up to this many bytes live in the catalog; larger ones are blobs.
pub const INLINE_MAX_BYTES: usize = 16 * 1_024;

/// The most rows a page of any listing holds.
pub const LIST_MAX: usize = 1_000;

/// The highest part number, and the most parts an object can have.
pub const PART_NUMBER_MAX: u32 = 10_000;

/// The most queued writes that one commit takes. Enough that the sync is a small share of each;
/// few enough that no one waits long behind others (64 × 16 KiB inline is 1 MiB to seal).
pub const BATCH_MAX: usize = 64;

/// Kept free of what adds data, in bytes, so that deletions always find room: a write-ahead log,
/// and what it brings to the database when it is copied.
pub const RESERVE_MAX_BYTES: u64 = 32 * 1_024 * 1_024;

/// But of a small disk no more than one part in so many.
pub const RESERVE_SHARE: u64 = 4;

/// A catalog with so many free pages takes new rows on a full disk, too: room for what one commit
/// may bring, 64 objects of 16 KiB.
pub const FREE_PAGES_MIN: u32 = 512;

/// How long a commit waits for those who were just answered to write again.
pub const LINGER_MAX: Duration = Duration::from_micros(1_000);

/// Connections that point reads of one catalog may use at once; opened on demand.
pub const POINT_READERS_MAX: usize = 4;

/// Connections that listings and other long reads of one catalog may use at once.
pub const LONG_READERS_MAX: usize = 2;

/// How long who opens a catalog waits for one that is being closed.
pub const HELD_WAIT_MAX: Duration = Duration::from_secs(30);

/// How often long reads are cut off until they have ended, when a catalog is given up.
pub const INTERRUPT_EVERY: Duration = Duration::from_millis(1);

/// Idle read connections that a catalog keeps.
pub const IDLE_READERS_MAX: usize = 4;

/// Page size of catalogs and other databases, in bytes. Part of the format.
pub const PAGE_BYTES: u32 = 4_096;

/// Of databases with so many pages or more the gaps of pages are not zeroized: numbers of pages
/// from 0x0200_0000 on can't be told from kinds of pages, and a transaction adds fewer than the
/// 2^20 pages (4 GiB) between.
pub const GAPS_PAGES_MAX: u32 = 0x0200_0000 - (1 << 20);

/// The most page cache that a connection keeps, in KiB.
pub const PAGE_CACHE_KIB: u32 = 8_192;

/// What all databases together may hold in memory, in bytes: beyond it they give up the pages that
/// were unused for longest, of whichever connection.
pub const DATABASE_MEMORY_BYTES: u32 = 64 * 1_024 * 1_024;

/// The write-ahead log is copied into the database after so many pages (16 MiB).
pub const CHECKPOINT_PAGES: u32 = 4_096;

/// A write-ahead log of so many pages (64 MiB) makes the writer wait until all of it is copied
/// and the log can begin anew, so that readers that never pause can't make it grow for ever.
pub const CHECKPOINT_FORCED_PAGES: u32 = 4 * CHECKPOINT_PAGES;

/// How long after something was removed the write-ahead log is emptied, which may show it still.
pub const TIDY_AFTER: Duration = Duration::from_secs(5);

/// How long who asks whether something in doubt stands waits for others that find it out.
pub const SETTLE_WAIT: Duration = Duration::from_secs(1);

/// How long to wait for the next attempt when readers prevented it.
pub const TIDY_AGAIN: Duration = Duration::from_secs(1);

/// How long an attempt waits for readers, in milliseconds: writers wait with it.
pub const TIDY_BUSY_MS: u64 = 20;

/// The most data keys that are rewrapped in one go: less than a millisecond of work, so that
/// readers wait meanwhile no longer than that.
pub const REWRAP_MAX: usize = 64;

/// How long is waited between as many replaced keys and the next.
pub const REPLACE_REST: Duration = Duration::from_millis(5);

/// What a write-ahead log keeps of its file when it begins anew, in bytes: overwriting blocks that
/// are there is cheaper than new ones.
pub const JOURNAL_KEPT_BYTES: u64 = 24 * 1_024 * 1_024;

/// How much of a log is read and written again at once, in bytes.
pub const LOG_PIECE_BYTES: usize = 256 * 1_024;

/// Pages whose seals are verified in one go, before it is looked whether the catalog is closed.
pub const SEALS_AT_ONCE: u32 = 64;

/// How often a page whose seal does not verify is looked at again before it counts as damaged.
pub const INTEGRITY_RETRIES: usize = 2;

/// How long to wait before that, for a writer that may be at the page.
pub const INTEGRITY_PAUSE: Duration = Duration::from_millis(100);

/// How long a connection waits for another process or connection to let go of a database.
pub const BUSY_TIMEOUT_MS: u64 = 5_000;

/// Prepared statements that a connection keeps.
pub const STATEMENT_CACHE: usize = 64;

/// What a blob writer writes to its file at once, in bytes. A power of two, so that each write
/// fills whole pages, of the largest kind that the file system has: others cost up to 0.1 CPU
/// seconds a gigabyte more.
pub const WRITE_BYTES: usize = 256 * 1_024;

/// The same when many blobs are being written: 100 writers then hold 14 MiB, also while they wait
/// for the disk.
pub const WRITE_BYTES_MANY: usize = 128 * 1_024;

/// Space on the disk that a blob's file is given at once, ahead of its bytes. More saves nothing
/// more; what was given and not filled is given back.
pub const SPACE_AHEAD_BYTES: u64 = 1 << 20;

/// What a thread's pipe holds that bytes go through on their way from sockets to files, in bytes:
/// as much as an unprivileged process may ask for.
pub const PIPE_BYTES: usize = 1 << 20;

/// From so many writers on, each that begins writes less at once, and none fills a second buffer
/// while the first waits for the disk.
pub const WRITERS_MANY: usize = 32;

/// A write to a file that takes so long, in milliseconds, was made to wait by the kernel: longer
/// than a busy machine keeps a thread from running, shorter than its pauses for dirty pages.
pub const STALL_MS: u64 = 20;

/// How long, in milliseconds, writes are handed to other threads after one that waited.
pub const STALL_REMEMBERED_MS: u64 = 10_000;

/// Opened chunks that a blob reader gives out at once.
pub const READ_CHUNKS: usize = 16;

/// Opened chunks at once when many blobs are being read.
pub const READ_CHUNKS_MANY: usize = 4;

/// From so many readers of blobs on, each gives out less at once.
pub const READERS_MANY: usize = 32;

/// Sealed chunks that are read at once and opened while they are in the processor's cache.
pub const SCRATCH_CHUNKS: usize = 4;

/// So far apart, in bytes, it is looked whether sealed chunks are in the page cache.
pub const PROBE_BYTES: usize = 64 * 1_024;

/// Free buffers of each size kept for the next reader or writer, in bytes.
pub const POOL_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// Ids that a walk over a catalog takes at once.
pub const WALK_PAGE: usize = 1_000;

/// How long it is remembered what was answered when an upload was completed (S3: a day).
pub const FINISHED_KEPT_MS: i64 = 24 * 3_600 * 1_000;

/// What is copied of a file into a backup before it is looked whether that is over, in bytes.
pub const COPY_PIECE_BYTES: u64 = 8 * 1_024 * 1_024;

/// How often a copy of a catalog that waits for its log looks whether that is in doubt.
pub const COPY_LOOK: Duration = Duration::from_millis(100);

/// Uploads that are ended in one transaction.
pub const END_UPLOADS_AT_ONCE: i64 = 64;

/// How many blobs they have together, before the next that has more; one alone may have 10,000.
pub const END_UPLOADS_BLOBS: usize = 1_000;

/// A transaction that ends versions ends no more once it has freed so many blobs.
pub const RETIRED_BLOBS: usize = 1_000;

/// Blobs that are fetched into a cache at once.
pub const CACHE_FETCHES_MAX: usize = 32;

/// Who reads so many bytes ahead of what has come of a blob reads from its source.
pub const CACHE_AHEAD_BYTES: u64 = 64 * 1_024 * 1_024;

/// What of a blob that is fetched is in memory before it is written, in bytes.
pub const CACHE_WRITE_BYTES: usize = 256 * 1_024;

/// A cache leaves so many bytes of its disk free, beside what is kept for deletions: catalogs need
/// room as well.
pub const CACHE_SPARE_BYTES: u64 = 16 * 1_024 * 1_024;

/// New blobs of a bucket that are remembered for one who copies it; of more the catalog tells.
pub const TAPPED_BLOBS_MAX: usize = 65_536;
