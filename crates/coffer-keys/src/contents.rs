//! What the keystore's body says, and its bytes.
//!
//! Every key in it is wrapped, so neither the body nor what is read from it holds a bare key.

use std::collections::{BTreeMap, BTreeSet};

use coffer_label::{Categories, Label, Rank};
use coffer_seal::limits::WRAPPED_KEY_BYTES;
use coffer_seal::{Context, KeyKind, SecretKey, unwrap_key, wrap_key};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::{
    BODY_FIXED_BYTES, BUCKET_BYTES, BUCKET_COUNT_MAX, CATEGORIES_BYTES, ID_BYTES, LEVEL_COUNT_MAX,
    LEVEL_MAX_BYTES, LEVEL_NAME_MAX_BYTES,
};
use crate::root::RootKey;

/// The body's own version: the first two bytes.
const BODY_VERSION: u16 = 1;

type Id = [u8; ID_BYTES];

/// A level, as the keystore knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelEntry {
    /// Its id.
    pub id: [u8; 16],
    /// Its name, unique, at most [`LEVEL_NAME_MAX_BYTES`] of UTF-8 without control characters.
    pub name: String,
    /// How sensitive its buckets are.
    pub label: Label,
    /// The generation of its key, from 1.
    pub generation: u32,
    /// When it was made, in milliseconds since 1970 (UTC).
    pub created_ms: i64,
}

/// A bucket, as the keystore knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketEntry {
    /// Its id.
    pub id: [u8; 16],
    /// The level whose key wraps the bucket's.
    pub level_id: [u8; 16],
    /// The generation of its key, from 1.
    pub generation: u32,
}

/// A wrapped key: a Cobblestone-256 message.
pub(crate) type Wrapped = [u8; WRAPPED_KEY_BYTES];

/// All that the body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) system_generation: u32,
    pub(crate) system_key: Wrapped,
    pub(crate) levels: BTreeMap<Id, (LevelEntry, Wrapped)>,
    pub(crate) buckets: BTreeMap<Id, (BucketEntry, Wrapped)>,
}

impl Contents {
    /// The body's bytes; `docs/FORMAT.md`, "Keystore", tells them one by one.
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Enough from the beginning, so that no outgrown buffer is given back unzeroized.
        let capacity_bytes = BODY_FIXED_BYTES
            + self.levels.len() * LEVEL_MAX_BYTES
            + self.buckets.len() * BUCKET_BYTES;
        let mut body = Zeroizing::new(Vec::with_capacity(capacity_bytes));
        body.extend_from_slice(&BODY_VERSION.to_be_bytes());
        body.extend_from_slice(&self.system_generation.to_be_bytes());
        body.extend_from_slice(&self.system_key);
        body.extend_from_slice(&(self.levels.len() as u16).to_be_bytes());
        for (level, wrapped) in self.levels.values() {
            body.extend_from_slice(&level.id);
            body.push(level.name.len() as u8);
            body.extend_from_slice(level.name.as_bytes());
            body.push(level.label.rank.number());
            body.extend_from_slice(&level.label.categories.to_bytes());
            body.extend_from_slice(&level.generation.to_be_bytes());
            body.extend_from_slice(&level.created_ms.to_be_bytes());
            body.extend_from_slice(wrapped);
        }
        body.extend_from_slice(&(self.buckets.len() as u32).to_be_bytes());
        for (bucket, wrapped) in self.buckets.values() {
            body.extend_from_slice(&bucket.id);
            body.extend_from_slice(&bucket.level_id);
            body.extend_from_slice(&bucket.generation.to_be_bytes());
            body.extend_from_slice(wrapped);
        }
        debug_assert!(body.len() <= capacity_bytes);
        body
    }

    /// Reads a body. There is one way only to write each: ids ascend, nothing follows the last.
    pub(crate) fn from_bytes(body: &[u8]) -> Result<Self, KeysError> {
        let mut fields = Fields(body);
        let version = u16::from_be_bytes(fields.take("version")?);
        if version > BODY_VERSION {
            return Err(KeysError::NewerFormat {
                found: version.into(),
                known: BODY_VERSION.into(),
            });
        }
        require(version == BODY_VERSION, "version")?;
        let contents = Self {
            system_generation: fields.generation("system key")?,
            system_key: fields.take("system key")?,
            levels: read_levels(&mut fields)?,
            buckets: read_buckets(&mut fields)?,
        };
        require(fields.0.is_empty(), "end")?;
        for (bucket, _) in contents.buckets.values() {
            require(
                contents.levels.contains_key(&bucket.level_id),
                "bucket's level",
            )?;
        }
        Ok(contents)
    }
}

impl Contents {
    /// Unwraps a level's key.
    pub(crate) fn level_key(&self, root: &RootKey, level_id: Id) -> Result<SecretKey, KeysError> {
        let (level, wrapped) = self
            .levels
            .get(&level_id)
            .ok_or(KeysError::NoSuchLevel { level_id })?;
        let context = Context::key(KeyKind::Level, &level_id, level.generation);
        unwrap(root.secret(), &context, wrapped)
    }

    /// Unwraps the system key.
    pub(crate) fn system_key(
        &self,
        keystore_id: &Id,
        root: &RootKey,
    ) -> Result<SecretKey, KeysError> {
        let context = Context::key(KeyKind::System, keystore_id, self.system_generation);
        unwrap(root.secret(), &context, &self.system_key)
    }

    /// Wraps under a new root key what the old one wraps. Bucket keys stay as they are: level keys
    /// wrap them.
    pub(crate) fn rewrap(
        &mut self,
        keystore_id: &Id,
        old: &RootKey,
        new: &RootKey,
    ) -> Result<(), KeysError> {
        let again = |context: Context, wrapped: &mut Wrapped| -> Result<(), KeysError> {
            let key = unwrap(old.secret(), &context, wrapped)?;
            *wrapped = wrap_key(new.secret(), &context, &key);
            Ok(())
        };
        let system = Context::key(KeyKind::System, keystore_id, self.system_generation);
        again(system, &mut self.system_key)?;
        for (level, wrapped) in self.levels.values_mut() {
            let context = Context::key(KeyKind::Level, &level.id, level.generation);
            again(context, wrapped)?;
        }
        Ok(())
    }
}

fn unwrap(
    wrapping_key: &SecretKey,
    context: &Context,
    wrapped: &Wrapped,
) -> Result<SecretKey, KeysError> {
    unwrap_key(wrapping_key, context, wrapped).map_err(|_| KeysError::KeyDidNotOpen)
}

fn read_levels(fields: &mut Fields<'_>) -> Result<BTreeMap<Id, (LevelEntry, Wrapped)>, KeysError> {
    let count = usize::from(u16::from_be_bytes(fields.take("level count")?));
    require(count <= LEVEL_COUNT_MAX, "level count")?;
    let (mut levels, mut names) = (BTreeMap::new(), BTreeSet::new());
    for _ in 0..count {
        let id = fields.take("level")?;
        let level = LevelEntry {
            id,
            name: fields.level_name()?,
            label: fields.label()?,
            generation: fields.generation("level")?,
            created_ms: i64::from_be_bytes(fields.take("level")?),
        };
        require(names.insert(level.name.clone()), "level name")?;
        require(ascends(&levels, &id), "order of levels")?;
        levels.insert(id, (level, fields.take("level")?));
    }
    Ok(levels)
}

fn read_buckets(
    fields: &mut Fields<'_>,
) -> Result<BTreeMap<Id, (BucketEntry, Wrapped)>, KeysError> {
    let count = u32::from_be_bytes(fields.take("bucket count")?);
    require(count as usize <= BUCKET_COUNT_MAX, "bucket count")?;
    let mut buckets = BTreeMap::new();
    for _ in 0..count {
        let id = fields.take("bucket")?;
        let bucket = BucketEntry {
            id,
            level_id: fields.take("bucket")?,
            generation: fields.generation("bucket")?,
        };
        require(ascends(&buckets, &id), "order of buckets")?;
        buckets.insert(id, (bucket, fields.take("bucket")?));
    }
    Ok(buckets)
}

fn ascends<T>(entries: &BTreeMap<Id, T>, id: &Id) -> bool {
    entries.last_key_value().is_none_or(|(last, _)| last < id)
}

fn require(holds: bool, what: &'static str) -> Result<(), KeysError> {
    if holds {
        Ok(())
    } else {
        Err(KeysError::Malformed { what })
    }
}

/// What is left of a body that is being read.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], KeysError> {
        let (field, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(KeysError::Malformed { what })?;
        self.0 = rest;
        Ok(*field)
    }

    fn generation(&mut self, what: &'static str) -> Result<u32, KeysError> {
        let generation = u32::from_be_bytes(self.take(what)?);
        require(generation > 0, what)?;
        Ok(generation)
    }

    fn level_name(&mut self) -> Result<String, KeysError> {
        const WHAT: &str = "level name";
        let [name_bytes] = self.take(WHAT)?;
        let (name, rest) = self
            .0
            .split_at_checked(name_bytes.into())
            .ok_or(KeysError::Malformed { what: WHAT })?;
        self.0 = rest;
        let name = std::str::from_utf8(name).map_err(|_| KeysError::Malformed { what: WHAT })?;
        let fits = (1..=LEVEL_NAME_MAX_BYTES).contains(&name.len());
        require(fits && !name.chars().any(char::is_control), WHAT)?;
        Ok(name.to_owned())
    }

    fn label(&mut self) -> Result<Label, KeysError> {
        let [rank] = self.take("label")?;
        let rank = Rank::new(rank).map_err(|_| KeysError::Malformed { what: "label" })?;
        let categories: [u8; CATEGORIES_BYTES] = self.take("label")?;
        Ok(Label {
            rank,
            categories: Categories::from_bytes(&categories),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
