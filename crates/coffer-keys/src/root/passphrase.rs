//! The root key in a file, wrapped by a passphrase.
//!
//! ```text
//! coffer passphrase root key v1
//! argon2id m=65536 t=3 p=4 32 digits of salt
//! 208 digits: the root key, wrapped by what Argon2id makes of passphrase and salt
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use argon2::{Algorithm, Argon2, Params, Version};
use coffer_seal::limits::{KEY_BYTES, WRAPPED_KEY_BYTES};
use coffer_seal::{Context, KeyKind, SecretKey, random_bytes, unwrap_key, wrap_key};
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::{
    ARGON2_LANES, ARGON2_MEMORY_KIB, ARGON2_MEMORY_MAX_KIB, ARGON2_PASSES, ARGON2_PASSES_MAX,
};
use crate::root::key_file::{KeyFile, RootText};
use crate::root::source::{RootKey, RootMedium, RootSource, Sanitization};
use crate::root::storage::Storage;

const HEADING: &str = "coffer passphrase root key v1";

const SALT_BYTES: usize = 16;

/// A root-key file, mode 0600, that a passphrase opens. The passphrase wraps root keys, which are
/// random: so the root key changes with every erase, and the passphrase stays.
pub struct PassphraseRoot {
    path: PathBuf,
    opens: Mutex<Opens>,
}

/// What wraps root keys. The passphrase is forgotten as soon as its key is known: that lies in
/// locked memory, and an erase has no time to run Argon2id again.
enum Opens {
    Passphrase(Zeroizing<Vec<u8>>),
    Derived(Derivation, SecretKey),
}

/// How a passphrase becomes a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Derivation {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: [u8; SALT_BYTES],
}

impl PassphraseRoot {
    /// The source that keeps its wrapped key in this file, whether or not it exists yet.
    pub fn new(path: impl Into<PathBuf>, passphrase: Zeroizing<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            opens: Mutex::new(Opens::Passphrase(passphrase)),
        }
    }

    /// As [`PassphraseRoot::new`], with a derivation that costs nothing.
    #[cfg(test)]
    pub(crate) fn cheap(path: &Path, passphrase: &[u8]) -> Self {
        let source = Self::new(path, Zeroizing::new(passphrase.to_vec()));
        let derivation = Derivation {
            memory_kib: 64,
            passes: 1,
            lanes: 1,
            salt: [7; SALT_BYTES],
        };
        source
            .wrapping_key(derivation)
            .expect("it takes no memory to speak of");
        source
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn on_file(&self) -> Result<KeyFile<'_>, KeysError> {
        KeyFile::new(&self.path, self)
    }

    /// The key that wraps root keys, derived once.
    fn wrapping_key(&self, derivation: Derivation) -> Result<SecretKey, KeysError> {
        // Set in one assignment, so a panic elsewhere leaves it whole.
        let mut opens = self.opens.lock();
        match &*opens {
            Opens::Derived(known, key) if *known == derivation => Ok(key.clone()),
            // Another file was put in its place.
            Opens::Derived(..) => Err(KeysError::WrongPassphrase {
                path: self.path.clone(),
            }),
            Opens::Passphrase(passphrase) => {
                let key = derivation.run(passphrase)?;
                *opens = Opens::Derived(derivation, key.clone());
                Ok(key)
            }
        }
    }

    fn last_derivation(&self) -> Option<Derivation> {
        match &*self.opens.lock() {
            Opens::Derived(derivation, _) => Some(*derivation),
            Opens::Passphrase(_) => None,
        }
    }
}

impl RootSource for PassphraseRoot {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        self.on_file()?.candidates()
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        self.on_file()?.add()
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        self.on_file()?.keep_only(kept)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn describe(&self) -> String {
        format!("passphrase, with file {}", self.path.display())
    }

    fn medium(&self) -> RootMedium {
        let storage = Storage::below(&self.path);
        RootMedium {
            category: Sanitization::Clear,
            holder: format!(
                "file {} on {}, where a passphrase wraps it",
                self.path.display(),
                storage.describe()
            ),
            destruction: "overwritten once in place, synced, read back".to_owned(),
            remaining: format!(
                "whoever knows the passphrase and kept copies of both the keystore and the \
                 root-key file from before, such as a backup or a snapshot, can still open what \
                 they hold; {}",
                storage.remains()
            ),
        }
    }
}

impl RootText for PassphraseRoot {
    fn parse(&self, text: &[u8]) -> Result<Option<RootKey>, KeysError> {
        let Some((derivation, wrapped)) = parse(text) else {
            return Ok(None);
        };
        let wrapping_key = self.wrapping_key(derivation)?;
        unwrap_key(&wrapping_key, &derivation.context(), &wrapped)
            .map(|secret| Some(RootKey::from_secret(secret)))
            .map_err(|_| KeysError::WrongPassphrase {
                path: self.path.clone(),
            })
    }

    fn write(&self, root: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        let derivation = self.last_derivation().unwrap_or_else(Derivation::new);
        let wrapping_key = self.wrapping_key(derivation)?;
        let wrapped = wrap_key(&wrapping_key, &derivation.context(), root.secret());
        let Derivation {
            memory_kib,
            passes,
            lanes,
            salt,
        } = derivation;
        let text = format!(
            "{HEADING}\nargon2id m={memory_kib} t={passes} p={lanes} {}\n{}\n",
            hex::encode(salt),
            hex::encode(wrapped)
        );
        Ok(Zeroizing::new(text.into_bytes()))
    }
}

impl Derivation {
    /// As new files have it, with a salt of its own.
    fn new() -> Self {
        Self {
            memory_kib: ARGON2_MEMORY_KIB,
            passes: ARGON2_PASSES,
            lanes: ARGON2_LANES,
            salt: random_bytes(),
        }
    }

    fn run(&self, passphrase: &[u8]) -> Result<SecretKey, KeysError> {
        let failed = |source| KeysError::Derivation { source };
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(KEY_BYTES))
            .map_err(failed)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        SecretKey::try_filled(|out| argon2.hash_password_into(passphrase, &self.salt, out))
            .map_err(failed)
    }

    fn context(&self) -> Context {
        Context::key(KeyKind::Root(self.salt), 1)
    }
}

impl fmt::Debug for PassphraseRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassphraseRoot")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

pub(crate) fn parse(text: &[u8]) -> Option<(Derivation, [u8; WRAPPED_KEY_BYTES])> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let (heading, parameters, digits) = (lines.next()?, lines.next()?, lines.next()?);
    if heading != HEADING || lines.next().is_some() {
        return None;
    }
    let mut words = parameters.split(' ');
    let number = |word: Option<&str>, name: &str| word?.strip_prefix(name)?.parse().ok();
    if words.next()? != "argon2id" {
        return None;
    }
    let mut derivation = Derivation {
        memory_kib: number(words.next(), "m=")?,
        passes: number(words.next(), "t=")?,
        lanes: number(words.next(), "p=")?,
        salt: [0; SALT_BYTES],
    };
    hex::decode_to_slice(words.next()?, &mut derivation.salt).ok()?;
    // A file from elsewhere must not exhaust the machine.
    let is_modest = derivation.memory_kib <= ARGON2_MEMORY_MAX_KIB
        && derivation.passes <= ARGON2_PASSES_MAX
        && derivation.lanes <= ARGON2_PASSES_MAX;
    let mut wrapped = [0; WRAPPED_KEY_BYTES];
    hex::decode_to_slice(digits, &mut wrapped).ok()?;
    (is_modest && words.next().is_none()).then_some((derivation, wrapped))
}
