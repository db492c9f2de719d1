//! Limits of the gateways of an engine.

use std::time::Duration;

/// How long it may take to reach the gateway of an engine that serves.
pub const GATEWAY_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// After how long a connection between gateways over which nothing comes is asked by the kernel
/// whether the other end is there. What asks over it may wait long for a store that is slow.
pub const GATEWAY_ASKED_AFTER_SECONDS: u32 = 10;

/// How often it is asked again.
pub const GATEWAY_ASKED_EVERY_SECONDS: u32 = 5;

/// So many times without an answer end it.
pub const GATEWAY_ASKED_TIMES: u32 = 4;

/// How long a gateway waits to hear which one serves, while that changes.
pub const GATEWAY_TURN_WAIT: Duration = Duration::from_secs(12);

/// How often a gateway that follows asks whether it may go on to answer reads, where none asks for
/// anything.
pub const READS_RENEWED_EVERY: Duration = Duration::from_millis(500);

/// How often it asks about what is being read and stands for a moment, so that no read waits for
/// the answer.
pub const READS_STANDING_RENEWED_EVERY: Duration = Duration::from_millis(40);

/// How often it asks while it may not, and looks whether what it answers may still be.
pub const READS_SETTLED_EVERY: Duration = Duration::from_millis(100);

/// It asks no more often than this: reads that come meanwhile share a question.
pub const READS_ASKED_EVERY: Duration = Duration::from_millis(1);

/// A gateway whose state is behind has the store looked at no more often than this.
pub const READS_LOOKED_FOR_EVERY: Duration = Duration::from_millis(250);

/// How long a read waits for the answer; after that it is forwarded.
pub const READS_ANSWER_WAIT: Duration = Duration::from_secs(1);

/// So many reads wait for an answer at once; more are forwarded. No question names more buckets.
pub const READS_WAITING_MAX: usize = 1_000;

/// The longest question, or answer, in bytes.
pub const READS_ANSWER_MAX_BYTES: usize = 256 * 1_024;

/// How long a connection between gateways stays open that is not used.
pub const GATEWAY_IDLE: Duration = Duration::from_secs(20);

/// How many such connections stay open at most.
pub const GATEWAY_IDLE_CONNECTIONS: usize = 128;

/// How much of the blobs a gateway keeps on its disk where nothing is said, in bytes.
pub const CACHE_BYTES_DEFAULT: u64 = 10_000_000_000;

/// How often a gateway looks whether its cache is within its bounds.
pub const CACHE_TENDED_EVERY: Duration = Duration::from_secs(1);

/// How often a gateway that serves looks whether its disk lets it.
pub const GATEWAY_DISK_LOOKS_EVERY: Duration = Duration::from_secs(1);

/// A gateway that serves, and whose disk keeps it from taking what is new for so long, leaves
/// serving to another.
pub const GATEWAY_UNFIT_AFTER: Duration = Duration::from_secs(5);

/// It does so no more often than this: the next may be no better.
pub const GATEWAY_LEAVES_EVERY: Duration = Duration::from_secs(600);

/// How long requests may go on of a gateway that stops serving, or following.
pub const GATEWAY_PATIENCE: Duration = Duration::from_millis(500);

/// How long a gateway waits before it tries again to take its place.
pub const GATEWAY_RETRY: Duration = Duration::from_millis(500);

/// How often a gateway of an engine that has ended tries to take its log over, and says that it
/// can't.
pub const ENDED_ENGINE_LOOKS_EVERY: Duration = Duration::from_secs(60);

/// How often the log of a gateway says that its disk has no room for what is new.
pub const GATEWAY_FULL_TOLD_EVERY: Duration = Duration::from_mins(5);

/// How often the log of a gateway says that it takes no part, or can't take the log over.
pub const GATEWAY_FAILURES_TOLD_EVERY: Duration = Duration::from_secs(60);

/// See [`GATEWAY_RETRY`]: twice as long each time, but no longer than this.
pub const GATEWAY_RETRY_MAX: Duration = Duration::from_secs(10);
