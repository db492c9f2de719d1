//! Sealed copies on any object store: what lies there, and how it is written, checked and read.
//!
//! A copy holds blobs as they are, segments of pages of catalogs as they are, pieces of small
//! files, and heads, each of which fixes all the rest. Nothing here opens data: the only key is the
//! *copy key*, under which heads and the tables of segments are sealed. See `docs/FORMAT.md`,
//! "Copies", and `docs/decisions/0053-the-sealed-log.md`.
//!
//! The order in which things are put is the caller's: what a head names must be there before it.

#![forbid(unsafe_code)]

pub mod limits;

mod names;

mod error;

mod digest;

mod place;

mod head;

mod segment;

mod store;

mod find;

mod write;

mod read;

mod sweep;

mod gone;

mod keystores;

pub use error::{ReplicaError, Result};
pub use gone::GoneList;
pub use head::record::{NewRecord, RecordedFiles, RecordedPages};
pub use head::{BucketState, Covers, Gap, Head, KeystoreRef, KnownHead, Piece, SegmentRef};
pub use keystores::{FoundKeystore, KeystoreWriter, newer_keystore, newest_keystore};
pub use names::{CopyId, RECORD};
pub use place::Place;
pub use read::{CopyReader, Moment, RestoredCatalog, WrongClock};
pub use store::blobs::{BlobPlace, StoredBlob};
pub use store::identity::IdentityPlace;
pub use store::lease::{FoundLease, Lease, LeasePlace};
pub use store::{Clock, Copy, CopyRecord, Store};
pub use sweep::Swept;
pub use write::{BlobCheck, BlobPut, CopyWriter, NewSegment, RecordWriter, WrittenEnd};

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests;
