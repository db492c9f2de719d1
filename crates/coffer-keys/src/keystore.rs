//! The keystore: which levels and buckets there are, and their keys.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use coffer_label::Label;
use coffer_seal::{Context, KeyKind, SecretKey, random_bytes, unwrap_key, wrap_key};

use crate::bucket_key::BucketKey;
use crate::contents::{BucketEntry, Contents, LevelEntry};
use crate::copies::{Copies, Medium, Repair};
use crate::error::KeysError;
use crate::limits::{BUCKET_COUNT_MAX, SLOT_BYTES};
use crate::new_file::NewFile;
use crate::root::RootKey;
use crate::slot::Copy;

/// The level that every keystore begins with.
const FIRST_LEVEL_NAME: &str = "default";

/// Keys begin with this generation.
const FIRST_GENERATION: u32 = 1;

/// An open keystore.
///
/// Every change is durable in both copies before it returns. In memory are the root key, the
/// system key and wrapped keys; level and bucket keys are unwrapped when they are asked for.
///
/// A change that failed to be written may be found after a restart all the same, or not: never
/// half. Calls after it first complete what the failed one left behind.
pub struct Keystore {
    id: [u8; 16],
    root: RootKey,
    system_key: SecretKey,
    writable: bool,
    state: Mutex<State>,
}

struct State {
    contents: Contents,
    copies: Copies,
}

impl Keystore {
    /// Makes a keystore with a system key and the level `default`, labelled `s0`.
    ///
    /// # Errors
    ///
    /// [`KeysError::Exists`] when the file exists; I/O errors, and then there is none.
    pub fn create(path: &Path, root: &RootKey) -> Result<Self, KeysError> {
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
        let keystore = Self::create_on(Box::new(medium), path, root)?;
        if new.place()? {
            Ok(keystore)
        } else {
            Err(KeysError::Exists {
                path: path.to_path_buf(),
            })
        }
    }

    /// Opens a keystore, and mends a damaged or older copy from the other.
    ///
    /// # Errors
    ///
    /// When there is none, both copies are damaged, its format is newer, or the newest copy
    /// doesn't open with this root key. An older copy is never taken for a newer one that is
    /// whole, for that would undo a destroyed key.
    pub fn open(path: &Path, root: &RootKey) -> Result<(Self, Repair), KeysError> {
        let file = open_file(path, OpenOptions::new().read(true).write(true))?;
        Self::open_on(Box::new(file), path, root)
    }

    /// Opens a keystore and changes nothing, not even a damaged copy.
    ///
    /// # Errors
    ///
    /// As [`Keystore::open`]. Every change is [`KeysError::ReadOnly`] later.
    pub fn open_read_only(path: &Path, root: &RootKey) -> Result<Self, KeysError> {
        let file = open_file(path, OpenOptions::new().read(true))?;
        let copies = Copies::find(Box::new(file), path)?;
        Self::from_copies(copies, root, false)
    }

    /// Whether there is a keystore at this path, or anything else.
    pub fn exists(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    /// The keystore's own id, which its sealing is bound to.
    pub fn id(&self) -> [u8; 16] {
        self.id
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

    /// All buckets, by id.
    pub fn buckets(&self) -> Vec<BucketEntry> {
        let state = self.state();
        let buckets = state.contents.buckets.values();
        buckets.map(|(bucket, _)| *bucket).collect()
    }

    /// Makes a bucket's first key, wrapped by its level's.
    ///
    /// # Errors
    ///
    /// When the bucket has a key, the level doesn't exist, the keystore is full, or it can't be
    /// written.
    pub fn add_bucket(
        &self,
        bucket_id: [u8; 16],
        level_id: [u8; 16],
    ) -> Result<BucketKey, KeysError> {
        let key = SecretKey::generate();
        self.change(|contents| {
            if contents.buckets.contains_key(&bucket_id) {
                return Err(KeysError::BucketExists { bucket_id });
            }
            let count = contents.buckets.len();
            if count >= BUCKET_COUNT_MAX {
                return Err(KeysError::TooManyBuckets { count });
            }
            let level_key = self.level_key(contents, level_id)?;
            let bucket = BucketEntry {
                id: bucket_id,
                level_id,
                generation: FIRST_GENERATION,
            };
            let wrapped = wrap_key(&level_key, &bucket_context(&bucket), &key);
            contents.buckets.insert(bucket_id, (bucket, wrapped));
            Ok(())
        })?;
        Ok(BucketKey::new(bucket_id, FIRST_GENERATION, key))
    }

    /// A bucket's key, unwrapped.
    ///
    /// # Errors
    ///
    /// [`KeysError::NoSuchBucket`] when it has none.
    pub fn bucket_key(&self, bucket_id: &[u8; 16]) -> Result<BucketKey, KeysError> {
        let state = self.state();
        let (bucket, wrapped) =
            state
                .contents
                .buckets
                .get(bucket_id)
                .ok_or(KeysError::NoSuchBucket {
                    bucket_id: *bucket_id,
                })?;
        let level_key = self.level_key(&state.contents, bucket.level_id)?;
        let key = unwrap_key(&level_key, &bucket_context(bucket), wrapped)
            .map_err(|_| KeysError::KeyDidNotOpen)?;
        Ok(BucketKey::new(*bucket_id, bucket.generation, key))
    }

    /// Destroys a bucket's key: when this returns, neither copy holds it.
    ///
    /// # Errors
    ///
    /// [`KeysError::NoSuchBucket`] when it has none; both copies are as new then, even when an
    /// earlier attempt failed half-way.
    pub fn destroy_bucket(&self, bucket_id: &[u8; 16]) -> Result<(), KeysError> {
        self.change(|contents| {
            contents
                .buckets
                .remove(bucket_id)
                .map(|_| ())
                .ok_or(KeysError::NoSuchBucket {
                    bucket_id: *bucket_id,
                })
        })
    }

    pub(crate) fn create_on(
        medium: Box<dyn Medium>,
        path: &Path,
        root: &RootKey,
    ) -> Result<Self, KeysError> {
        let id = random_bytes();
        let copy = Copy::seal(root, id, 1, &first_contents(id, root).to_bytes());
        let mut copies = Copies::on_empty(medium, path, copy.clone());
        copies.write_staler(copy)?;
        copies.mend()?;
        Self::from_copies(copies, root, true)
    }

    pub(crate) fn open_on(
        medium: Box<dyn Medium>,
        path: &Path,
        root: &RootKey,
    ) -> Result<(Self, Repair), KeysError> {
        let copies = Copies::find(medium, path)?;
        let keystore = Self::from_copies(copies, root, true)?;
        // Only now that the newest copy is known to open may it replace the other.
        let repair = keystore.state().copies.mend()?;
        if repair != Repair::None {
            tracing::warn!(?repair, "a copy of the keystore was mended from the other");
        }
        Ok((keystore, repair))
    }

    fn from_copies(copies: Copies, root: &RootKey, writable: bool) -> Result<Self, KeysError> {
        let id = copies.newest().keystore_id();
        let contents = Contents::from_bytes(&copies.newest().open(root)?)?;
        let context = Context::key(KeyKind::System, &id, contents.system_generation);
        let system_key = unwrap_key(root.secret(), &context, &contents.system_key)
            .map_err(|_| KeysError::KeyDidNotOpen)?;
        Ok(Self {
            id,
            root: root.clone(),
            system_key,
            writable,
            state: Mutex::new(State { contents, copies }),
        })
    }

    /// Applies a change in memory and on disk, or neither.
    fn change(
        &self,
        apply: impl FnOnce(&mut Contents) -> Result<(), KeysError>,
    ) -> Result<(), KeysError> {
        if !self.writable {
            return Err(KeysError::ReadOnly);
        }
        let mut state = self.state();
        // What a failed change left behind comes first: its copy is the staler one.
        state.copies.mend()?;
        let mut contents = state.contents.clone();
        apply(&mut contents)?;
        let generation = state.copies.newest().generation() + 1;
        let copy = Copy::seal(&self.root, self.id, generation, &contents.to_bytes());
        state.copies.write_staler(copy)?;
        // From here on a restart finds the change, so memory has it too, whatever happens next.
        state.contents = contents;
        state.copies.mend()?;
        Ok(())
    }

    fn level_key(&self, contents: &Contents, level_id: [u8; 16]) -> Result<SecretKey, KeysError> {
        let (level, wrapped) = contents
            .levels
            .get(&level_id)
            .ok_or(KeysError::NoSuchLevel { level_id })?;
        let context = Context::key(KeyKind::Level, &level_id, level.generation);
        unwrap_key(self.root.secret(), &context, wrapped).map_err(|_| KeysError::KeyDidNotOpen)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Memory changes in single assignments after the disk did, so a panic elsewhere can't
        // have left it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

fn first_contents(keystore_id: [u8; 16], root: &RootKey) -> Contents {
    let wrap = |kind, owner_id: &[u8; 16]| {
        let context = Context::key(kind, owner_id, FIRST_GENERATION);
        wrap_key(root.secret(), &context, &SecretKey::generate())
    };
    let level = LevelEntry {
        id: random_bytes(),
        name: FIRST_LEVEL_NAME.to_owned(),
        label: Label::LOWEST,
        generation: FIRST_GENERATION,
        created_ms: now_ms(),
    };
    let level_key = wrap(KeyKind::Level, &level.id);
    Contents {
        system_generation: FIRST_GENERATION,
        system_key: wrap(KeyKind::System, &keystore_id),
        levels: BTreeMap::from([(level.id, (level, level_key))]),
        buckets: BTreeMap::new(),
    }
}

fn bucket_context(bucket: &BucketEntry) -> Context {
    Context::key(KeyKind::Bucket, &bucket.id, bucket.generation)
}

/// Milliseconds since 1970; 0 on a clock that is set before.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
}

#[cfg(test)]
mod tests;
