//! Every limit of the S3 front door, in one list.

use std::time::Duration;

/// Bytes of a request's first line and headers. S3 allows 8 KiB of headers and 2 KiB of user
/// metadata; names and presigned URLs may each bring several kilobytes more, percent-encoded.
pub const HEAD_MAX_BYTES: usize = 32 << 10;

/// Bytes of what a client has sent that an error tells it in one element; what is longer is left
/// out. A name has 1,024.
pub const ECHO_MAX_BYTES: usize = 4 << 10;

/// The same of a text that was to be signed, which an error tells twice, once in hexadecimal.
pub const SIGNED_ECHO_MAX_BYTES: usize = 8 << 10;

/// Bytes of an XML request body. The longest honest one, but for parts, names to be deleted
/// and lifecycle rules, has 50 tags of 384 characters, each escaped in ten bytes at most.
pub const XML_BODY_MAX_BYTES: usize = 256 << 10;

/// Bytes of the XML that completes an upload: 10,000 parts with a checksum each, 370 bytes.
pub const PARTS_BODY_MAX_BYTES: usize = 4 << 20;

/// Bytes of the XML that names what is to be deleted: 1,000 names of 1,024 bytes, each of which XML
/// escapes in six bytes at most, and their elements.
pub const DELETE_BODY_MAX_BYTES: usize = 7 << 20;

/// Elements of an XML body that are one in another. S3's deepest document has eight.
pub const XML_DEPTH_MAX: usize = 32;

/// Attributes of one element of an XML body. S3 knows of two, declarations of namespaces included.
pub const XML_ATTRIBUTES_MAX: usize = 16;

/// Declarations of namespaces that hold in one place of an XML body. SDKs write two.
pub const XML_DECLARATIONS_MAX: usize = 16;

/// Elements in one element of an XML body: 1,000 objects of a deletion, or 1,000 rules, and one
/// more, which is told by who reads them.
pub const XML_CHILDREN_MAX: usize = 1_001;

/// Parts in the XML that completes an upload (S3: 10,000), and one more.
pub const XML_PARTS_MAX: usize = 10_001;

/// Elements of an XML body: 10,000 parts with a number, an entity tag and one checksum are 40,001,
/// and some clients write all checksums that there are, most of them empty.
pub const XML_ELEMENTS_MAX: usize = 128 << 10;

/// Bytes that an element of an XML body takes once it is read.
pub const XML_ELEMENT_BYTES: usize = 128;

/// Bytes of all XML bodies together that are held at once, as they came, as they were written anew
/// and as they are read, but for the first of each.
pub const XML_BODIES_MAX_BYTES: usize = 32 << 20;

/// Bytes of each XML body that take no room of the others: there are as many as requests.
pub const XML_BODY_FREE_BYTES: usize = 64 << 10;

/// Bytes of all answers together that are held at once, until their clients have read them, but for
/// the first of each. Only XML counts: objects are sent as they are read.
pub const ANSWERS_MAX_BYTES: usize = 32 << 20;

/// Bytes of each answer that take no room of the others: there are as many as requests.
pub const ANSWER_FREE_BYTES: usize = 64 << 10;

/// Bytes of a page of a listing as it is written: a page of longer names has fewer rows, which S3
/// allows. 1,000 names of 1,024 bytes, each of which XML writes as six, would have 6.6 MB.
pub const PAGE_MAX_BYTES: usize = 2 << 20;

/// Bytes of a listing's row besides its name. The longest, a version with its checksum, has 500.
pub const PAGE_ROW_BYTES: usize = 512;

/// The same while others take up more than half the room of answers: it takes none.
pub const SHORT_PAGE_BYTES: usize = 48 << 10;

/// Bytes of a row besides its name in the answer to a batch deletion: an error's code and message.
pub const DELETED_ROW_BYTES: usize = 256;

/// What arrives in smaller pieces is gathered: a piece costs some dozen bytes for itself.
pub const SMALL_PIECE_BYTES: usize = 4 << 10;

/// Bytes of small pieces that are gathered into one.
pub const GATHERED_BYTES: usize = 16 << 10;

/// Most rows of one listing (S3: 1,000).
pub const LIST_MAX: i32 = 1_000;

/// Most buckets of one page (S3: 10,000).
pub const BUCKETS_PAGE_MAX: i32 = 10_000;

/// `x-amz-website-redirect-location` (S3: 2 KB).
pub const REDIRECT_MAX_BYTES: usize = 2 << 10;

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

/// Bytes of the line before an aws-chunked chunk: its length and signature.
pub const CHUNK_LINE_MAX_BYTES: usize = 1 << 10;

/// Bytes of the trailers after the last chunk.
pub const TRAILERS_MAX_BYTES: usize = 16 << 10;

/// Bytes of a body that are read and dropped after an early answer, so that a client which sends
/// all before it reads gets to see the answer. More than that ends the connection.
pub const DRAIN_MAX_BYTES: u64 = 64 << 20;

/// How long such a body is read.
pub const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Longest level name that a `LocationConstraint` is looked up as.
pub const LOCATION_MAX_BYTES: usize = 256;

/// Random bytes that a thread makes at once, for the ids of 128 requests.
pub const RANDOM_BUFFER_BYTES: usize = 4 << 10;

/// Rules of a CORS configuration (S3: 100).
pub const CORS_RULES_MAX: usize = 100;

/// Origins, methods or headers of a CORS rule.
pub const CORS_RULE_NAMES_MAX: usize = 100;

/// Characters of a CORS rule's ID (S3: 255).
pub const CORS_ID_MAX_CHARS: usize = 255;

/// Bytes of a CORS configuration as it is kept (S3: 64 KB).
pub const CORS_MAX_BYTES: usize = 64 << 10;

/// Names in `Access-Control-Request-Headers`.
pub const CORS_ASKED_HEADERS_MAX: usize = 100;

/// Fields of a form before its file, as many as a request has headers (S3 counts bytes alone).
pub const FORM_FIELDS_MAX: usize = 256;

/// Bytes of names and values of the fields of a form before its file (S3: 20 KB).
pub const FORM_FIELDS_MAX_BYTES: usize = 20 << 10;

/// Bytes of a form before its file begins, with all that is no field; one piece more is read.
pub const FORM_START_MAX_BYTES: usize = 64 << 10;

/// Bytes of a chunk that is signed, unless it is the last (S3: 8 KiB).
pub const SIGNED_CHUNK_MIN_BYTES: u64 = 8 << 10;

/// Bytes of a client's token of a rename (S3: 64).
pub const CLIENT_TOKEN_MAX_BYTES: usize = 64;

/// Origins, methods and headers of all rules of a CORS configuration.
pub const CORS_NAMES_MAX: usize = 1_000;

/// Bytes of a lifecycle configuration, as it comes and as it is kept: 1,000 rules of a filter and
/// three actions have some 450 KB.
pub const LIFECYCLE_MAX_BYTES: usize = 1 << 20;
