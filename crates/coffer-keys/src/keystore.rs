//! The keystore: which levels and buckets there are, and their keys.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use coffer_label::Label;
use coffer_seal::{Context, KeyKind, SecretKey, random_bytes, wrap_key};

use crate::clock::now_ms;
use crate::contents::{Contents, Generation, LevelEntry, LevelOptions, level_context};
use crate::copies::{Copies, Repair};
use crate::error::KeysError;
use crate::limits::SLOT_BYTES;
use crate::medium::Medium;
use crate::new_file::NewFile;
use crate::root::{RootKey, RootSource};
use crate::slot::Copy;

/// The level that every keystore begins with.
const FIRST_LEVEL_NAME: &str = "default";

/// Keys begin with this generation.
pub(crate) const FIRST_GENERATION: u32 = 1;

/// An open keystore.
///
/// Every change is durable in both copies before it returns. In memory are the root key, the
/// system key and wrapped keys; level and bucket keys are unwrapped when they are asked for.
///
/// A change that failed to be written may be found after a restart all the same, or not: never
/// half. Calls after it first complete what the failed one left behind.
///
/// A key is erased by leaving it out of a body that is sealed under a new root key, and destroying
/// the old one: then no older copy opens, wherever it is, unless its root key was copied too.
pub struct Keystore {
    id: [u8; 16],
    source: Box<dyn RootSource>,
    system_key: SecretKey,
    writable: bool,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) contents: Contents,
    copies: Copies,
    pub(crate) root: RootKey,
    /// Whether the source may hold another root key than `root`.
    is_settled: bool,
}

impl Keystore {
    /// Makes a keystore with a system key and the level `default`, labelled `s0`. Its root key is
    /// the one that the source holds, or a new one when it holds none.
    ///
    /// # Errors
    ///
    /// [`KeysError::Exists`] when the file exists; I/O errors, and then there is none.
    pub fn create(path: &Path, source: Box<dyn RootSource>) -> Result<Self, KeysError> {
        if Self::exists(path) {
            return Err(KeysError::Exists {
                path: path.to_path_buf(),
            });
        }
        let new = NewFile::begin(path)?;
        let write_error = |source| KeysError::io("write", path)(source);
        new.file()
            .set_len(2 * SLOT_BYTES as u64)
            .map_err(write_error)?;
        let medium = new.file().try_clone().map_err(write_error)?;
        let keystore = Self::create_on(Box::new(medium), path, source)?;
        if new.place()? {
            Ok(keystore)
        } else {
            Err(KeysError::Exists {
                path: path.to_path_buf(),
            })
        }
    }

    /// Opens a keystore, mends a damaged or older copy from the other, and completes a change of
    /// the root key that was interrupted: root keys that it doesn't open with are destroyed.
    ///
    /// # Errors
    ///
    /// When there is none, both copies are damaged, its format is newer, or the newest copy opens
    /// with none of the source's root keys. An older copy is never taken for a newer one that is
    /// whole, for that would undo a destroyed key.
    pub fn open(path: &Path, source: Box<dyn RootSource>) -> Result<(Self, Repair), KeysError> {
        let file = open_file(path, OpenOptions::new().read(true).write(true))?;
        Self::open_on(Box::new(file), path, source)
    }

    /// Opens a keystore and changes nothing, neither a damaged copy nor the root keys.
    ///
    /// # Errors
    ///
    /// As [`Keystore::open`]. Every change is [`KeysError::ReadOnly`] later.
    pub fn open_read_only(path: &Path, source: Box<dyn RootSource>) -> Result<Self, KeysError> {
        let file = open_file(path, OpenOptions::new().read(true))?;
        let copies = Copies::find(Box::new(file), path)?;
        Self::from_copies(copies, source, false)
    }

    /// Whether there is a keystore at this path, or anything else.
    pub fn exists(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    /// The keystore's own id, which its sealing is bound to.
    pub fn id(&self) -> [u8; 16] {
        self.id
    }

    /// Where its root key is.
    pub fn source(&self) -> &dyn RootSource {
        self.source.as_ref()
    }

    /// How often it was changed, from 1.
    pub fn generation(&self) -> u64 {
        self.state().copies.newest().generation()
    }

    /// The key of the server's own database.
    pub fn system_key(&self) -> SecretKey {
        self.system_key.clone()
    }

    /// All levels, by id.
    pub fn levels(&self) -> Vec<LevelEntry> {
        let state = self.state();
        let levels = state.contents.levels.values();
        levels.map(|(level, _)| level.clone()).collect()
    }

    /// A level.
    pub fn level(&self, level_id: &[u8; 16]) -> Option<LevelEntry> {
        self.state()
            .contents
            .levels
            .get(level_id)
            .map(|(level, _)| level.clone())
    }

    /// Moves the keystore under a new root key and destroys the old one.
    ///
    /// # Errors
    ///
    /// When it can't be written; [`KeysError::Unsettled`] when the new root key is in force and the
    /// old one couldn't be destroyed.
    pub fn rotate_root(&self) -> Result<(), KeysError> {
        self.change_under_new_root(|_, _| Ok(())).map(drop)
    }

    /// Completes what a failed change left behind: afterwards both copies are the same and the
    /// source holds one root key. Every change begins with it.
    ///
    /// # Errors
    ///
    /// When the keystore or the source can't be written.
    pub fn settle(&self) -> Result<(), KeysError> {
        self.settled().map(drop)
    }

    pub(crate) fn create_on(
        medium: Box<dyn Medium>,
        path: &Path,
        source: Box<dyn RootSource>,
    ) -> Result<Self, KeysError> {
        // A first start that was interrupted leaves a root key: nothing depends on it yet.
        let root = match source.candidates()?.into_iter().next() {
            Some(root) => root,
            None => source.add()?,
        };
        let id = random_bytes();
        let copy = Copy::seal(&root, id, 1, &first_contents(id, &root).to_bytes());
        let mut copies = Copies::on_empty(medium, path, copy.clone());
        copies.write_staler(copy)?;
        copies.mend()?;
        source.keep_only(Some(&root))?;
        Self::from_copies(copies, source, true)
    }

    pub(crate) fn open_on(
        medium: Box<dyn Medium>,
        path: &Path,
        source: Box<dyn RootSource>,
    ) -> Result<(Self, Repair), KeysError> {
        let copies = Copies::find(medium, path)?;
        let keystore = Self::from_copies(copies, source, true)?;
        let mut state = keystore.state();
        // Only now that the newest copy is known to open may it replace the other, and only when
        // both open with this root key may the other root key go.
        let repair = state.copies.mend()?;
        state.settle(keystore.source.as_ref())?;
        drop(state);
        if repair != Repair::None {
            tracing::warn!(?repair, "a copy of the keystore was mended from the other");
        }
        Ok((keystore, repair))
    }

    fn from_copies(
        copies: Copies,
        source: Box<dyn RootSource>,
        writable: bool,
    ) -> Result<Self, KeysError> {
        let id = copies.newest().keystore_id();
        let candidates = source.candidates()?;
        if candidates.is_empty() {
            return Err(KeysError::RootMissing {
                place: source.describe(),
            });
        }
        let (body, root) = candidates
            .into_iter()
            .find_map(|root| Some((copies.newest().open(&root).ok()?, root)))
            .ok_or(KeysError::WrongRoot)?;
        let contents = Contents::from_bytes(&body)?;
        let system_key = contents.system_key(&id, &root)?;
        Ok(Self {
            id,
            source,
            system_key,
            writable,
            state: Mutex::new(State {
                contents,
                copies,
                root,
                is_settled: false,
            }),
        })
    }

    /// Applies a change in memory and on disk, or neither.
    pub(crate) fn change<T>(
        &self,
        apply: impl FnOnce(&mut Contents, &RootKey) -> Result<T, KeysError>,
    ) -> Result<T, KeysError> {
        let mut state = self.settled()?;
        let mut contents = state.contents.clone();
        let outcome = apply(&mut contents, &state.root)?;
        let root = state.root.clone();
        state.put(contents, root)?;
        state.settle(self.source.as_ref())?;
        Ok(outcome)
    }

    /// Applies a change and moves the keystore under a new root key, so that whatever the change
    /// left out is gone from every older copy too. When this returns, the old root key is
    /// destroyed. Gives out the keystore's new generation as well.
    pub(crate) fn change_under_new_root<T>(
        &self,
        apply: impl FnOnce(&mut Contents, &RootKey) -> Result<T, KeysError>,
    ) -> Result<(T, u64), KeysError> {
        let mut state = self.settled()?;
        let mut contents = state.contents.clone();
        let outcome = apply(&mut contents, &state.root)?;
        // From here on the source may hold two keys, whatever fails.
        state.is_settled = false;
        let new_root = self.source.add()?;
        contents.rewrap(&self.id, &state.root, &new_root)?;
        state.put(contents, new_root)?;
        let settled = state.settle(self.source.as_ref());
        settled.map_err(|source| KeysError::Unsettled {
            source: Box::new(source),
        })?;
        Ok((outcome, state.copies.newest().generation()))
    }

    /// The state, after what a failed change left behind was completed.
    fn settled(&self) -> Result<MutexGuard<'_, State>, KeysError> {
        if !self.writable {
            return Err(KeysError::ReadOnly);
        }
        let mut state = self.state();
        state.settle(self.source.as_ref())?;
        Ok(state)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Memory changes in single assignments after the disk did, so a panic elsewhere can't
        // have left it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes contents what a restart finds. When it fails, the other copy is untouched.
    fn put(&mut self, contents: Contents, root: RootKey) -> Result<(), KeysError> {
        let newest = self.copies.newest();
        let generation = newest.generation() + 1;
        let copy = Copy::seal(
            &root,
            newest.keystore_id(),
            generation,
            &contents.to_bytes(),
        );
        self.copies.write_staler(copy)?;
        // From here on a restart finds the change, so memory has it too, whatever happens next.
        self.contents = contents;
        self.root = root;
        Ok(())
    }

    /// Brings both copies to the newest, and only then destroys other root keys.
    fn settle(&mut self, source: &dyn RootSource) -> Result<(), KeysError> {
        self.copies.mend()?;
        if !self.is_settled {
            source.keep_only(Some(&self.root))?;
            self.is_settled = true;
        }
        Ok(())
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore")
            .field("id", &hex::encode(self.id))
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

fn open_file(path: &Path, options: &OpenOptions) -> Result<File, KeysError> {
    options.open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => KeysError::Missing {
            path: path.to_path_buf(),
        },
        _ => KeysError::io("open", path)(source),
    })
}

/// Contents with new keys of the keystore's own, and no level.
pub(crate) fn new_contents(keystore_id: [u8; 16], root: &RootKey) -> Contents {
    let own = |kind| {
        let context = Context::key(kind, &keystore_id, FIRST_GENERATION);
        Generation {
            number: FIRST_GENERATION,
            wrapped: wrap_key(root.secret(), &context, &SecretKey::generate()),
        }
    };
    Contents {
        system: own(KeyKind::System),
        receipt: own(KeyKind::Receipt),
        levels: BTreeMap::new(),
        buckets: BTreeMap::new(),
    }
}

fn first_contents(keystore_id: [u8; 16], root: &RootKey) -> Contents {
    let level = LevelEntry {
        id: random_bytes(),
        name: FIRST_LEVEL_NAME.to_owned(),
        label: Label::LOWEST,
        options: LevelOptions::default(),
        imported: false,
        export_count: 0,
        generation: FIRST_GENERATION,
        created_ms: now_ms(),
    };
    let key = SecretKey::generate();
    let wrapped = wrap_key(root.secret(), &level_context(&level), &key);
    let mut contents = new_contents(keystore_id, root);
    contents.levels.insert(level.id, (level, wrapped));
    contents
}
