//! The identity that opens an engine's keystore, sealed to lie in the engine's store: what
//! `docs/FORMAT.md`, "Sealed copies", calls the identity of an engine.
//!
//! All gateways of an engine have one identity of age. Here it comes from what they share besides
//! the store: a passphrase, which seals it as `age --passphrase` does; or a token, which seals a
//! key, as of a root-key file, of which a passphrase of 256 random bits follows. That key is
//! never destroyed: what a store overwrites counts as purged nowhere.

use std::fmt;
use std::path::PathBuf;

use age::secrecy::{ExposeSecret, SecretString};
use age::{DecryptError, scrypt};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::exports::carried::ARMOR;
use crate::exports::level::{ExportIdentity, Seal, decrypt_by};
use crate::key_folder::SourceSecrets;
use crate::limits::{IDENTITY_WORK_FACTOR, IDENTITY_WORK_FACTOR_MAX, IDENTITY_WORK_FACTOR_OF_KEY};
use crate::root::key_file::RootText;
use crate::root::source::RootKey;
use crate::root::spec::SourceSpec;
use crate::root::token::{HEADING as TOKEN_HEADING, TokenRoot};

/// What the passphrase is derived with from a key that a token sealed.
const PASSPHRASE_LABEL: &[u8] = b"coffer engine identity v1\0";

/// An identity that was made.
pub struct SealedIdentity {
    /// The identity.
    pub identity: ExportIdentity,
    /// As it is to lie in the store.
    pub sealed: Vec<u8>,
    /// The token that has a key for it.
    token: Option<TokenRoot>,
}

/// What was found in a store.
pub enum FoundIdentity {
    /// The identity.
    Opened(ExportIdentity),
    /// It does not open: the passphrase is another one, or what it is sealed by was altered.
    OtherPassphrase,
    /// The token does not hold the key that it needs.
    NoKey,
    /// It is sealed by another kind of source.
    OtherSource,
    /// To try the passphrase would take more than [`IDENTITY_WORK_FACTOR_MAX`].
    Costly,
    /// It is no identity, or was altered.
    Damaged,
}

impl SealedIdentity {
    /// Makes an identity, and seals it by a source that gateways share. Blocks.
    ///
    /// # Errors
    ///
    /// [`KeysError::PassphraseMissing`] also for a source that is not shared, or a passphrase that
    /// is no text; those of the token.
    pub fn make(source: &SourceSpec, secrets: &SourceSecrets) -> Result<Self, KeysError> {
        let identity = ExportIdentity::generate();
        let text = identity.to_text();
        let text = text.expose_secret().as_bytes();
        let SourceSpec::Token(spec) = source else {
            let seal = Seal::for_passphrase(given(secrets)?, IDENTITY_WORK_FACTOR)?;
            let sealed = seal.seal(text)?;
            return Ok(Self {
                identity,
                sealed,
                token: None,
            });
        };
        let token = TokenRoot::new(PathBuf::new(), spec.options(secrets)?);
        let key = RootKey::generate();
        let seal = Seal::for_passphrase(passphrase_of(&key), IDENTITY_WORK_FACTOR_OF_KEY)?;
        let of_key = seal.seal(text)?;
        // Last: no failure leaves a key behind in the token, nor does its own.
        let written = token.write(&key).inspect_err(|_| {
            let _ = token.destroy_keys(None);
        });
        let mut sealed = written?.to_vec();
        sealed.extend(of_key);
        Ok(Self {
            identity,
            sealed,
            token: Some(token),
        })
    }

    /// Removes what the token has of it, for another's counts. Blocks.
    ///
    /// # Errors
    ///
    /// Those of the token.
    pub fn withdraw(self) -> Result<(), KeysError> {
        match self.token {
            Some(token) => token.destroy_keys(None),
            None => Ok(()),
        }
    }
}

/// Opens what was found in an engine's store. Nothing is changed. Blocks.
///
/// # Errors
///
/// As [`SealedIdentity::make`].
pub fn open_identity(
    sealed: &[u8],
    source: &SourceSpec,
    secrets: &SourceSecrets,
) -> Result<FoundIdentity, KeysError> {
    let (of_token, sealed) = apart(sealed);
    let passphrase = match (source, of_token) {
        (SourceSpec::Token(spec), Some(text)) => {
            let token = TokenRoot::new(PathBuf::new(), spec.options(secrets)?);
            match token.parse(text)? {
                Some(key) => passphrase_of(&key),
                None => return Ok(FoundIdentity::NoKey),
            }
        }
        (SourceSpec::Passphrase, None) => given(secrets)?,
        _ => return Ok(FoundIdentity::OtherSource),
    };
    let mut by = scrypt::Identity::new(passphrase);
    by.set_max_work_factor(IDENTITY_WORK_FACTOR_MAX);
    Ok(match decrypt_by(sealed, &by) {
        Ok(text) => identity_in(&text).map_or(FoundIdentity::Damaged, FoundIdentity::Opened),
        Err(DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed) => {
            FoundIdentity::OtherPassphrase
        }
        Err(DecryptError::ExcessiveWork { .. }) => FoundIdentity::Costly,
        Err(_) => FoundIdentity::Damaged,
    })
}

/// What a token seals, where one does, and the age file.
fn apart(sealed: &[u8]) -> (Option<&[u8]>, &[u8]) {
    if !sealed.starts_with(TOKEN_HEADING.as_bytes()) {
        return (None, sealed);
    }
    let at = sealed.windows(ARMOR.len()).position(|bytes| bytes == ARMOR);
    let (of_token, sealed) = sealed.split_at(at.unwrap_or(sealed.len()));
    (Some(of_token), sealed)
}

/// The identity in a file as `age-keygen` writes it, or alone.
fn identity_in(text: &[u8]) -> Option<ExportIdentity> {
    let mut lines = std::str::from_utf8(text).ok()?.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    line.parse().ok()
}

fn given(secrets: &SourceSecrets) -> Result<SecretString, KeysError> {
    let given = secrets.passphrase.as_ref();
    let given = given.and_then(|passphrase| std::str::from_utf8(passphrase).ok());
    let given = given.filter(|passphrase| !passphrase.is_empty());
    given
        .map(SecretString::from)
        .ok_or(KeysError::PassphraseMissing)
}

fn passphrase_of(key: &RootKey) -> SecretString {
    let derived = key.secret().derive(PASSPHRASE_LABEL);
    let digits = Zeroizing::new(hex::encode(derived.expose()));
    SecretString::from(digits.as_str())
}

impl fmt::Debug for SealedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedIdentity").finish_non_exhaustive()
    }
}

impl fmt::Debug for FoundIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Opened(_) => "Opened",
            Self::OtherPassphrase => "OtherPassphrase",
            Self::NoKey => "NoKey",
            Self::OtherSource => "OtherSource",
            Self::Costly => "Costly",
            Self::Damaged => "Damaged",
        })
    }
}
