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
//! use coffer_seal::{BlobId, BucketId, SecretKey};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("keystore");
//! let root = FileRoot::new(folder.path().join("root.key"));
//! let keystore = Keystore::create(&path, Box::new(root.clone()))?;
//! let level = &keystore.levels()[0];
//! assert_eq!((level.name.as_str(), level.label.to_string().as_str()), ("default", "s0"));
//!
//! let bucket_key = keystore.add_bucket(BucketId([1; 16]), level.id)?;
//! let data_key = SecretKey::generate();
//! let wrapped = bucket_key.wrap(BlobId([2; 16]), &data_key);
//!
//! drop(keystore);
//! let (keystore, _repair) = Keystore::open(&path, Box::new(root))?;
//! let bucket_key = keystore.bucket_key(BucketId([1; 16]))?;
//! assert_eq!(bucket_key.unwrap(BlobId([2; 16]), bucket_key.generation(), &wrapped)?, data_key);
//! # Ok::<(), coffer_keys::KeysError>(())
//! ```

#![forbid(unsafe_code)]

pub mod limits;

mod freshness;
mod region_names;
mod stale_root;
mod token_setup;

mod error;

mod root;

mod keystore;

mod anchor;
mod key_folder;

mod folder_copy;

mod receipts;

mod exports;

#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod tests;

pub use anchor::{Anchor, AnchorFile};
pub use error::KeysError;
pub use exports::carried::{CarriedKeystore, SealedKeystore};
pub use exports::level::{ExportIdentity, ExportRecipient};
pub use exports::root_backup::{RootBackup, RootMark};
pub use exports::shared::{FoundIdentity, SealedIdentity, open_identity};
pub use freshness::{Held, HeldGeneration, Keeping, KeystoreRollback, Outside};
pub use key_folder::{KeyFolder, SourceSecrets};
pub use keystore::bucket_key::BucketKey;
pub use keystore::contents::{BucketEntry, LevelEntry, LevelOptions};
pub use keystore::copies::Repair;
pub use keystore::inspection::{CopyView, inspect_keystore};
pub use keystore::levels::{Erased, ErasedWhat};
pub use keystore::state::Keystore;
pub use receipts::issue::ReceiptDetails;
pub use receipts::receipt;
pub use region_names::is_region;
pub use root::file::FileRoot;
pub use root::keyring::KeyringRoot;
pub use root::memory::MemoryRoot;
pub use root::passphrase::PassphraseRoot;
pub use root::record::SourceRecord;
pub use root::source::{RootKey, RootMedium, RootSource, Sanitization};
pub use root::spec::{SourceSpec, TokenSpec};
pub use root::token::{TokenOptions, TokenRoot};
pub use stale_root::StaleRoot;
pub use token_setup::TokenSetupError;
