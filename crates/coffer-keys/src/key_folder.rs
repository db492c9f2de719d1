//! The keystore of a data folder, and the root-key source that the folder records.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::keystore::copies::Repair;
use crate::keystore::state::Keystore;
use crate::limits::PIN_MAX_BYTES;
use crate::root::file::FileRoot;
use crate::root::keyring::KeyringRoot;
use crate::root::passphrase::PassphraseRoot;
use crate::root::record::{PlacedSource, SourceRecord};
use crate::root::source::RootSource;
use crate::root::spec::{SourceSpec, TokenSpec};
use crate::root::token::{TokenOptions, TokenRoot};
use crate::token_setup::TokenSetupError;

/// What opens a source, beside what it holds itself: as far as it needs any.
#[derive(Clone, Default)]
pub struct SourceSecrets {
    /// For [`SourceSpec::Passphrase`].
    pub passphrase: Option<Zeroizing<Vec<u8>>>,
    /// For [`SourceSpec::Token`] without a file for the PIN.
    pub pin: Option<Zeroizing<String>>,
}

/// Where a data folder has its keystore: `keystore`, `keystore.source`, and the files of sources.
///
/// The caller holds the folder's lock, except for [`KeyFolder::record`] and
/// [`KeyFolder::open_read_only`].
///
/// ```
/// use coffer_keys::{KeyFolder, SourceSecrets, SourceSpec};
///
/// # let folder = tempfile::tempdir().unwrap();
/// let mut secrets = SourceSecrets::default();
/// let keys = KeyFolder::new(folder.path());
/// let keystore = keys.create(None, &secrets)?; // the source `file`
///
/// secrets.passphrase = Some(b"correct horse".to_vec().into());
/// keys.move_root(&keystore, &SourceSpec::Passphrase, &secrets)?;
/// drop((keys, keystore));
///
/// let keys = KeyFolder::new(folder.path());
/// assert!(keys.record()?.needs_passphrase()); // so the program asks for it
/// let (keystore, _repair) = keys.open(None, &secrets)?;
/// # Ok::<(), coffer_keys::KeysError>(())
/// ```
pub struct KeyFolder {
    path: PathBuf,
    /// The source that the open keystore has, whatever the record says while a move isn't complete.
    current: Mutex<Option<PlacedSource>>,
    accepts_rollback: bool,
}

impl KeyFolder {
    /// The keystore of this data folder, whether or not there is one yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            current: Mutex::new(None),
            accepts_rollback: false,
        }
    }

    /// Whether it opens also an older keystore than the source holds.
    pub fn accepting_rollback(mut self, accepts: bool) -> Self {
        self.accepts_rollback = accepts;
        self
    }

    /// The keystore's file.
    pub fn keystore(&self) -> PathBuf {
        self.path.join("keystore")
    }

    /// Where the root key is, as recorded; `file` when nothing is.
    ///
    /// # Errors
    ///
    /// When the record can't be read, or is none.
    pub fn record(&self) -> Result<SourceRecord, KeysError> {
        let record = SourceRecord::read(&self.path)?;
        Ok(record.unwrap_or_else(|| SourceRecord::of(SourceSpec::File(None))))
    }

    /// The source of the keystore that was made or opened here.
    pub fn source(&self) -> Option<SourceSpec> {
        self.current
            .lock()
            .as_ref()
            .map(|placed| placed.spec.clone())
    }

    /// Makes the keystore, with its root key in this source; `None`: `file`, or what a first start
    /// that was interrupted had chosen.
    ///
    /// # Errors
    ///
    /// [`KeysError::RootTaken`] when the source holds a key of something else; as
    /// [`Keystore::create`].
    pub fn create(
        &self,
        source: Option<&SourceSpec>,
        secrets: &SourceSecrets,
    ) -> Result<Keystore, KeysError> {
        let recorded = SourceRecord::read(&self.path)?;
        let is_new = recorded.is_none();
        let placed = chosen(recorded, source)?.current;
        let opened = placed.open(&self.path, secrets)?;
        // A root.key without a keystore is what an interrupted first start left; elsewhere it
        // would have left a record as well.
        if is_new && placed.spec != SourceSpec::File(None) {
            if !opened.candidates()?.is_empty() {
                return Err(KeysError::RootTaken {
                    place: opened.describe(),
                });
            }
            record(&placed, None).write(&self.path)?;
        }
        let keystore = Keystore::create(&self.keystore(), opened)?;
        *self.current.lock() = Some(placed);
        Ok(keystore)
    }

    /// Opens the keystore with the source that is recorded, and completes a move that was
    /// interrupted. `source` is for a folder whose record was lost.
    ///
    /// # Errors
    ///
    /// [`KeysError::OtherSource`] when another source is recorded;
    /// [`KeysError::PassphraseMissing`] and [`KeysError::PinMissing`]; as
    /// [`Keystore::open_accepting`].
    pub fn open(
        &self,
        source: Option<&SourceSpec>,
        secrets: &SourceSecrets,
    ) -> Result<(Keystore, Repair), KeysError> {
        let recorded = SourceRecord::read(&self.path)?;
        let is_recorded = recorded.is_some();
        let SourceRecord { current, next } = chosen(recorded, source)?;
        let opened = current.open(&self.path, secrets)?;
        let Some(next) = next else {
            let (keystore, repair) =
                Keystore::open_accepting(&self.keystore(), opened, self.accepts_rollback)?;
            if !is_recorded && current.spec != SourceSpec::File(None) {
                record(&current, None).write(&self.path)?;
            }
            *self.current.lock() = Some(current);
            return Ok((keystore, repair));
        };
        let next_opened = next.open(&self.path, secrets)?;
        let (keystore, repair, is_moved) =
            Keystore::open_between(&self.keystore(), opened, next_opened, self.accepts_rollback)?;
        let placed = if is_moved { next } else { current };
        if !keystore.is_moving() {
            record(&placed, None).write(&self.path)?;
        }
        *self.current.lock() = Some(placed);
        Ok((keystore, repair))
    }

    /// Opens the keystore and changes nothing.
    ///
    /// # Errors
    ///
    /// As [`KeyFolder::open`].
    pub fn open_read_only(
        &self,
        source: Option<&SourceSpec>,
        secrets: &SourceSecrets,
    ) -> Result<Keystore, KeysError> {
        let SourceRecord { current, next } = chosen(SourceRecord::read(&self.path)?, source)?;
        let opened = current.open(&self.path, secrets)?;
        let next = next
            .map(|next| next.open(&self.path, secrets))
            .transpose()?;
        Keystore::open_read_only_between(&self.keystore(), opened, next)
    }

    /// Moves the root key of the keystore that was made or opened here into another source, while
    /// it is in use: a new root key there, and the old one destroyed. From `passphrase` to
    /// `passphrase` it changes the passphrase, and so with tokens.
    ///
    /// # Errors
    ///
    /// As [`Keystore::move_to`]. Whatever it is, the folder opens again with one of the sources,
    /// and another call begins anew.
    pub fn move_root(
        &self,
        keystore: &Keystore,
        to: &SourceSpec,
        secrets: &SourceSecrets,
    ) -> Result<(), KeysError> {
        let mut current = self.current.lock();
        let from = match &*current {
            Some(placed) => placed.clone(),
            None => self.record()?.current,
        };
        // What an earlier move left behind, in the source that it left or in the one it tried.
        keystore.settle()?;
        let SourceRecord { current: one, next } = self.record()?;
        for other in [Some(one), next].into_iter().flatten() {
            if other != from {
                other.open_to_empty(&self.path, secrets)?.keep_only(None)?;
            }
        }
        if let SourceSpec::File(Some(path)) = to
            && is_within(path, &self.path)
        {
            return Err(KeysError::SourceWithin { path: path.clone() });
        }
        let next = PlacedSource::apart_from(to.clone(), Some(&from));
        if next == from {
            return Err(KeysError::SameSource {
                place: keystore.source().describe(),
            });
        }
        let opened = next.open(&self.path, secrets)?;
        if !opened.candidates()?.is_empty() {
            return Err(KeysError::RootTaken {
                place: opened.describe(),
            });
        }
        record(&from, Some(&next)).write(&self.path)?;
        let before = keystore.source();
        let moved = keystore.move_to(opened);
        if !Arc::ptr_eq(&before, &keystore.source()) {
            *current = Some(next.clone());
            // While the old source isn't emptied, a restart must know of both.
            if !keystore.is_moving() {
                record(&next, None).write(&self.path)?;
            }
        }
        moved
    }

    /// The source of the open keystore; it is not moved before `then` ends.
    pub(crate) fn placed<T>(
        &self,
        then: impl FnOnce(&PlacedSource) -> Result<T, KeysError>,
    ) -> Result<T, KeysError> {
        let current = self.current.lock();
        match &*current {
            Some(placed) => then(placed),
            None => then(&self.record()?.current),
        }
    }
}

fn record(current: &PlacedSource, next: Option<&PlacedSource>) -> SourceRecord {
    SourceRecord {
        current: current.clone(),
        next: next.cloned(),
    }
}

/// What is recorded, if it is what was asked for; what was asked for, if nothing is recorded.
fn chosen(
    recorded: Option<SourceRecord>,
    asked: Option<&SourceSpec>,
) -> Result<SourceRecord, KeysError> {
    let is_same = |recorded: &SourceSpec, asked: &SourceSpec| match (recorded, asked) {
        (SourceSpec::Keyring(_), SourceSpec::Keyring(None)) => true,
        (recorded, asked) => recorded == asked,
    };
    match (recorded, asked) {
        (Some(recorded), Some(asked)) => {
            let is_known = is_same(recorded.current(), asked)
                || recorded.next().is_some_and(|next| is_same(next, asked));
            if is_known {
                Ok(recorded)
            } else {
                Err(KeysError::OtherSource {
                    recorded: recorded.current().to_string(),
                })
            }
        }
        (Some(recorded), None) => Ok(recorded),
        (None, asked) => Ok(SourceRecord::of(
            asked.cloned().unwrap_or(SourceSpec::File(None)),
        )),
    }
}

impl PlacedSource {
    /// The source, to have it destroy all its keys: that takes no passphrase.
    fn open_to_empty(
        &self,
        folder: &Path,
        secrets: &SourceSecrets,
    ) -> Result<Box<dyn RootSource>, KeysError> {
        let secrets = SourceSecrets {
            passphrase: Some(Zeroizing::new(b"none is needed".to_vec())),
            pin: secrets.pin.clone(),
        };
        self.open(folder, &secrets)
    }

    /// The source itself.
    fn open(
        &self,
        folder: &Path,
        secrets: &SourceSecrets,
    ) -> Result<Box<dyn RootSource>, KeysError> {
        let path = || folder.join(self.file.unwrap_or_default());
        Ok(match &self.spec {
            // One inside of the folder goes where the folder goes: it could hold nothing.
            SourceSpec::File(Some(elsewhere)) if !is_within(elsewhere, folder) => {
                Box::new(FileRoot::elsewhere(elsewhere))
            }
            SourceSpec::File(chosen) => {
                Box::new(FileRoot::new(chosen.clone().unwrap_or_else(path)))
            }
            SourceSpec::Passphrase => {
                let given = secrets.passphrase.clone();
                let given = given.filter(|passphrase| !passphrase.is_empty());
                let passphrase = given.ok_or(KeysError::PassphraseMissing)?;
                Box::new(PassphraseRoot::new(path(), passphrase))
            }
            SourceSpec::Keyring(name) => {
                Box::new(KeyringRoot::new(name.as_deref().unwrap_or("coffer")))
            }
            SourceSpec::Token(token) => Box::new(TokenRoot::new(path(), token.options(secrets)?)),
        })
    }
}

impl TokenSpec {
    /// The token, and what opens it.
    pub(crate) fn options(&self, secrets: &SourceSecrets) -> Result<TokenOptions, KeysError> {
        Ok(TokenOptions {
            module: self.module.clone(),
            token: self.token.clone(),
            pin: pin(self, secrets)?,
            name: self.object.clone(),
        })
    }
}

fn is_within(path: &Path, folder: &Path) -> bool {
    let parent = path.parent().unwrap_or(path);
    match (parent.canonicalize(), folder.canonicalize()) {
        (Ok(parent), Ok(folder)) => parent.starts_with(folder),
        _ => false,
    }
}

/// The PIN, from its file or as it was given; a line end behind it is not part of it.
fn pin(token: &TokenSpec, secrets: &SourceSecrets) -> Result<Zeroizing<String>, KeysError> {
    let Some(path) = &token.pin_source else {
        let given = secrets.pin.clone().filter(|pin| !pin.is_empty());
        return given.ok_or(KeysError::PinMissing);
    };
    let unread = |source| TokenSetupError::PinFile {
        path: path.clone(),
        source,
    };
    let file = std::fs::File::open(path).map_err(unread)?;
    let metadata = file.metadata().map_err(unread)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let path = path.clone();
        return Err(TokenSetupError::PinExposed { path, mode }.into());
    }
    // Enough from the beginning, so that no outgrown buffer is given back unzeroized.
    let mut pin = Zeroizing::new(String::with_capacity(PIN_MAX_BYTES + 3));
    let mut file = file.take(PIN_MAX_BYTES as u64 + 2);
    file.read_to_string(&mut pin).map_err(unread)?;
    let line_bytes = pin.trim_end_matches(['\n', '\r']).len();
    pin.truncate(line_bytes);
    if pin.is_empty() || pin.len() > PIN_MAX_BYTES {
        return Err(KeysError::PinMissing);
    }
    Ok(pin)
}

impl fmt::Debug for SourceSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSecrets")
            .field("has_passphrase", &self.passphrase.is_some())
            .field("has_pin", &self.pin.is_some())
            .finish()
    }
}

impl fmt::Debug for KeyFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFolder")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
