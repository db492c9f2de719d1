//! The root key under a key that never leaves a token: an HSM, a TPM, a smart card, through
//! PKCS#11 (OASIS, version 2.40).
//!
//! ```text
//! coffer token root key v1
//! 32 digits: the id of an AES key in the token (CKA_ID)
//! 120 digits: nonce(12), then the root key, sealed with AES-256-GCM by that key, tag(16)
//! ```
//!
//! Each root key has an AES key of its own, made by the token, sensitive and not extractable. To
//! destroy a root key, its AES key is destroyed in the token: then no copy of the file is of use.
//! The first half of an id is random and the same for all keys of one file, so that no other
//! keystore's keys are destroyed, whatever they are called.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};

use coffer_seal::limits::KEY_BYTES;
use coffer_seal::{KeystoreId, SecretKey, random_bytes};
use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::types::AuthPin;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::freshness::{HeldGeneration, Keeping, Outside};
use crate::root::key_file::{KeyFile, RootText};
use crate::root::source::{RootKey, RootMedium, RootSource, Sanitization};
use crate::token_setup::TokenSetupError;

mod generation;

/// How a text begins.
pub(crate) const HEADING: &str = "coffer token root key v1";

const NONCE_BYTES: usize = 12;

const SEALED_BYTES: usize = NONCE_BYTES + KEY_BYTES + 16;

/// Which token, and how to get in.
pub struct TokenOptions {
    /// The PKCS#11 module, such as `/usr/lib/softhsm/libsofthsm2.so`.
    pub module: PathBuf,
    /// The token's label.
    pub token: String,
    /// The user's PIN.
    pub pin: Zeroizing<String>,
    /// What the keys in the token are called (CKA_LABEL).
    pub name: String,
}

/// A root-key file, mode 0600, that only the token opens.
pub struct TokenRoot {
    path: PathBuf,
    options: TokenOptions,
    /// What the ids of this file's keys begin with, once one was read or made.
    family: Mutex<Option<Family>>,
}

type Family = [u8; 8];

impl TokenRoot {
    /// The source that keeps its sealed key in this file, whether or not it exists yet.
    pub fn new(path: impl Into<PathBuf>, options: TokenOptions) -> Self {
        Self {
            path: path.into(),
            options,
            family: Mutex::new(None),
        }
    }

    fn on_file(&self) -> Result<KeyFile<'_>, KeysError> {
        KeyFile::new(&self.path, self)
    }

    fn session(&self) -> Result<Session, KeysError> {
        let module = module(&self.options.module)?;
        let slots = module
            .get_slots_with_token()
            .map_err(failed("look for tokens"))?;
        let slot = slots.into_iter().find(|slot| {
            let info = module.get_token_info(*slot);
            info.is_ok_and(|info| info.label().trim_end() == self.options.token)
        });
        let slot = slot.ok_or_else(|| TokenSetupError::NoSuchToken {
            label: self.options.token.clone(),
        })?;
        let session = module
            .open_rw_session(slot)
            .map_err(failed("open a session"))?;
        let pin = AuthPin::new(self.options.pin.as_str().into());
        let label = self.options.token.clone();
        match session.login(UserType::User, Some(&pin)) {
            // Logging in is for all sessions of the process.
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(session),
            Err(Error::Pkcs11(
                RvError::PinIncorrect | RvError::PinLenRange | RvError::PinLocked,
                _,
            )) => Err(KeysError::WrongPin { label }),
            Err(source) => Err(failed("log in")(source)),
        }
    }

    /// The token's keys of this name: all, or the one of this id.
    fn find(&self, session: &Session, id: Option<&[u8]>) -> Result<Vec<ObjectHandle>, KeysError> {
        let mut template = vec![
            Attribute::Class(ObjectClass::SECRET_KEY),
            Attribute::Token(true),
            Attribute::Label(self.options.name.clone().into_bytes()),
        ];
        template.extend(id.map(|id| Attribute::Id(id.to_vec())));
        session
            .find_objects(&template)
            .map_err(failed("look for a key"))
    }

    /// Makes an AES key that stays in the token.
    fn make_key(&self, session: &Session, id: &[u8]) -> Result<ObjectHandle, KeysError> {
        let template = [
            Attribute::Token(true),
            Attribute::Private(true),
            Attribute::Sensitive(true),
            Attribute::Extractable(false),
            Attribute::Encrypt(true),
            Attribute::Decrypt(true),
            Attribute::ValueLen((KEY_BYTES as u64).into()),
            Attribute::Label(self.options.name.clone().into_bytes()),
            Attribute::Id(id.to_vec()),
        ];
        session
            .generate_key(&Mechanism::AesKeyGen, &template)
            .map_err(failed("make a key"))
    }

    /// Destroys the token's keys for this file but the one of this id, and makes sure.
    pub(crate) fn destroy_keys(&self, kept: Option<[u8; 16]>) -> Result<(), KeysError> {
        let Some(family) = *self.family.lock() else {
            return Ok(());
        };
        let session = self.session()?;
        let others = || -> Result<Vec<ObjectHandle>, KeysError> {
            let mut others = Vec::new();
            for key in self.find(&session, None)? {
                let attributes = session
                    .get_attributes(key, &[AttributeType::Id])
                    .map_err(failed("examine a key"))?;
                let is_other = attributes.iter().any(|attribute| match attribute {
                    Attribute::Id(id) => id.starts_with(&family) && kept.is_none_or(|it| *id != it),
                    _ => false,
                });
                if is_other {
                    others.push(key);
                }
            }
            Ok(others)
        };
        for key in others()? {
            session
                .destroy_object(key)
                .map_err(failed("destroy a key"))?;
        }
        if others()?.is_empty() {
            Ok(())
        } else {
            Err(KeysError::TokenKeepsKey)
        }
    }
}

impl RootSource for TokenRoot {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        self.on_file()?.candidates()
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        self.on_file()?.add()
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        let kept_id = match kept {
            Some(kept) => parse(&self.on_file()?.text_of(kept)?).map(|(id, _)| id),
            None => {
                // Only to know the family: what can't be used any more is to go as well.
                match self.candidates() {
                    Ok(_) | Err(KeysError::RootMalformed { .. }) => None,
                    Err(error) => return Err(error),
                }
            }
        };
        // The token first: once its key is gone, what is left in the file opens nothing.
        self.destroy_keys(kept_id)?;
        if kept.is_none() {
            self.forget_generation()?;
        }
        self.on_file()?.keep_only(kept)
    }

    fn keeping(&self) -> Keeping {
        Keeping::InToken
    }

    fn outside(&self, keystore_id: KeystoreId) -> Result<Outside, KeysError> {
        self.generation(keystore_id)
    }

    fn hold_outside(
        &self,
        keystore_id: KeystoreId,
        generation: HeldGeneration,
    ) -> Result<(), KeysError> {
        self.hold_generation(keystore_id, generation)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn describe(&self) -> String {
        format!(
            "PKCS#11 token {}, name {}, with file {}",
            self.options.token,
            self.options.name,
            self.path.display()
        )
    }

    fn medium(&self) -> RootMedium {
        RootMedium {
            category: Sanitization::Purge,
            holder: format!(
                "PKCS#11 token {}, whose key, not extractable, seals the root key",
                self.options.token
            ),
            destruction: "the token's key was destroyed by C_DestroyObject, and is not found in \
                          the token any more"
                .to_owned(),
            remaining: "what the token's maker doesn't promise of destroyed keys, and copies of \
                        the token itself: backups of an HSM, or the files of a token in software"
                .to_owned(),
        }
    }
}

impl RootText for TokenRoot {
    fn parse(&self, text: &[u8]) -> Result<Option<RootKey>, KeysError> {
        let Some((id, sealed)) = parse(text) else {
            return Ok(None);
        };
        *self.family.lock() = id.first_chunk().copied();
        let session = self.session()?;
        // Destroyed in the token: a change that was interrupted, or an old copy of the file.
        let Some(key) = self.find(&session, Some(&id))?.pop() else {
            return Ok(None);
        };
        let (nonce, ciphertext) = sealed.split_at(NONCE_BYTES);
        let mut nonce = nonce.to_vec();
        let mechanism = gcm(&mut nonce)?;
        let secret = session
            .decrypt(&mechanism, key, ciphertext)
            .map(Zeroizing::new)
            .map_err(failed("open the root key"))?;
        Ok(secret_of(&secret).map(RootKey::from_secret))
    }

    fn write(&self, root: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        let session = self.session()?;
        let mut id: [u8; 16] = random_bytes();
        match &mut *self.family.lock() {
            Some(family) => id[..family.len()].copy_from_slice(family),
            unknown => *unknown = id.first_chunk().copied(),
        }
        let key = self.make_key(&session, &id)?;
        // Random, and the only one under this key.
        let nonce: [u8; NONCE_BYTES] = random_bytes();
        let mut given = nonce.to_vec();
        let ciphertext = session
            .encrypt(&gcm(&mut given)?, key, root.secret().expose())
            .map_err(failed("seal the root key"))?;
        let (id, nonce) = (hex::encode(id), hex::encode(nonce));
        let text = format!("{HEADING}\n{id}\n{nonce}{}\n", hex::encode(ciphertext));
        Ok(Zeroizing::new(text.into_bytes()))
    }
}

impl fmt::Debug for TokenRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRoot")
            .field("path", &self.path)
            .field("token", &self.options.token)
            .field("name", &self.options.name)
            .finish_non_exhaustive()
    }
}

pub(crate) fn parse(text: &[u8]) -> Option<([u8; 16], [u8; SEALED_BYTES])> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let (heading, id_digits, digits) = (lines.next()?, lines.next()?, lines.next()?);
    let (mut id, mut sealed) = ([0; 16], [0; SEALED_BYTES]);
    hex::decode_to_slice(id_digits, &mut id).ok()?;
    hex::decode_to_slice(digits, &mut sealed).ok()?;
    (heading == HEADING && lines.next().is_none()).then_some((id, sealed))
}

/// The key in what was opened; `None` when it is none.
fn secret_of(opened: &[u8]) -> Option<SecretKey> {
    let opened: &[u8; KEY_BYTES] = opened.try_into().ok()?;
    SecretKey::try_filled(|out| {
        out.copy_from_slice(opened);
        Ok::<_, Infallible>(())
    })
    .ok()
}

fn gcm(nonce: &mut [u8]) -> Result<Mechanism<'_>, KeysError> {
    const TAG_BITS: u64 = 128;
    GcmParams::new(nonce, HEADING.as_bytes(), TAG_BITS.into())
        .map(Mechanism::AesGcm)
        .map_err(failed("set up AES-GCM"))
}

/// A module is loaded and initialized once for the whole process, and stays.
fn module(path: &Path) -> Result<Pkcs11, KeysError> {
    static MODULES: Mutex<Option<HashMap<PathBuf, Pkcs11>>> = Mutex::new(None);
    let mut modules = MODULES.lock();
    let modules = modules.get_or_insert_default();
    if let Some(module) = modules.get(path) {
        return Ok(module.clone());
    }
    let unusable = |source| TokenSetupError::Module {
        path: path.to_path_buf(),
        source,
    };
    let module = Pkcs11::new(path).map_err(unusable)?;
    match module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Ok(()) | Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
        Err(source) => return Err(unusable(source).into()),
    }
    modules.insert(path.to_path_buf(), module.clone());
    Ok(module)
}

fn failed(op: &'static str) -> impl FnOnce(Error) -> KeysError {
    move |source| KeysError::Token { op, source }
}
