//! Every limit of the S3 front door, in one list.

use std::time::Duration;

/// Bytes of an XML request body. The largest honest one names 10,000 parts with their checksums,
/// or 1,000 object names of 1,024 bytes that XML escapes sixfold.
pub const XML_BODY_MAX_BYTES: usize = 8 << 20;

/// Most rows of one listing (S3: 1,000).
pub const LIST_MAX: i32 = 1_000;

/// Most buckets of one page (S3: 10,000).
pub const BUCKETS_PAGE_MAX: i32 = 10_000;

/// User metadata, names and values together (S3: 2 KB).
pub const USER_METADATA_MAX_BYTES: usize = 2 << 10;

/// Tags of an object (S3).
pub const OBJECT_TAGS_MAX: usize = 10;

/// Tags of a bucket (S3).
pub const BUCKET_TAGS_MAX: usize = 50;

/// Characters of a tag's key (S3).
pub const TAG_KEY_MAX_CHARS: usize = 128;

/// Characters of a tag's value (S3).
pub const TAG_VALUE_MAX_CHARS: usize = 256;

/// Longest life of a presigned URL (S3: seven days).
pub const PRESIGNED_MAX_SECONDS: u64 = 7 * 24 * 3600;

/// How far a request's date may be from ours (S3: 15 minutes).
pub const CLOCK_SKEW_MAX_SECONDS: u32 = 15 * 60;

/// Bytes of one signed aws-chunked chunk: it is held in memory until its signature has been
/// checked. Clients send 8 KiB to 1 MiB.
pub const SIGNED_CHUNK_MAX_BYTES: u64 = 4 << 20;

/// Bytes of the line before an aws-chunked chunk: its length and signature.
pub const CHUNK_LINE_MAX_BYTES: usize = 1 << 10;

/// Bytes of a body that are read and dropped after an early answer, so that a client which sends
/// all before it reads gets to see the answer. More than that ends the connection.
pub const DRAIN_MAX_BYTES: u64 = 64 << 20;

/// How long such a body is read.
pub const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Longest level name that a `LocationConstraint` is looked up as.
pub const LOCATION_MAX_BYTES: usize = 256;
