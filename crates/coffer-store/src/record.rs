//! What a catalog holds: the plain records that go in and come out.
//!
//! The store interprets none of the text in here; the vault and the front doors give it meaning.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use coffer_seal::{BlobId, UploadId};
use serde::{Deserialize, Serialize};

pub use crate::checksum::{Checksum, ChecksumAlgorithm, ChecksumKind};
pub use crate::encryption::Encryption;
use crate::limits::OBJECT_NAME_MAX_BYTES;
use crate::lock::Lock;
use crate::version::VersionId;

pub use crate::verification::Verification;
pub use crate::wrapped_key::{WRAPPED_KEY_BYTES, WRAPPED_TWICE_BYTES, WrappedKey};

/// An object's name: 1 to 1,024 bytes of UTF-8. As secret as the object, so it has no `Display`
/// and its `Debug` says only how long it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName(String);

impl ObjectName {
    /// Takes any non-empty text of at most 1,024 bytes.
    pub fn new(name: impl Into<String>) -> Option<Self> {
        let name = name.into();
        (!name.is_empty() && name.len() <= OBJECT_NAME_MAX_BYTES).then_some(Self(name))
    }

    /// The text itself: for the catalog and for answers to those who may see it, never for a log.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectName({} bytes)", self.0.len())
    }
}

/// The headers that S3 stores with an object and returns with it, as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContentHeaders {
    /// `Cache-Control`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    /// `Content-Disposition`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    /// `Content-Encoding`, without `aws-chunked`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    /// `Content-Type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// `Expires`, as an HTTP date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// What describes an object besides its name, size and time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Details {
    /// Content headers.
    pub headers: ContentHeaders,
    /// User metadata: names in lower case without `x-amz-meta-`, and their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub user_metadata: BTreeMap<String, String>,
    /// The object's checksum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksum: Option<Checksum>,
    /// How it is said to be encrypted.
    #[serde(skip_serializing_if = "Encryption::is_default")]
    pub encryption: Encryption,
    /// `x-amz-website-redirect-location`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
}

/// Whose an object is and who else may use it, as text that the vault gives a meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Who owns it; none: who owns the bucket.
    pub owner: Option<String>,
    /// Its access control list; none: it grants nothing to others.
    pub acl: Option<String>,
}

/// Tags in the order in which they came: key and value.
pub type Tags = Vec<(String, String)>;

/// A blob as the catalog knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Its id, which gives its file and its context.
    pub id: BlobId,
    /// How many bytes of plaintext it holds.
    pub plaintext_bytes: u64,
    /// Generation of the bucket key that wrapped its data key.
    pub key_generation: u32,
    /// Its data key, wrapped.
    pub wrapped_key: WrappedKey,
    /// Checksum of this part, where it is part of a multipart object and has one.
    pub checksum: Option<Checksum>,
}

/// Where an object's bytes are, when it is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewContent {
    /// In the catalog: at most `limits::INLINE_MAX_BYTES`.
    Inline(Bytes),
    /// In one blob.
    Blob(BlobRef),
}

/// An object to be put under a name.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// Its name.
    pub name: ObjectName,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its description.
    pub details: Details,
    /// Its tags.
    pub tags: Tags,
    /// What keeps it from being deleted.
    pub lock: Lock,
    /// Whose it is, and who else may use it.
    pub access: Access,
    /// Its bytes.
    pub content: NewContent,
}

/// What is known of an object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectHead {
    /// Length of its content.
    pub size_bytes: u64,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its description.
    pub details: Details,
    /// How many parts it was uploaded in; 0 where it came in one piece.
    pub part_count: u32,
    /// How many tags it has.
    pub tag_count: u32,
    /// Its tags.
    pub tags: Tags,
    /// What this version is called.
    pub version: VersionId,
    /// What keeps it from being deleted.
    pub lock: Lock,
    /// Whose it is, and who else may use it.
    pub access: Access,
}

/// The bytes of an object, or what covers the range that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// All bytes of a small object.
    Inline(Bytes),
    /// The blobs that overlap the range, in order.
    Blobs {
        /// Where in the object the first of them begins.
        first_offset_bytes: u64,
        /// The blobs.
        blobs: Vec<BlobRef>,
    },
}

impl Content {
    /// The blobs; none of a small object.
    pub fn blobs(&self) -> &[BlobRef] {
        match self {
            Self::Inline(_) => &[],
            Self::Blobs { blobs, .. } => blobs,
        }
    }
}

/// What a write requires of the object that is there now; checked in the same transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    None,
    /// There is no object of this name (`If-None-Match: *`).
    Absent,
    /// There is an object of this name (`If-Match: *`).
    Present,
    /// There is one with this entity tag (`If-Match`).
    Etag(String),
}

/// What a deletion requires of the object that is there now, if there is one; checked in the same
/// transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnlyIf {
    /// That it was made in this second since 1970.
    pub modified_s: Option<i64>,
    /// That it is so long.
    pub size_bytes: Option<u64>,
}

impl OnlyIf {
    /// Whether it requires nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// One row of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name.
    pub name: ObjectName,
    /// Length of its content.
    pub size_bytes: u64,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its checksum's algorithm and kind.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
    /// Who owns it; none: who owns the bucket.
    pub owner: Option<String>,
}

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Only names that begin so.
    pub prefix: String,
    /// Names that share the text up to this delimiter, after the prefix, fold into one prefix.
    pub delimiter: Option<String>,
    /// Only names (and folded prefixes) after this one, in the order of their bytes.
    pub start_after: Option<String>,
    /// At most so many objects and prefixes together.
    pub limit: usize,
}

/// A page of a listing. Objects and prefixes are each in the order of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// Objects.
    pub objects: Vec<ListedObject>,
    /// Common prefixes.
    pub prefixes: Vec<String>,
    /// Where to go on (a `start_after`), when there is more: the last name or prefix of this page.
    pub next: Option<String>,
}

/// A multipart upload under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Its id.
    pub id: UploadId,
    /// The name that the object will have.
    pub name: ObjectName,
    /// When it began, in milliseconds since 1970.
    pub started_ms: i64,
    /// Description of the object to be; no checksum yet.
    pub details: Details,
    /// The checksum that the client announced for the object and how it is to be formed.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
    /// Tags of the object to be.
    pub tags: Tags,
    /// What keeps it from being deleted.
    pub lock: Lock,
    /// Whose the object is to be and who else may use it, as text that the vault gives a meaning.
    pub acl: Option<String>,
    /// Who began it, where that is known: whose it counts as.
    pub made_by: Option<String>,
}

/// A part of a multipart upload, as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its number, 1 to 10,000.
    pub number: u32,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// When it was received, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its bytes, and its checksum.
    pub blob: BlobRef,
}

/// What a completed multipart upload becomes.
#[derive(Clone, Debug)]
pub struct CompletedObject {
    /// The name that the upload was begun for.
    pub name: ObjectName,
    /// The object's entity tag, without quotation marks.
    pub etag: String,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Its description.
    pub details: Details,
    /// Its tags.
    pub tags: Tags,
    /// What keeps it from being deleted.
    pub lock: Lock,
    /// Whose it is, and who else may use it.
    pub access: Access,
    /// Its parts in ascending order: number, and the blob that was stored under it when the
    /// completion was checked. Another blob there by now is `StoreError::PartChanged`.
    pub parts: Vec<(u32, BlobId)>,
    /// Digest of what the client asked for, to know it by when it asks again.
    pub request: [u8; 32],
}

/// A part of an object that was uploaded in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPart {
    /// Its number.
    pub number: u32,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// Its checksum, by the object's algorithm.
    pub checksum: Option<Checksum>,
}

/// Which uploads to list: in the order of their names, then ids.
#[derive(Clone, Debug, Default)]
pub struct UploadsQuery {
    /// Only names that begin so.
    pub prefix: String,
    /// Names that share the text up to this delimiter, after the prefix, fold into one prefix.
    pub delimiter: Option<String>,
    /// Only after this name, or after this upload of this name.
    pub start_after: Option<(String, Option<UploadId>)>,
    /// At most so many uploads and prefixes together.
    pub limit: usize,
}

/// A page of uploads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadsPage {
    /// Uploads.
    pub uploads: Vec<Upload>,
    /// Common prefixes.
    pub prefixes: Vec<String>,
    /// Where to go on (a `start_after`), when there is more.
    pub next: Option<(String, Option<UploadId>)>,
}

/// An object, or an older version of one, met on a walk over all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedObject {
    /// Where on the walk it was met.
    pub place: WalkPlace,
    /// Length of its content.
    pub size_bytes: u64,
    /// All of its bytes, or all of its blobs.
    pub content: Content,
}

/// Where a walk over all objects is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkPlace {
    /// The object's name.
    pub name: ObjectName,
    /// The number of its content in the catalog.
    pub id: i64,
    /// Whether there is a newer version of it, or a delete marker.
    pub is_older: bool,
}

/// A part of an upload under way, met on a walk over all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedPart {
    /// Of which upload.
    pub upload_id: UploadId,
    /// The name that the object will have.
    pub name: ObjectName,
    /// The part.
    pub part: Part,
}
