//! The keystore: root-key sources, level and bucket keys.
//!
//! ```text
//! root key        from a root-key source; seals the keystore's body and wraps
//!  ├ system key   which keys the server's own database
//!  ├ receipt key  which signs receipts
//!  └ level keys   one a level and generation, each of which wraps
//!     └ bucket keys   one a bucket and generation, each of which wraps
//!        └ data keys   one a blob; kept in the bucket's catalog, not here
//! ```
//!
//! The keystore is one small file with two self-checking copies, changed in place: see
//! `docs/FORMAT.md`, "Keystore". Everything here blocks while it reads, writes and syncs; async
//! callers use a blocking task.
//!
//! ```
//! use coffer_keys::{FileRoot, Keystore};
//! use coffer_seal::SecretKey;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("keystore");
//! let root = FileRoot::new(folder.path().join("root.key"));
//! let keystore = Keystore::create(&path, Box::new(root.clone()))?;
//! let level = &keystore.levels()[0];
//! assert_eq!((level.name.as_str(), level.label.to_string().as_str()), ("default", "s0"));
//!
//! let bucket_key = keystore.add_bucket([1; 16], level.id)?;
//! let data_key = SecretKey::generate();
//! let wrapped = bucket_key.wrap(&[2; 16], &data_key);
//!
//! drop(keystore);
//! let (keystore, _repair) = Keystore::open(&path, Box::new(root))?;
//! let bucket_key = keystore.bucket_key(&[1; 16])?;
//! assert_eq!(bucket_key.unwrap(&[2; 16], bucket_key.generation(), &wrapped)?, data_key);
//! # Ok::<(), coffer_keys::KeysError>(())
//! ```

#![forbid(unsafe_code)]

pub mod limits;

mod clock;
mod held;

mod error;
mod region;

mod medium;
mod new_file;
mod root;
mod storage;

mod places;

mod root_file;

mod generation_file;

mod file_root;
mod keyring_root;
mod memory_root;
mod passphrase_root;
mod token_root;

mod source_spec;

mod source_record;

mod contents;

mod body;
mod slot;

mod copies;

mod bucket_key;

mod keystore;

mod holding;

mod anchor;

mod moving;

mod buckets;
mod levels;
mod rotation;

mod inspection;
mod key_folder;

pub mod receipt;

mod export;

mod receipts;

#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod failing_medium;
#[cfg(test)]
mod failing_source;

#[cfg(test)]
mod anchor_cuts;
#[cfg(test)]
mod move_cuts;
#[cfg(test)]
mod power_cuts;

pub use anchor::{Anchor, AnchorFile};
pub use bucket_key::BucketKey;
pub use clock::rfc3339;
pub use contents::{BucketEntry, LevelEntry, LevelOptions};
pub use copies::Repair;
pub use error::KeysError;
pub use export::{ExportIdentity, ExportRecipient};
pub use file_root::FileRoot;
pub use held::{Held, HeldGeneration, Keeping, KeystoreRollback, Outside};
pub use inspection::{CopyView, inspect_keystore};
pub use key_folder::{KeyFolder, SourceSecrets};
pub use keyring_root::KeyringRoot;
pub use keystore::Keystore;
pub use levels::{Erased, ErasedWhat};
pub use memory_root::MemoryRoot;
pub use passphrase_root::PassphraseRoot;
pub use receipts::ReceiptDetails;
pub use region::is_region;
pub use root::{RootKey, RootMedium, RootSource, Sanitization};
pub use source_record::SourceRecord;
pub use source_spec::{SourceSpec, TokenSpec};
pub use token_root::{TokenOptions, TokenRoot};
