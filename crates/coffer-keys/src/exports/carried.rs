//! The keystore in a sealed copy: what `docs/FORMAT.md`, "Sealed copies", calls a carried keystore.
//!
//! It holds the levels that go along, and their buckets; those that were not approved to be there
//! are left out. It lies there as a copy in its slot does, sealed under the root key, which is not
//! in the copy; or, for recipients of age, under a root key of its own, with which it is sealed for
//! them: the server's own root key goes nowhere.
//!
//! Who opens it opens these levels: so it is an export of each, counted before it is sealed.

use std::collections::BTreeSet;
use std::path::Path;

use coffer_durable::write_file_atomically;
use coffer_seal::limits::KEY_BYTES;
use coffer_seal::{KeystoreId, LevelId, SecretKey};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::exports::level::{ExportIdentity, ExportRecipient, Seal, decrypt};
use crate::folder_copy::place_keystore;
use crate::freshness::Held;
use crate::keystore::contents::{Contents, LevelEntry};
use crate::keystore::copy::{Copy, FORMAT, FoundCopy};
use crate::keystore::state::Keystore;
use crate::limits::SLOT_BYTES;
use crate::root::file::BareText;
use crate::root::key_file::RootText;
use crate::root::source::RootKey;

const HEADING: &[u8] = b"coffer carried keystore v1\0";

/// How an armored age file begins.
pub(crate) const ARMOR: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";

/// A keystore on its way to a sealed copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedKeystore {
    /// As it is to lie there.
    pub bytes: Vec<u8>,
    /// Which generation of the keystore it is.
    pub generation: u64,
}

/// A keystore that was found in a sealed copy.
pub struct CarriedKeystore {
    copy: Copy,
    /// The root key that came with it, if it was sealed for recipients.
    root: Option<RootKey>,
}

impl Keystore {
    /// Counts an export of each of these levels, durably: they are about to go along.
    ///
    /// # Errors
    ///
    /// [`KeysError::NoSuchLevel`], [`KeysError::NotExportable`]; when the keystore can't be
    /// written.
    pub fn count_exports(&self, levels: &BTreeSet<LevelId>) -> Result<(), KeysError> {
        self.change(|contents, _| {
            for level_id in levels.iter().copied() {
                let (level, _) = contents
                    .levels
                    .get_mut(&level_id)
                    .ok_or(KeysError::NoSuchLevel { level_id })?;
                if !level.options.exportable {
                    let name = level.name.clone();
                    return Err(KeysError::NotExportable { name });
                }
                level.export_count = level.export_count.saturating_add(1);
            }
            Ok(())
        })
    }

    /// Seals the keystore as it is with these of its levels only, which were counted: for these
    /// recipients, or, where there are none, under its root key. Without any said, all of it is:
    /// for gateways of the same server, which is no export.
    ///
    /// # Errors
    ///
    /// When what a failed change left can't be completed, or it can't be sealed.
    pub fn seal_carried(
        &self,
        levels: Option<&BTreeSet<LevelId>>,
        recipients: &[ExportRecipient],
    ) -> Result<SealedKeystore, KeysError> {
        // As long as this is held, neither the keystore nor its root key is changed; and no older
        // root key is left that the copies of before open with.
        let state = self.settled()?;
        let generation = state.copies.newest().generation();
        let mut contents = state.contents.clone();
        let goes_along = |id: &LevelId, level: &LevelEntry| {
            levels.is_none_or(|levels| levels.contains(id) && level.options.exportable)
        };
        contents
            .levels
            .retain(|id, (level, _)| goes_along(id, level));
        let kept: BTreeSet<LevelId> = contents.levels.keys().copied().collect();
        contents
            .buckets
            .retain(|_, bucket| kept.contains(&bucket.level_id));
        if recipients.is_empty() {
            let copy = Copy::seal(&state.root, self.id(), generation, &contents.to_bytes());
            let bytes = copy.as_bytes().to_vec();
            return Ok(SealedKeystore { bytes, generation });
        }
        let root = RootKey::generate();
        contents.rewrap(self.id(), &state.root, &root)?;
        drop(state);
        let copy = Copy::seal(&root, self.id(), generation, &contents.to_bytes());
        let copy = copy.as_bytes();
        // Enough from the beginning, so that no outgrown buffer is given back unzeroized.
        let length_bytes = HEADING.len() + KEY_BYTES + copy.len();
        let mut plaintext = Zeroizing::new(Vec::with_capacity(length_bytes));
        plaintext.extend_from_slice(HEADING);
        plaintext.extend_from_slice(root.secret().expose());
        plaintext.extend_from_slice(copy);
        let bytes = Seal::for_recipients(recipients)?.seal(&plaintext)?;
        Ok(SealedKeystore { bytes, generation })
    }

    /// Whether this keystore's root key opens a carried keystore, which is one of it.
    pub fn opens_carried(&self, carried: &CarriedKeystore) -> bool {
        let is_own = carried.copy.keystore_id() == self.id();
        is_own && carried.copy.open(&self.state().root).is_ok()
    }
}

impl CarriedKeystore {
    /// Whether what lies there is sealed for recipients, so that it takes an identity.
    pub fn is_for_recipients(bytes: &[u8]) -> bool {
        bytes.starts_with(ARMOR)
    }

    /// Reads what lies in a sealed copy. That its root key opens it is not looked at yet, unless it
    /// came with it.
    ///
    /// # Errors
    ///
    /// [`KeysError::ExportDidNotOpen`], [`KeysError::Malformed`], [`KeysError::NewerFormat`].
    pub fn read(bytes: &[u8], identity: Option<&ExportIdentity>) -> Result<Self, KeysError> {
        if !Self::is_for_recipients(bytes) {
            let copy = read_copy(bytes)?;
            return Ok(Self { copy, root: None });
        }
        let identity = identity.ok_or(KeysError::ExportDidNotOpen)?;
        let plaintext = decrypt(bytes, identity);
        let plaintext = plaintext.ok_or(KeysError::ExportDidNotOpen)?;
        let rest = plaintext.strip_prefix(HEADING).ok_or_else(malformed)?;
        let (root, copy) = rest
            .split_first_chunk::<KEY_BYTES>()
            .ok_or_else(malformed)?;
        let root = SecretKey::try_filled(|out| {
            out.copy_from_slice(root);
            Ok::<_, KeysError>(())
        })
        .map(RootKey::from_secret)?;
        let copy = read_copy(copy)?;
        copy.open(&root)?;
        let root = Some(root);
        Ok(Self { copy, root })
    }

    /// The id of the keystore.
    pub fn id(&self) -> KeystoreId {
        self.copy.keystore_id()
    }

    /// Which generation of it this is.
    pub fn generation(&self) -> u64 {
        self.copy.generation()
    }

    /// The key of the server's own database, and how new the keystore says that all below it is;
    /// none where the root key did not come with it.
    ///
    /// # Errors
    ///
    /// When what is in it is none.
    pub fn system(&self) -> Result<Option<(SecretKey, Held)>, KeysError> {
        let Some(root) = &self.root else {
            return Ok(None);
        };
        let contents = Contents::from_bytes(&self.copy.open(root)?)?;
        let key = contents.system_key(self.id(), root)?;
        Ok(Some((key, contents.held)))
    }

    /// Writes it into a folder: `keystore`, and before that `root.key`, if the root key came with
    /// it. A `keystore` that is there is replaced; the caller has looked.
    ///
    /// # Errors
    ///
    /// When a file can't be written.
    pub fn place(&self, folder: &Path) -> Result<(), KeysError> {
        // First, for it can be fetched again: so a root key that is there without a keystore is
        // never one that was placed here.
        place_keystore(&self.copy, folder)?;
        if let Some(root) = &self.root {
            let path = folder.join("root.key");
            let text = BareText.write(root)?;
            write_file_atomically(&path, &text).map_err(KeysError::durable(&path))?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for CarriedKeystore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CarriedKeystore")
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

fn malformed() -> KeysError {
    KeysError::Malformed {
        what: "carried keystore",
    }
}

fn read_copy(bytes: &[u8]) -> Result<Copy, KeysError> {
    match FoundCopy::parse(bytes.get(..SLOT_BYTES.min(bytes.len())).unwrap_or_default()) {
        FoundCopy::Intact(copy) if copy.as_bytes().len() == bytes.len() => Ok(copy),
        FoundCopy::Newer { found, whole: true } => Err(KeysError::NewerFormat {
            found,
            known: FORMAT,
        }),
        _ => Err(malformed()),
    }
}
