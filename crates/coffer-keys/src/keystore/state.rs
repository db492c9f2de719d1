//! The keystore: which levels and buckets there are, and their keys.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use coffer_durable::{Access, Disk, Folder, NewFile, TwoSlots};
use coffer_seal::{KeystoreId, LevelId, SecretKey};
use parking_lot::{Mutex, MutexGuard};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::freshness::KeystoreRollback;
use crate::keystore::contents::{Contents, LevelEntry};
use crate::keystore::copies::{Copies, Repair};
use crate::keystore::copy::Copy;
use crate::limits::SLOT_BYTES;
use crate::root::source::{RootKey, RootSource};
use crate::stale_root::StaleRoot;

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
    id: KeystoreId,
    system_key: SecretKey,
    writable: bool,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) contents: Contents,
    pub(crate) copies: Copies,
    /// The generation of the last change of more than what is held; in doubt a later one.
    pub(crate) keys_generation: u64,
    pub(crate) root: RootKey,
    pub(crate) source: Arc<dyn RootSource>,
    /// The source before a move, while it may hold root keys.
    pub(crate) left_source: Option<Arc<dyn RootSource>>,
    /// Whether the source may hold another root key than `root`.
    pub(crate) is_settled: bool,
    /// Whether the source holds the keystore's generation, as far as is known.
    pub(crate) is_held_outside: bool,
    /// The older copy that this keystore is, which was accepted on purpose.
    pub(crate) accepted: Option<KeystoreRollback>,
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
        let failed = || KeysError::durable(path);
        let (folder, name) = Folder::of(path).map_err(KeysError::io("find", path))?;
        let mut new = NewFile::begin(&folder, name).map_err(failed())?;
        let sized = new.file().set_length(2 * SLOT_BYTES as u64);
        let file = sized.and_then(|()| new.file().again());
        let file = file.map_err(KeysError::io("write", path))?;
        let keystore = Self::create_on(TwoSlots::new(file, SLOT_BYTES), path, source)?;
        match new.place() {
            Err(error) if error.is_taken() => Err(KeysError::Exists {
                path: path.to_path_buf(),
            }),
            placed => placed.map(|_| keystore).map_err(failed()),
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
        Self::open_accepting(path, source, false)
    }

    /// Opens a keystore and changes nothing, neither a damaged copy nor the root keys.
    ///
    /// # Errors
    ///
    /// As [`Keystore::open`]. Every change is [`KeysError::ReadOnly`] later.
    pub fn open_read_only(path: &Path, source: Box<dyn RootSource>) -> Result<Self, KeysError> {
        let slots = open_slots(path, Access::Read)?;
        let copies = Copies::find(slots, path)?;
        Self::from_copies(copies, vec![source.into()], false)
    }

    /// Whether there is a keystore at this path, or anything else.
    pub fn exists(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    /// The keystore's own id, which its sealing is bound to.
    pub fn id(&self) -> KeystoreId {
        self.id
    }

    /// Where its root key is.
    pub fn source(&self) -> Arc<dyn RootSource> {
        self.state().source.clone()
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
    pub fn level(&self, level_id: LevelId) -> Option<LevelEntry> {
        self.state()
            .contents
            .levels
            .get(&level_id)
            .map(|(level, _)| level.clone())
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
        slots: TwoSlots,
        path: &Path,
        source: Box<dyn RootSource>,
    ) -> Result<Self, KeysError> {
        // A first start that was interrupted leaves a root key: nothing depends on it yet.
        let root = match source.candidates()?.into_iter().next() {
            Some(root) => root,
            None => source.add()?,
        };
        let id = KeystoreId::random();
        let copy = Copy::seal(&root, id, 1, &Contents::first(id, &root).to_bytes());
        let mut copies = Copies::on_empty(slots, path, copy.clone());
        copies.write_staler(copy)?;
        copies.mend()?;
        source.keep_only(Some(&root))?;
        Self::from_copies(copies, vec![source.into()], true)
    }

    #[cfg(test)]
    pub(crate) fn open_on(
        slots: TwoSlots,
        path: &Path,
        sources: Vec<Arc<dyn RootSource>>,
    ) -> Result<(Self, Repair), KeysError> {
        Self::open_held(slots, path, sources, false)
    }

    /// Mends what an opened keystore needs mended.
    pub(crate) fn settle_opened(keystore: Self) -> Result<(Self, Repair), KeysError> {
        let mut state = keystore.state();
        // Only now that the newest copy is known to open may it replace the other, and only when
        // both open with this root key may the other root key go.
        let repair = state.copies.mend()?;
        state.settle_source()?;
        if let Err(error) = state.settle_left_source() {
            tracing::warn!(
                %error,
                "the root key was moved, but the source that it left may hold it still"
            );
        }
        drop(state);
        Ok((keystore, repair))
    }

    /// Opens with the first of one or two sources that can; the other is to be emptied.
    pub(crate) fn from_copies(
        copies: Copies,
        mut sources: Vec<Arc<dyn RootSource>>,
        writable: bool,
    ) -> Result<Self, KeysError> {
        let id = copies.newest().keystore_id();
        let (body, root, index) = find_root(&copies, &sources)?;
        let source = sources.swap_remove(index);
        let contents = Contents::from_bytes(&body)?;
        let system_key = contents.system_key(id, &root)?;
        Ok(Self {
            id,
            system_key,
            writable,
            state: Mutex::new(State {
                contents,
                keys_generation: copies.newest().generation(),
                copies,
                root,
                source,
                left_source: sources.pop(),
                is_settled: false,
                is_held_outside: false,
                accepted: None,
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
        state.settle()?;
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
        let new_root = state.source.add()?;
        contents.rewrap(self.id, &state.root, &new_root)?;
        state.put(contents, new_root)?;
        let settled = state.settle();
        settled.map_err(|source| KeysError::Unsettled {
            source: Box::new(source),
        })?;
        Ok((outcome, state.copies.newest().generation()))
    }

    /// The state, after what a failed change left behind was completed.
    pub(crate) fn settled(&self) -> Result<MutexGuard<'_, State>, KeysError> {
        if !self.writable {
            return Err(KeysError::ReadOnly);
        }
        let mut state = self.state();
        state.settle()?;
        Ok(state)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // Memory changes in single assignments after the disk did, so a panic elsewhere can't
        // have left it half-changed.
        self.state.lock()
    }
}

impl State {
    /// Makes contents what a restart finds. When it fails, the other copy is untouched.
    pub(crate) fn put(&mut self, contents: Contents, root: RootKey) -> Result<(), KeysError> {
        let generation = self.copies.newest().generation() + 1;
        self.put_as(generation, contents, root)
    }

    /// As [`State::put`], as this generation, which no copy has had.
    pub(crate) fn put_as(
        &mut self,
        generation: u64,
        contents: Contents,
        root: RootKey,
    ) -> Result<(), KeysError> {
        self.keys_generation = generation;
        let newest = self.copies.newest();
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
    pub(crate) fn settle(&mut self) -> Result<(), KeysError> {
        self.copies.mend()?;
        self.settle_source()?;
        self.settle_left_source()
    }

    /// Destroys the source's other root keys.
    fn settle_source(&mut self) -> Result<(), KeysError> {
        if !self.is_settled {
            self.source.keep_only(Some(&self.root))?;
            self.is_settled = true;
        }
        Ok(())
    }

    /// Destroys all root keys of the source before a move.
    fn settle_left_source(&mut self) -> Result<(), KeysError> {
        if let Some(left) = &self.left_source {
            left.keep_only(None)?;
            self.left_source = None;
        }
        Ok(())
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore")
            .field("id", &self.id)
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}

/// The first root key of any source that opens the newest copy, and the source's index.
fn find_root(
    copies: &Copies,
    sources: &[Arc<dyn RootSource>],
) -> Result<(Zeroizing<Vec<u8>>, RootKey, usize), KeysError> {
    let (mut failure, mut is_empty) = (None, true);
    for (index, source) in sources.iter().enumerate() {
        match source.candidates() {
            Ok(candidates) => {
                is_empty &= candidates.is_empty();
                for root in candidates {
                    if let Ok(body) = copies.newest().open(&root) {
                        return Ok((body, root, index));
                    }
                }
            }
            // Another one may open it; if none does, this is why.
            Err(error) => failure = Some(error),
        }
    }
    let place = sources.last().map(|source| source.describe());
    let place = place.unwrap_or_default();
    Err(match failure {
        Some(failure) => failure,
        None if is_empty => KeysError::RootMissing { place },
        None => KeysError::StaleRoot(StaleRoot::look(
            place,
            sources.last().and_then(|source| source.file()),
            copies.path(),
            copies.newest().generation(),
        )),
    })
}

/// Opens the file of a keystore.
pub(crate) fn open_slots(path: &Path, access: Access) -> Result<TwoSlots, KeysError> {
    let (folder, name) = Folder::of(path).map_err(KeysError::io("find", path))?;
    let file = folder.open(name, access);
    let file = file.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => KeysError::Missing {
            path: path.to_path_buf(),
        },
        _ => KeysError::io("open", path)(source),
    })?;
    Ok(TwoSlots::new(file, SLOT_BYTES))
}
