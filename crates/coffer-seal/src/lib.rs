//! Cobblestone-256 sealing: whole, streamed and random access.
//!
//! Everything that coffer stores is one message of [C2SP chunked-encryption v1][spec] with
//! HKDF-Expand-SHA-512 and AES-256-GCM, which that specification calls Cobblestone-256:
//!
//! ```text
//! message = salt(24) || commitment(32) || chunk 0 || chunk 1 || … || last chunk
//! chunk   = ciphertext(16384) || tag(16)          last chunk: ciphertext(0..=16383) || tag(16)
//! ```
//!
//! The [`Context`] binds a message to the place where it belongs: moved elsewhere, it does not
//! open. Nothing is given out before its chunk's tag has been verified, and the commitment makes
//! sure that a message opens under one key only.
//!
//! ```
//! use coffer_seal::{Context, SecretKey, open, seal};
//!
//! let key = SecretKey::generate();
//! let here = Context::raw(*b"drawer 1");
//! let sealed = seal(&key, &here, b"the deeds of the house");
//! assert_eq!(*open(&key, &here, &sealed).unwrap(), b"the deeds of the house");
//!
//! let elsewhere = Context::raw(*b"drawer 2");
//! assert!(open(&key, &elsewhere, &sealed).is_err());
//! ```
//!
//! [spec]: https://c2sp.org/chunked-encryption

#![deny(unsafe_code)]

pub mod limits;

mod error;
mod key_memory;
mod layout;
mod secret;
mod zeroizing_heap;

mod ids;

mod context;
mod message_key;

mod opener;
mod sealer;

mod whole;
mod wrap;

#[doc(hidden)]
pub mod fuzzing;

#[cfg(test)]
mod vectors;

pub use context::{Context, KeyKind};
pub use error::{OpenError, SealError};
pub use ids::{
    BlobId, BucketId, IdText, KeystoreId, LevelId, RequestId, SubjectId, UploadId, id_text,
};
pub use key_memory::{KeyMemory, locked_memory};
pub use layout::{plaintext_bytes, sealed_bytes};
pub use opener::Opener;
pub use sealer::Sealer;
pub use secret::{SecretKey, random_bytes};
pub use whole::{open, seal};
pub use wrap::{unwrap_key, wrap_key};
pub use zeroizing_heap::{ZeroizingHeap, zeroize_buffer};
