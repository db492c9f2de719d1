//! Every limit of the client side.

use std::time::Duration;

/// How long it may take to reach a server over the network.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of one answer of the administration API.
pub const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of one line of an answer that comes as lines.
pub const LINE_BYTES: usize = 64 * 1024;

/// Bytes of one answer of S3 that is taken whole: 1,000 versions with the longest names, encoded.
pub const S3_ANSWER_BYTES: usize = 16 << 20;

/// Bytes of a path that the address of a socket holds (`sockaddr_un`, unix(7)).
pub const SOCKET_PATH_BYTES: usize = 107;

/// How long nothing may move on a connection to a data port.
pub const TRANSFER_STANDSTILL: Duration = Duration::from_secs(30);

/// Bytes that go on a connection to a data port by TLS before another takes its place: its keys are
/// not renewed, and AES-GCM is good for 2^24 records of at most 16 KiB (RFC 8446, section 5.5). One
/// transfer, of at most 5 GiB, still fits beside.
pub const TRANSFER_TLS_BYTES: u64 = 64 << 30;

/// How long a data port may take to say that it does not know a ticket.
pub const TRANSFER_CHECK: Duration = Duration::from_secs(5);

/// How long a server may take to say whether what it was sent is whole and durable.
pub const TRANSFER_VERDICT: Duration = Duration::from_secs(300);

/// How long a server may take to open what it stored as it came, beside the time below.
pub const VERDICT_WAIT: Duration = Duration::from_secs(600);

/// How many bytes it opens a second at least, while it opens nothing else.
pub const VERDICT_BYTES_A_SECOND: u64 = 32 << 20;

/// How long is waited before it is asked at first; each time twice.
pub const VERDICT_PAUSE_FIRST: Duration = Duration::from_millis(10);

/// How long is waited at most.
pub const VERDICT_PAUSE: Duration = Duration::from_secs(1);

/// How much older an object may be told to be than the request that stored it: times are told in
/// whole seconds.
pub const COMMIT_AGE_SLACK: Duration = Duration::from_secs(2);

/// Bytes up to which an object, or a part, has no sealed form.
pub const TRANSFER_SMALL_BYTES: u64 = 16 << 10;

/// How long a ticket is waited for where sealed transfer is demanded, and a server has none to
/// give: one that is not used is given back after a minute.
pub const TICKET_WAIT: Duration = Duration::from_secs(75);

/// How long until it is asked for again.
pub const TICKET_PAUSE: Duration = Duration::from_secs(1);

/// Bytes of an answer that offers a sealed transfer, or takes an announcement.
pub const TRANSFER_ANSWER_BYTES: usize = 256 * 1024;

/// Segments of one offer.
pub const TRANSFER_SEGMENTS: usize = 256;

/// Characters of a ticket: 32 bytes in Base64 for URLs, without padding.
pub const TRANSFER_TICKET_BYTES: usize = 43;

/// Bytes of a context. A blob's has 47.
pub const TRANSFER_CONTEXT_BYTES: usize = 1024;

/// Bytes of the head of an answer from a data port.
pub const TRANSFER_HEAD_BYTES: usize = 4096;

/// Headers of such an answer.
pub const TRANSFER_HEADERS: usize = 32;

/// Answers that are none yet (`1xx`) before one of them.
pub const TRANSFER_INTERIM_HEADS: usize = 8;

/// Chunks that are received and opened, or sealed and sent, at a time. Their 512 KiB, twice, stay
/// in a processor's second cache, and are few system calls.
pub const TRANSFER_BATCH_CHUNKS: usize = 32;

/// Levels of elements in XML that S3 answers.
pub const XML_DEPTH: usize = 16;

/// Elements of such a document: a list of 1,000 versions has some 15,000.
pub const XML_ELEMENTS: usize = 200_000;

/// Characters of a message of the server's that are told.
pub const S3_MESSAGE_CHARACTERS: usize = 500;

/// How often a request is sent again, unless told otherwise.
pub const S3_RETRIES: u32 = 8;

/// How often a server is asked again that has never answered, and refuses connections or whose
/// connections are reset: with the pauses below, for three to six seconds, in which one starts.
pub const S3_REFUSED_RETRIES: u32 = 5;

/// How long is waited for what was begun together with a file that failed as all of a folder would.
pub const OF_ALL_WAIT: Duration = Duration::from_secs(3);

/// How many files or names, one behind the other, find no room before no other is tried.
pub const ROOMLESS: usize = 16;

/// How long is waited before a request is sent again: at first up to so long, each time twice.
pub const S3_RETRY_FIRST: Duration = Duration::from_millis(200);

/// How long is waited at most, also where the server asks for more.
pub const S3_RETRY_LONGEST: Duration = Duration::from_secs(20);

/// How long nothing may move while a request or an answer is under way.
pub const S3_STANDSTILL: Duration = Duration::from_secs(60);

/// How long an answer may take that has been asked for: a server may copy, or sync, before.
pub const S3_ANSWER_WAIT: Duration = Duration::from_secs(600);

/// How long a connection waits for its next request.
pub const S3_IDLE: Duration = Duration::from_secs(30);

/// Bytes of a body that are given to a connection at a time.
pub const S3_SLICE_BYTES: usize = 256 * 1024;

/// Bytes of a part of an upload, and of a piece of what is fetched, where the file is not so long
/// that they have to be more: many go beside each other, and little is lost when one breaks off.
pub const PART_BYTES: u64 = 16 << 20;

/// Bytes of a part of a stream whose end is not known, at most: it is held in memory.
pub const PART_BYTES_MAX: u64 = 512 << 20;

/// Parts of an upload: S3's limit.
pub const PART_COUNT_MAX: u64 = 10_000;

/// Uploads of one file that are to be ended yet, and are noted.
pub const UPLOADS_TO_END: usize = 16;

/// Bytes of an object that is copied in one piece, and of a part that is copied: S3's limit.
pub const COPY_BYTES_MAX: u64 = 5 << 30;

/// Bytes of an object: what a file can hold, which the system counts with a sign.
pub const OBJECT_BYTES_MAX: u64 = i64::MAX as u64;

/// Pages of a list, one after the other, in which nothing is.
pub const EMPTY_PAGES: u32 = 1_000;

/// Pages of a list, one after the other, that name only what it had named before.
pub const PAGES_AGAIN: u32 = 1_000;

/// Names of a list, or marks of them, by which it is seen that they come again.
pub const PAGING_SAMPLE: usize = 10_000;

/// Parts of an object whose lengths are asked for one by one, where the server lists none.
pub const PART_HEADS_MAX: u32 = 1_000;

/// Bytes of a part that is copied.
pub const COPY_PART_BYTES: u64 = 1 << 30;

/// Links that a name leads over, one after the other: the system follows no more.
pub const LINKS_MAX: u32 = 40;

/// How often a journal is opened again that was removed while it was opened.
pub const JOURNAL_OPENS: u32 = 100;

/// Bytes of a journal: 10,000 pieces of some 200 bytes.
pub const JOURNAL_BYTES: u64 = 16 << 20;

/// Lines of the notes of a folder that is moved: two for each small file that is stored, else one,
/// of some 110 bytes each. What is beyond goes again after an interruption.
pub const FOLDER_NOTES: u64 = 10_000_000;

/// Bytes of such a line.
pub const FOLDER_NOTE_BYTES: u64 = 64 << 10;

/// Bytes that are gathered before they are written to a file.
pub const WRITE_BYTES: usize = 1 << 20;

/// Objects that are deleted with one request: S3's limit.
pub const DELETE_COUNT_MAX: usize = 1_000;

/// Names below a prefix that could not be deleted, and are known again: a list with more of them is
/// not asked for again.
pub const REMOVE_KEPT: usize = 1_000_000;

/// How often versions below a prefix are listed anew, and what is listed is deleted.
pub const REMOVE_ROUNDS: u32 = 1_000;

/// How long work that was told to stop may take to its next pause.
pub(crate) const REST_WAIT: Duration = Duration::from_secs(5);

/// How long, of that, the answer to the beginning of an upload may take, and that to its end.
pub(crate) const BEGIN_WAIT: Duration = Duration::from_secs(2);

/// How often it is looked whether it has stopped.
pub(crate) const REST_PAUSE: Duration = Duration::from_millis(5);

/// Versions of one name that a migration looks at, in memory.
pub const MIGRATE_VERSIONS: usize = 100_000;

/// Bytes of an object, or of a piece of one, up to which as many are in memory as are under way; of
/// longer ones, half as many.
pub const MIGRATE_SMALL_BYTES: u64 = 1 << 20;

/// What did not come of a migration, and is told once more at its end.
pub const MIGRATE_TOLD: usize = 1_000;

/// Bytes of a line of a ledger: the longest document of a setting, escaped, and what is said of it.
pub const LEDGER_LINE_BYTES: u64 = 2 * S3_ANSWER_BYTES as u64 + 4096;
