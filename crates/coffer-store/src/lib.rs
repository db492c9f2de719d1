//! Sealed blobs and catalogs on disk.
//!
//! A bucket is a folder: `catalog.db`, a SQLCipher database with the names, descriptions, small
//! objects and wrapped data keys, and `blobs/`, in which every file is one Cobblestone-256 message.
//! This crate reads and writes both. It is handed keys call by call, decides nothing about who may
//! do what, and interprets none of the text that it stores.
//!
//! Everything that is acknowledged is durable: a blob is synced before a catalog row refers to it,
//! and a row is committed before its writer hears of it. So a blob that no row refers to is
//! garbage ([`BlobStore::sweep`] reclaims it), and a row without its blob can't happen.

#![deny(unsafe_code)]

pub mod limits;

mod admission;

mod error;

mod checksum;
mod encryption;

mod wrapped_key;

pub mod version;

pub mod lock;

mod verification;

pub mod record;

mod free_space;

mod database;

mod catalog;

mod blobs;

#[doc(hidden)]
pub mod fuzzing;

pub use admission::{Admission, Change, OverQuota, Settled};
pub use blobs::blob_tap::{BlobTap, Fresh};
pub use blobs::cache::source::{BlobSource, ComingBlob, Fetched, NotFetched};
pub use blobs::cache::{BlobCache, CacheStatus, UNFINISHED};
pub use blobs::copy::{BlobCopied, BlobCopies};
pub use blobs::folder::{BlobStore, ReadPin};
pub use blobs::in_flight::FinishedBlob;
pub use blobs::reader::BlobReader;
pub use blobs::sealed_segment::{SealedSegment, SegmentFile};
pub use blobs::sealed_writer::{Opening, SealedBlobWriter};
pub use blobs::sweep::Swept;
pub use blobs::writer::BlobWriter;
pub use catalog::copy::copy_file;
pub use catalog::counts::{Totals, commit_count_of};
pub use catalog::finished_uploads::FinishedUpload;
pub use catalog::objects::rename::{Judge, NotRenamed, Rename, RenameToken, Standing};
pub use catalog::objects::{DeleteOutcome, Deletion, PutOutcome};
pub use catalog::open::{CATALOG, CATALOG_FILE, Catalog};
pub use catalog::open_uploads::{EndedUploads, OpenUploads};
pub use catalog::rewrap::{HeldKey, KeyPlace};
pub use catalog::uploads::{AbortedUpload, CompletedUpload};
pub use catalog::verification::unverified::{BlobState, WaitingBlob};
pub use catalog::versions::aged::{AgedVersion, Retired, Retirement};
pub use catalog::versions::listing::{ListedVersion, VersionContent, VersionsPage, VersionsQuery};
pub use catalog::walk::ContentWalk;
pub use database::doubt::keep_in_doubt;
pub use database::gaps::ZeroizedGaps;
pub use database::log::LOG_DAMAGED;
pub use database::own_files::OwnFiles;
pub use database::page_tap::{PageTap, TakenPages};
pub use database::sealed::Database;
pub use database::stamps::Stamps;
pub use error::{Result, StoreError};
pub use free_space::room_bytes_at;
