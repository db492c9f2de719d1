//! What front doors ask of the vault, and what it answers.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;

use bytes::Bytes;
use coffer_label::Label;
use coffer_store::Totals;
use coffer_store::record::{
    Checksum, ChecksumAlgorithm, ChecksumKind, Details, Id, ObjectHead, ObjectName, Part,
    Precondition, Tags, Upload,
};
use futures::Stream;

use crate::error::{BodyError, Result};
use crate::name::BucketName;

/// The bytes of an upload, as they arrive.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;

/// Which digests to form while the bytes pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestPlan {
    /// The checksum that the client chose, to be stored with the object. Where it chose none, leave
    /// `None`: the vault forms what the multipart upload announced, else CRC-64/NVME as S3 does.
    pub checksum: Option<ChecksumAlgorithm>,
    /// MD5, for a `Content-MD5` header.
    pub md5: bool,
}

/// The digests of the bytes that were received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// The checksum that was planned or chosen by the vault, over all bytes.
    pub checksum: Option<Checksum>,
    /// MD5.
    pub md5: Option<[u8; 16]>,
}

/// Compares the digests with what headers and trailers say: called once the body has ended and
/// before anything is committed. An error undoes the upload.
pub type CheckDigests = Box<dyn FnOnce(&Digests) -> Result<()> + Send>;

/// Bytes on their way in.
pub struct Incoming {
    /// How many there will be, where the client said so.
    pub declared_bytes: Option<u64>,
    /// What to compute over them.
    pub digests: DigestPlan,
    /// The bytes.
    pub body: Body,
    /// What to compare at the end.
    pub check: CheckDigests,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("declared_bytes", &self.declared_bytes)
            .field("digests", &self.digests)
            .finish_non_exhaustive()
    }
}

/// An object to be put.
#[derive(Debug)]
pub struct PutObject {
    /// Its name.
    pub name: ObjectName,
    /// Its description; the checksum in it is filled in by the vault.
    pub details: Details,
    /// Its tags.
    pub tags: Tags,
    /// What must be true of the object that is there now.
    pub precondition: Precondition,
    /// Its bytes.
    pub incoming: Incoming,
}

/// A part to be put.
#[derive(Debug)]
pub struct PutPart {
    /// The name that its upload was begun for.
    pub name: ObjectName,
    /// Its upload.
    pub upload: Id,
    /// Its number, 1 to 10,000.
    pub number: u32,
    /// Its bytes.
    pub incoming: Incoming,
}

/// What was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Entity tag, without quotation marks.
    pub etag: String,
    /// Checksum.
    pub checksum: Option<Checksum>,
    /// When, in milliseconds since 1970.
    pub modified_ms: i64,
    /// How many bytes.
    pub size_bytes: u64,
    /// Name of the level whose key seals it.
    pub level: String,
}

/// Entity tags to match, without quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtagMatch {
    /// `*`: whatever is there.
    Any,
    /// One of these.
    OneOf(Vec<String>),
}

impl EtagMatch {
    /// Whether `etag` is matched.
    pub fn matches(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(etags) => etags.iter().any(|one| one == etag),
        }
    }
}

/// Conditions on a read (RFC 9110, section 13).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`.
    pub if_match: Option<EtagMatch>,
    /// `If-None-Match`.
    pub if_none_match: Option<EtagMatch>,
    /// `If-Modified-Since`, in milliseconds since 1970.
    pub if_modified_since_ms: Option<i64>,
    /// `If-Unmodified-Since`, in milliseconds since 1970.
    pub if_unmodified_since_ms: Option<i64>,
}

/// Which bytes to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeRequest {
    /// All.
    #[default]
    All,
    /// From an offset to another (inclusive) or the end.
    FromTo {
        /// First byte.
        first: u64,
        /// Last byte.
        last: Option<u64>,
    },
    /// So many at the end.
    Suffix {
        /// How many.
        length_bytes: u64,
    },
    /// One part of a multipart object; part 1 of any other is the whole.
    Part(u32),
}

/// How to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Only if.
    pub conditions: Conditions,
    /// Which bytes.
    pub range: RangeRequest,
}

/// An object that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its description.
    pub head: ObjectHead,
    /// The bytes that the request selected.
    pub range: Range<u64>,
    /// Name of the level whose key seals it.
    pub level: String,
}

/// An object to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// Its bucket.
    pub bucket: BucketName,
    /// Its name.
    pub name: ObjectName,
    /// Only if.
    pub conditions: Conditions,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTarget {
    /// Its new name.
    pub name: ObjectName,
    /// A new description, or the source's.
    pub details: Option<Details>,
    /// New tags, or the source's.
    pub tags: Option<Tags>,
    /// A new checksum, or the source's algorithm.
    pub checksum: Option<ChecksumAlgorithm>,
    /// What must be true of the object that is there now.
    pub precondition: Precondition,
}

/// A part to be copied from an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPart {
    /// The name that the upload was begun for.
    pub name: ObjectName,
    /// The upload.
    pub upload: Id,
    /// The part's number, 1 to 10,000.
    pub number: u32,
    /// Which bytes of the source.
    pub range: RangeRequest,
}

/// A multipart upload to be begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUpload {
    /// The name that the object will have.
    pub name: ObjectName,
    /// Description of the object to be.
    pub details: Details,
    /// Tags of the object to be.
    pub tags: Tags,
    /// The checksum that the client announced; `None` becomes full-object CRC-64/NVME.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
}

/// A multipart upload that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedUpload {
    /// Its id.
    pub id: Id,
    /// Name of the level whose key will seal its parts.
    pub level: String,
}

/// A part as the completion names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedPart {
    /// Its number.
    pub number: u32,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// Its checksum's value, where the client sent one.
    pub checksum: Option<String>,
}

/// A multipart upload to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteUpload {
    /// The name that it was begun for.
    pub name: ObjectName,
    /// The upload.
    pub upload: Id,
    /// Its parts.
    pub parts: Vec<CompletedPart>,
    /// The whole object's checksum as the client has it (composite: with or without `-PARTS`).
    pub checksum: Option<String>,
    /// The whole object's length as the client has it.
    pub size_bytes: Option<u64>,
    /// What must be true of the object that is there now.
    pub precondition: Precondition,
}

/// A page of an upload's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartsPage {
    /// The upload.
    pub upload: Upload,
    /// Its parts, by number.
    pub parts: Vec<Part>,
    /// The last number of this page, when there are more.
    pub next: Option<u32>,
    /// Name of the level whose key seals them.
    pub level: String,
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketInfo {
    /// Its name.
    pub name: BucketName,
    /// Its id.
    pub id: Id,
    /// Name of its level.
    pub level: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
}

/// A bucket as those see it who look after the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSummary {
    /// The bucket.
    pub bucket: BucketInfo,
    /// Label of its level.
    pub label: Label,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// The generation before, while it is being rotated.
    pub older_generation: Option<u32>,
    /// How much it holds, where that is known without opening it.
    pub totals: Option<Totals>,
}

/// How entity tags are formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EtagStyle {
    /// The MD5 of the content where the client sent it; otherwise 32 random hexadecimal digits and
    /// `-1`, which no client takes for an MD5.
    #[default]
    Random,
    /// The MD5 of the content always, at its cost.
    Md5,
}

/// How deep a verification looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Every page of every catalog, every chunk of every blob.
    #[default]
    Everything,
    /// That each blob begins with the commitment to its key, and has its length: a blob's bytes
    /// count as checked then, though only its header was read.
    Commitments,
}

/// What `verify` reports as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyEvent {
    /// So much has been checked.
    Progress {
        /// Blobs and small objects opened so far.
        checked_count: u64,
        /// Bytes of plaintext opened so far.
        checked_bytes: u64,
        /// Bytes of plaintext there are, as the catalogs tell.
        total_bytes: u64,
    },
    /// This does not open.
    Damage {
        /// In which bucket; none where it is `system.db`.
        bucket: Option<BucketName>,
        /// Which object or upload; none where it is the catalog itself.
        name: Option<ObjectName>,
        /// What is damaged, in a few words.
        what: String,
    },
    /// The walk is over.
    Done {
        /// Blobs and small objects opened.
        checked_count: u64,
        /// Bytes of plaintext opened.
        checked_bytes: u64,
        /// How much damage was reported.
        damage_count: u64,
    },
}
