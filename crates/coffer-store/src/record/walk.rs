//! What a walk over all that a catalog holds meets.

use coffer_seal::UploadId;

use super::{Content, ObjectName, Part};

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
