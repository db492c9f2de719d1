//! The root key, and where it comes from.

use std::path::Path;

use coffer_seal::{KeystoreId, SecretKey};
use serde::{Deserialize, Serialize};

use crate::error::KeysError;
use crate::freshness::{HeldGeneration, Keeping, Outside};

/// The key above all others: it seals the keystore's body and wraps the level keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootKey(SecretKey);

impl RootKey {
    /// A new root key from the system's CSPRNG.
    pub fn generate() -> Self {
        Self(SecretKey::generate())
    }

    /// The root key that a source unwrapped or read.
    pub fn from_secret(secret: SecretKey) -> Self {
        Self(secret)
    }

    /// The key itself, for a source that stores it.
    pub fn secret(&self) -> &SecretKey {
        &self.0
    }
}

/// Where a keystore's root key comes from, and where an old one goes.
///
/// A source belongs to one keystore. At rest it holds one root key. What was sealed under it is
/// erased by changing it: a new key is added beside it, the keystore is written anew under the new
/// one, and the old one is destroyed. Wherever that is interrupted, the keystore's newest copy
/// opens with one of the two, and opening the keystore destroys the other.
pub trait RootSource: Send + Sync {
    /// The root keys that the source holds: none before the first, two while the root key is being
    /// changed.
    ///
    /// # Errors
    ///
    /// When it holds something else, or can't be read.
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError>;

    /// Makes a root key beside the one that is there, if one is. It is durable when this returns.
    ///
    /// # Errors
    ///
    /// [`KeysError::RootUnsettled`] while there are two; others when it can't be made.
    fn add(&self) -> Result<RootKey, KeysError>;

    /// Destroys all root keys but `kept`, as far as the medium allows, and what an interrupted
    /// [`RootSource::add`] left behind. With nothing to destroy, nothing is written.
    ///
    /// # Errors
    ///
    /// [`KeysError::RootMissing`] when `kept` isn't there, and then nothing is destroyed; others
    /// when the rest can't be destroyed for sure. A call that failed is made good by another.
    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError>;

    /// The file that it keeps, if it keeps one.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// How it holds the keystore's generation.
    fn keeping(&self) -> Keeping {
        Keeping::Nowhere
    }

    /// What it holds of the generation of the keystore of this id, outside of the data folder.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    fn outside(&self, keystore_id: KeystoreId) -> Result<Outside, KeysError> {
        let _ = keystore_id;
        Ok(Outside::Nowhere)
    }

    /// Holds this generation in place of the one before, where it can. Durable when this returns.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    fn hold_outside(
        &self,
        keystore_id: KeystoreId,
        generation: HeldGeneration,
    ) -> Result<(), KeysError> {
        let _ = (keystore_id, generation);
        Ok(())
    }

    /// The source in a few words, for operators: never a secret.
    fn describe(&self) -> String;

    /// What destroying a root key here proves: for receipts.
    fn medium(&self) -> RootMedium;
}

/// What a receipt says of the medium that held a destroyed root key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootMedium {
    /// How NIST SP 800-88 rev. 1 would call it.
    pub category: Sanitization,
    /// What held it, such as a file on a kind of file system.
    pub holder: String,
    /// How it was destroyed.
    pub destruction: String,
    /// What that does not rule out.
    pub remaining: String,
}

/// How far the data can be recovered after a sanitization; NIST SP 800-88 rev. 1, section 2.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sanitization {
    /// Not by ordinary means: a laboratory, or a copy made before, may have more.
    Clear,
    /// Not by a laboratory either.
    Purge,
}
