//! Limits of sealed copies and standbys.

use std::time::Duration;

/// The most sealed copies at once.
pub const COPIES_MAX: usize = 4;

/// How often a standby looks for a new head.
pub const STANDBY_LOOKS_EVERY: Duration = Duration::from_secs(1);

/// How often the log of a standby says that it fails to follow.
pub const STANDBY_BEHIND_TOLD_EVERY: Duration = Duration::from_secs(60);

/// How long a standby that failed to follow waits at most before it tries again.
pub const STANDBY_RETRY_MAX: Duration = Duration::from_secs(10);

/// How often a standby looks for blobs that no object has any more.
pub const STANDBY_SWEEPS_EVERY: Duration = Duration::from_secs(600);

/// How often a standby whose disk is full looks through all buckets for what may go.
pub const STANDBY_ROOM_EVERY: Duration = Duration::from_secs(60);

/// So many states of a standby stay open for requests under way; beyond that the oldest is closed.
pub const STANDBY_STATES_MAX: usize = 16;

/// How often it is looked whether a state is in use.
pub const STANDBY_USE_LOOKS_EVERY: Duration = Duration::from_millis(100);

/// So often a keystore of a copy is looked for that its newest head names, or a newer.
pub const STANDBY_KEYSTORES_TRIED: usize = 4;

/// How often it is tried to note that another serves in this server's place.
pub const FENCE_NOTED_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether anything is to be copied.
pub const COPY_LOOKS_EVERY: Duration = Duration::from_secs(1);

/// How long a copy that failed waits before it is tried again; twice as long each time.
pub const COPY_RETRY_FIRST: Duration = Duration::from_secs(1);

/// An erase waits so long for copies to take the keystore without the keys that it destroyed; after
/// that its receipt calls them pending.
pub const COPY_KEYSTORE_WAIT: Duration = Duration::from_secs(10);

/// So long it is tried at once to remove older keystores from a copy: heads wait meanwhile.
pub const COPY_KEYSTORE_REMOVAL: Duration = Duration::from_secs(5);

/// How often an erase looks whether a copy has begun, within that time.
pub const COPY_BEGUN_LOOKS_EVERY: Duration = Duration::from_millis(100);

/// How long it may take to remove what is out of a copy's window after a round that failed.
pub const COPY_MAKE_ROOM: Duration = Duration::from_secs(10);

/// The same, where the copy's store has no room.
pub const COPY_MAKE_ROOM_WHEN_FULL: Duration = Duration::from_secs(600);

/// Where a store has no room, it is looked for what can be removed for this part of the time.
pub const COPY_MAKE_ROOM_PART: u32 = 20;

/// A head of which no answer came may come for so long: nothing is removed that it could name.
pub const COPY_DOUBT_TIME: Duration = Duration::from_secs(3_600);

/// How often what puts left that were ended is looked for in a copy in a folder.
pub const COPY_UNFINISHED_EVERY: Duration = Duration::from_secs(3_600);

/// So often a round puts buckets that were made since it looked, before it does so while none can
/// be made.
pub const COPY_NEW_BUCKETS_PASSES: usize = 16;

/// See [`COPY_RETRY_FIRST`]: but no longer than this.
pub const COPY_RETRY_MAX: Duration = Duration::from_secs(30);

/// So many buckets that a copy goes on without are named.
pub const COPY_PASSED_NAMED_MAX: usize = 10;

/// See [`COPY_RETRY_FIRST`]: but no longer than this where acknowledgements wait for the copy.
pub const COPY_SYNC_RETRY_MAX: Duration = Duration::from_secs(1);

/// How long a write waits for a synchronous copy before it is in doubt, where nothing is said.
pub const COPY_SYNC_WAIT: Duration = Duration::from_secs(10);

/// See [`COPY_SYNC_WAIT`]: but no longer than this.
pub const COPY_SYNC_WAIT_MAX: Duration = Duration::from_secs(600);

/// How often what no head names is removed from a copy; where its window is short, more often.
pub const COPY_SWEEPS_EVERY: Duration = Duration::from_secs(600);

/// See [`COPY_SWEEPS_EVERY`]: but no more often than this.
pub const COPY_SWEEPS_AT_MOST_EVERY: Duration = Duration::from_secs(5);

/// For how long is removed at once: meanwhile nothing new is put.
pub const COPY_SWEEP_TIME: Duration = Duration::from_secs(2);

/// How often it is looked whether a copy is there of which nothing changes.
pub const COPY_PROBES_EVERY: Duration = Duration::from_secs(10);

/// How long a copy keeps what was, where nothing is said: seven days, in milliseconds.
pub const COPY_KEEP_MS: i64 = 7 * 24 * 3_600 * 1_000;

/// The most blobs whose end is waited for; what is more stays until there is room.
pub const COPY_GONE_MAX: usize = 1_000_000;

/// After what time it is looked again whether the files of deleted objects are gone, in a round
/// that follows a failed one.
pub const COPY_GONE_LOOK: Duration = Duration::from_millis(100);

/// How many times that is looked at again in a round.
pub const COPY_GONE_LOOKS: u32 = 20;

/// The most blobs of a bucket that one check has put again.
pub const COPY_RENEWED_MAX: usize = 100_000;

/// How often a check looks whether a copy has taken up a rotation.
pub const COPY_ROTATED_LOOKS_EVERY: Duration = Duration::from_millis(500);

/// So often a check looks for that, for all buckets together.
pub const COPY_ROTATED_LOOKS: u32 = 20;

/// The most missing blobs of a bucket whose objects a restore names; of more, it says how many.
pub const RESTORE_NAMED_MAX: usize = 100_000;

/// How long a stop waits for the last round of copies.
pub const COPY_LAST_ROUND: Duration = Duration::from_secs(3);

/// Blobs that are put into a copy, or fetched from one, at once.
pub const COPY_BLOBS_AT_ONCE: usize = 4;

/// What a server remembers of copies that were removed.
pub const COPIES_REMEMBERED: usize = 256;

/// How long the lease of a gateway lasts that is not renewed.
pub const LEASE_LASTS: Duration = Duration::from_secs(5);

/// Its holder counts on so much less: clocks run at different speeds.
pub const LEASE_MARGIN: Duration = Duration::from_secs(1);

/// How often a lease is renewed.
pub const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(1);

/// A renewal that has no answer for so long is asked for once more beside that.
pub const LEASE_ASKED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// After what time a renewal that failed is tried again.
pub const LEASE_RETRIED_AFTER: Duration = Duration::from_millis(100);

/// How often a gateway looks at the lease of another.
pub const LEASE_LOOKS_EVERY: Duration = Duration::from_millis(500);

/// So long a lease is left to others by a gateway whose disk has no room for what is new.
pub const LEASE_HESITATES: Duration = Duration::from_secs(10);

/// How long a gateway that follows may answer reads, from when it was last told that it may.
pub const READS_LAST: Duration = Duration::from_secs(3);

/// It counts on so much less: clocks run at different speeds.
pub const READS_MARGIN: Duration = Duration::from_millis(500);

/// The most buckets of which a gateway that follows asks at once.
pub const READS_BUCKETS_MAX: usize = 1_000;

/// So many gateways that follow may answer reads at once.
pub const READS_FOLLOWERS_MAX: usize = 1_000;

/// What a gateway that follows is told stands for so long after: it answers by that without asking
/// again, and what is changed meanwhile is acknowledged after it.
pub const ANSWERS_STAND: Duration = Duration::from_millis(100);

/// Who was told counts on so much less: clocks run at different speeds.
pub const ANSWERS_STAND_MARGIN: Duration = Duration::from_millis(10);

/// Only what has not been changed for so long stands: the first change after it waits.
pub const ANSWERS_STAND_AFTER: Duration = Duration::from_secs(3);

/// Of so many buckets it is remembered what stands, and of more only as long as it does, or as they
/// were just changed.
pub const ANSWERS_STAND_BUCKETS: usize = 10_000;

/// How long a write waits for the log of an engine before it is in doubt.
pub const ENGINE_WRITE_WAIT: Duration = Duration::from_secs(20);

/// How long the log of an engine keeps what was: a day, in milliseconds.
pub const ENGINE_KEEP_MS: i64 = 24 * 3_600 * 1_000;

/// How often the log of an engine has a head at least that has all records before it in it.
pub const ENGINE_HEADS_EVERY: Duration = Duration::from_secs(10);

/// After so many records, or so many bytes of them, a head follows in any case.
pub const ENGINE_RECORDS_MAX: u64 = 256;

/// See [`ENGINE_RECORDS_MAX`].
pub const ENGINE_RECORDS_MAX_BYTES: u64 = 32 * 1_024 * 1_024;

/// Where so many times as many records, or bytes of them, are in no head, none is added: what waits
/// is answered by the head.
pub const ENGINE_RECORDS_BOUND: u64 = 4;

/// A record waits a quarter of the time that the one before it took, and this long at most, for as
/// many as waited for that one.
pub const ENGINE_GATHERS_MAX: Duration = Duration::from_millis(8);

/// So often a log is looked at whose keystore goes as it is read.
pub const BEGUN_LOG_LOOKS: usize = 4;

/// How often the first start of an engine looks whether its log is whole.
pub const ENGINE_FOUND_LOOKS_EVERY: Duration = Duration::from_millis(50);

/// How many buckets of a level an error names.
pub const BUCKETS_NAMED: usize = 10;
