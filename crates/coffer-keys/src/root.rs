//! The root key, and where it comes from.

use coffer_seal::SecretKey;

use crate::error::KeysError;

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

/// Where the root key comes from.
pub trait RootSource: Send + Sync {
    /// The root key that the source holds.
    ///
    /// # Errors
    ///
    /// [`KeysError::RootMissing`] when it holds none yet; others when it can't be had.
    fn load(&self) -> Result<RootKey, KeysError>;

    /// Makes a root key, durably, and gives it out.
    ///
    /// # Errors
    ///
    /// [`KeysError::RootExists`] when the source holds one already.
    fn create(&self) -> Result<RootKey, KeysError>;

    /// The source in a few words, for operators: never a secret.
    fn describe(&self) -> String;
}
