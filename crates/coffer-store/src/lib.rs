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
pub mod record;

mod error;

mod cipher;
mod frames;

mod log;

mod database;
mod doubt;
mod space;

mod opener;
mod session;

mod readers;

mod queued;

mod batch;

mod codec;

mod tables;

mod catalog;
mod counts;
mod folding;
mod rows;

mod objects;

mod finished;
mod listing;
mod reading;
mod rewrapping;
mod seals;
mod tags;
mod uploads;
mod walk;

mod blob_path;
mod buffers;
mod pins;

mod blobs;

mod stalls;

mod blob_source;

mod blob_reader;
mod blob_writer;
mod sweep;

#[doc(hidden)]
pub mod fuzzing;

pub use blob_reader::BlobReader;
pub use blob_writer::{BlobWriter, FinishedBlob};
pub use blobs::{BlobStore, ReadPin};
pub use catalog::{CATALOG, CATALOG_FILE, Catalog};
pub use counts::{Totals, commit_count_of};
pub use database::Database;
pub use doubt::keep_in_doubt;
pub use error::{Result, StoreError};
pub use finished::FinishedUpload;
pub use objects::{DeleteOutcome, PutOutcome};
pub use rewrapping::{HeldKey, KeyPlace};
pub use sweep::Swept;
