//! What the keystore holds.
//!
//! Every key in it is wrapped, so neither the body nor what is read from it holds a bare key.

use std::collections::BTreeMap;

use coffer_label::Label;
use coffer_seal::limits::WRAPPED_KEY_BYTES;
use coffer_seal::{
    BucketId, Context, KeyKind, KeystoreId, LevelId, SecretKey, unwrap_key, wrap_key,
};
use serde::{Deserialize, Serialize};

use crate::error::KeysError;
use crate::freshness::Held;
use crate::root::source::RootKey;
use coffer_durable::now_ms;

/// A level, as the keystore knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelEntry {
    /// Its id.
    pub id: LevelId,
    /// Its name, unique: up to [`LEVEL_NAME_MAX_BYTES`](crate::limits::LEVEL_NAME_MAX_BYTES) of
    /// `a` to `z`, `0` to `9` and `-`.
    pub name: String,
    /// How sensitive its buckets are.
    pub label: Label,
    /// What was chosen for it when it was made.
    pub options: LevelOptions,
    /// Whether its key came from another keystore, which may hold it still.
    pub imported: bool,
    /// How often its key was exported from this keystore.
    pub export_count: u32,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// When it was made, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
}

impl LevelEntry {
    /// A level that the keystore does not have: of that nothing is known but its id, by which it is
    /// called.
    pub fn unknown(id: LevelId) -> Self {
        Self {
            id,
            name: id.to_string(),
            label: Label::LOWEST,
            options: LevelOptions::default(),
            imported: false,
            export_count: 0,
            generation: 0,
            created_ms: 0,
        }
    }

    /// Whether it is told of a level that the keystore has, or had.
    pub fn is_known(&self) -> bool {
        self.generation >= FIRST_GENERATION
    }
}

/// What is chosen for a level when it is made, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelOptions {
    /// Whether its key may be exported.
    pub exportable: bool,
    /// How many custodians an erase or an export takes, from 1.
    pub approvals: u8,
    /// Whether reads and writes of its objects are recorded in the audit log.
    pub audit_data: bool,
    /// Whether what its buckets share with everyone is shared with those who sign nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub public: bool,
    /// Whether an erase wins over object locks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub erase_breaks_locks: bool,
    /// Whether clients are given data keys, to open and seal objects themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed_transfer: bool,
}

impl Default for LevelOptions {
    fn default() -> Self {
        Self {
            exportable: true,
            approvals: 1,
            audit_data: false,
            public: false,
            erase_breaks_locks: false,
            sealed_transfer: false,
        }
    }
}

/// A bucket, as the keystore knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketEntry {
    /// Its id.
    pub id: BucketId,
    /// The level whose key wraps the bucket's.
    pub level_id: LevelId,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// The generation before, while data keys that it wrapped may be left.
    pub older_generation: Option<u32>,
}

impl BucketEntry {
    /// A bucket that the keystore has no key for: of that no generation is known.
    pub fn without_key(id: BucketId, level_id: LevelId) -> Self {
        Self {
            id,
            level_id,
            generation: 0,
            older_generation: None,
        }
    }

    /// Whether it is told of a bucket that the keystore has, or had, a key for.
    pub fn has_key(&self) -> bool {
        self.generation >= FIRST_GENERATION
    }
}

/// The level that every keystore begins with.
const FIRST_LEVEL_NAME: &str = "default";

/// Keys begin with this generation.
pub(crate) const FIRST_GENERATION: u32 = 1;

/// A wrapped key: a Cobblestone-256 message.
pub(crate) type Wrapped = [u8; WRAPPED_KEY_BYTES];

/// All that the body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Wrapped by the root key; the owner is the keystore.
    pub(crate) system: Generation,
    /// As the system key: the seed of the key that signs receipts.
    pub(crate) receipt: Generation,
    /// How new the things below the keystore are, at least.
    pub(crate) held: Held,
    pub(crate) levels: BTreeMap<LevelId, (LevelEntry, Wrapped)>,
    pub(crate) buckets: BTreeMap<BucketId, Bucket>,
}

/// One generation of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    pub(crate) number: u32,
    pub(crate) wrapped: Wrapped,
}

/// A bucket's level, and the generations of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) level_id: LevelId,
    /// The key of its catalog, wrapped by the current generation: it stays for as long as the
    /// catalog does, so that a rotation rewrites no catalog.
    pub(crate) catalog: Wrapped,
    pub(crate) current: Generation,
    /// Lower than the current one's number.
    pub(crate) older: Option<Generation>,
}

impl Bucket {
    pub(crate) fn entry(&self, id: BucketId) -> BucketEntry {
        BucketEntry {
            id,
            level_id: self.level_id,
            generation: self.current.number,
            older_generation: self.older.map(|older| older.number),
        }
    }

    /// All generations, ascending.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.older.iter().chain([&self.current])
    }

    fn generations_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        self.older.iter_mut().chain([&mut self.current])
    }
}

impl Contents {
    /// Contents with new keys of the keystore's own, and no level.
    pub(crate) fn new(keystore_id: KeystoreId, root: &RootKey) -> Self {
        let own = |kind| {
            let context = Context::key(kind, FIRST_GENERATION);
            Generation {
                number: FIRST_GENERATION,
                wrapped: wrap_key(root.secret(), &context, &SecretKey::generate()),
            }
        };
        Self {
            system: own(KeyKind::System(keystore_id)),
            receipt: own(KeyKind::Receipt(keystore_id)),
            held: Held::default(),
            levels: BTreeMap::new(),
            buckets: BTreeMap::new(),
        }
    }

    /// Contents of a new keystore: with the level `default`, labelled `s0`.
    pub(crate) fn first(keystore_id: KeystoreId, root: &RootKey) -> Self {
        let level = LevelEntry {
            id: LevelId::random(),
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
        let mut contents = Self::new(keystore_id, root);
        contents.levels.insert(level.id, (level, wrapped));
        contents
    }

    /// A level, and its wrapped key.
    pub(crate) fn level(&self, level_id: LevelId) -> Result<&(LevelEntry, Wrapped), KeysError> {
        self.levels
            .get(&level_id)
            .ok_or(KeysError::NoSuchLevel { level_id })
    }

    /// A bucket, with its keys wrapped.
    pub(crate) fn bucket(&self, bucket_id: BucketId) -> Result<&Bucket, KeysError> {
        self.buckets
            .get(&bucket_id)
            .ok_or(KeysError::NoSuchBucket { bucket_id })
    }

    /// A bucket, to be changed.
    pub(crate) fn bucket_mut(&mut self, bucket_id: BucketId) -> Result<&mut Bucket, KeysError> {
        self.buckets
            .get_mut(&bucket_id)
            .ok_or(KeysError::NoSuchBucket { bucket_id })
    }

    /// The buckets of a level, by id.
    pub(crate) fn buckets_of(
        &self,
        level_id: LevelId,
    ) -> impl Iterator<Item = (BucketId, &Bucket)> {
        self.buckets
            .iter()
            .filter(move |(_, bucket)| bucket.level_id == level_id)
            .map(|(id, bucket)| (*id, bucket))
    }

    /// Unwraps a level's key.
    pub(crate) fn level_key(
        &self,
        root: &RootKey,
        level_id: LevelId,
    ) -> Result<SecretKey, KeysError> {
        let (level, wrapped) = self.level(level_id)?;
        unwrap(root.secret(), &level_context(level), wrapped)
    }

    /// Unwraps the system key.
    pub(crate) fn system_key(
        &self,
        owner: KeystoreId,
        root: &RootKey,
    ) -> Result<SecretKey, KeysError> {
        let context = Context::key(KeyKind::System(owner), self.system.number);
        unwrap(root.secret(), &context, &self.system.wrapped)
    }

    /// Unwraps the seed of the key that signs receipts.
    pub(crate) fn receipt_seed(
        &self,
        owner: KeystoreId,
        root: &RootKey,
    ) -> Result<SecretKey, KeysError> {
        let context = Context::key(KeyKind::Receipt(owner), self.receipt.number);
        unwrap(root.secret(), &context, &self.receipt.wrapped)
    }

    /// Unwraps one generation of a bucket's key.
    pub(crate) fn bucket_generation(
        level_key: &SecretKey,
        bucket_id: BucketId,
        generation: &Generation,
    ) -> Result<SecretKey, KeysError> {
        let context = bucket_context(bucket_id, generation.number);
        unwrap(level_key, &context, &generation.wrapped)
    }

    /// Unwraps the key of a bucket's catalog with the current generation of the bucket's key.
    pub(crate) fn catalog_key(
        bucket: &Bucket,
        bucket_id: BucketId,
        current: &SecretKey,
    ) -> Result<SecretKey, KeysError> {
        let context = catalog_context(bucket_id, bucket.current.number);
        unwrap(current, &context, &bucket.catalog)
    }

    /// Wraps under a new root key what the old one wraps. Bucket keys stay as they are: level keys
    /// wrap them.
    pub(crate) fn rewrap(
        &mut self,
        owner: KeystoreId,
        old: &RootKey,
        new: &RootKey,
    ) -> Result<(), KeysError> {
        let again =
            |context, wrapped: &mut Wrapped| rewrap(old.secret(), new.secret(), &context, wrapped);
        let own = [
            (KeyKind::System(owner), &mut self.system),
            (KeyKind::Receipt(owner), &mut self.receipt),
        ];
        for (kind, generation) in own {
            let context = Context::key(kind, generation.number);
            again(context, &mut generation.wrapped)?;
        }
        for (level, wrapped) in self.levels.values_mut() {
            again(level_context(level), wrapped)?;
        }
        Ok(())
    }

    /// Wraps under a level's new key all bucket keys that its old one wraps.
    pub(crate) fn rewrap_buckets(
        &mut self,
        level_id: LevelId,
        old: &SecretKey,
        new: &SecretKey,
    ) -> Result<(), KeysError> {
        let of_level = |bucket: &Bucket| bucket.level_id == level_id;
        for (id, bucket) in self.buckets.iter_mut().filter(|(_, it)| of_level(it)) {
            for generation in bucket.generations_mut() {
                let context = bucket_context(*id, generation.number);
                rewrap(old, new, &context, &mut generation.wrapped)?;
            }
        }
        Ok(())
    }
}

/// What binds a wrapped level key to its level.
pub(crate) fn level_context(level: &LevelEntry) -> Context {
    Context::key(KeyKind::Level(level.id), level.generation)
}

/// What binds a wrapped bucket key to its bucket.
pub(crate) fn bucket_context(bucket_id: BucketId, generation: u32) -> Context {
    Context::key(KeyKind::Bucket(bucket_id), generation)
}

/// What binds a catalog's wrapped key to its bucket.
pub(crate) fn catalog_context(bucket_id: BucketId, generation: u32) -> Context {
    Context::key(KeyKind::Catalog(bucket_id), generation)
}

fn unwrap(
    wrapping_key: &SecretKey,
    context: &Context,
    wrapped: &Wrapped,
) -> Result<SecretKey, KeysError> {
    unwrap_key(wrapping_key, context, wrapped).map_err(|_| KeysError::KeyDidNotOpen)
}

fn rewrap(
    old: &SecretKey,
    new: &SecretKey,
    context: &Context,
    wrapped: &mut Wrapped,
) -> Result<(), KeysError> {
    let key = unwrap(old, context, wrapped)?;
    *wrapped = wrap_key(new, context, &key);
    Ok(())
}
