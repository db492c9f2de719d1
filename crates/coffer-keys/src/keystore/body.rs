//! The bytes of what the keystore holds; `docs/FORMAT.md`, "Keystore", tells them one by one.

use std::collections::{BTreeMap, BTreeSet};

use coffer_label::{Categories, Label, Rank};
use coffer_seal::{BucketId, LevelId};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::freshness::Held;
use crate::keystore::contents::{Bucket, Contents, Generation, LevelEntry, LevelOptions, Wrapped};
use crate::limits::{
    APPROVALS_MAX, BODY_FIXED_BYTES, BUCKET_COUNT_MAX, BUCKET_MAX_BYTES, CATEGORIES_BYTES,
    LEVEL_COUNT_MAX, LEVEL_MAX_BYTES, LEVEL_NAME_MAX_BYTES,
};
use crate::region_names::is_region;

/// The body's own version: the first two bytes. The first is still that of a body which holds
/// nothing of the things below it, such as an export.
const BODY_VERSION: u16 = 2;
const BODY_VERSION_HOLDING_NOTHING: u16 = 1;

const EXPORTABLE: u8 = 1;
const AUDIT_DATA: u8 = 2;
const IMPORTED: u8 = 4;
const ERASE_BREAKS_LOCKS: u8 = 8;
const PUBLIC: u8 = 16;
const SEALED_TRANSFER: u8 = 32;
const LEVEL_OPTIONS: u8 =
    EXPORTABLE | AUDIT_DATA | IMPORTED | ERASE_BREAKS_LOCKS | PUBLIC | SEALED_TRANSFER;

impl Contents {
    /// The body's bytes.
    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Enough from the beginning, so that no outgrown buffer is given back unzeroized.
        let capacity_bytes = BODY_FIXED_BYTES
            + self.levels.len() * LEVEL_MAX_BYTES
            + self.buckets.len() * BUCKET_MAX_BYTES;
        let mut body = Zeroizing::new(Vec::with_capacity(capacity_bytes));
        let holds = self.held != Held::default();
        let version = if holds {
            BODY_VERSION
        } else {
            BODY_VERSION_HOLDING_NOTHING
        };
        body.extend_from_slice(&version.to_be_bytes());
        write_generation(&self.system, &mut body);
        write_generation(&self.receipt, &mut body);
        if holds {
            body.extend_from_slice(&self.held.to_bytes());
        }
        body.extend_from_slice(&(self.levels.len() as u16).to_be_bytes());
        for (level, wrapped) in self.levels.values() {
            write_level(level, &mut body);
            body.extend_from_slice(wrapped);
        }
        body.extend_from_slice(&(self.buckets.len() as u32).to_be_bytes());
        for (id, bucket) in &self.buckets {
            body.extend_from_slice(&id.0);
            body.extend_from_slice(&bucket.level_id.0);
            body.push(bucket.generations().count() as u8);
            for generation in bucket.generations() {
                write_generation(generation, &mut body);
            }
            body.extend_from_slice(&bucket.catalog);
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
        require(version >= BODY_VERSION_HOLDING_NOTHING, "version")?;
        let contents = Self {
            system: fields.generation("system key")?,
            receipt: fields.generation("receipt key")?,
            held: fields.held(version)?,
            levels: read_levels(&mut fields)?,
            buckets: read_buckets(&mut fields)?,
        };
        require(fields.0.is_empty(), "end")?;
        for bucket in contents.buckets.values() {
            let is_known = contents.levels.contains_key(&bucket.level_id);
            require(is_known, "bucket's level")?;
        }
        Ok(contents)
    }
}

/// Refuses what is no name for a level that is made or imported.
pub(crate) fn check_new_level_name(name: &str) -> Result<(), KeysError> {
    if !is_level_name(name) {
        return Err(KeysError::LevelName);
    }
    if is_region(name) {
        Err(KeysError::LevelNameIsRegion {
            name: name.to_owned(),
        })
    } else {
        Ok(())
    }
}

/// Whether a level may have this name.
fn is_level_name(name: &str) -> bool {
    (1..=LEVEL_NAME_MAX_BYTES).contains(&name.len())
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
}

fn write_generation(generation: &Generation, body: &mut Vec<u8>) {
    body.extend_from_slice(&generation.number.to_be_bytes());
    body.extend_from_slice(&generation.wrapped);
}

fn write_level(level: &LevelEntry, body: &mut Vec<u8>) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    body.extend_from_slice(&level.id.0);
    body.push(level.name.len() as u8);
    body.extend_from_slice(level.name.as_bytes());
    body.push(level.label.rank.number());
    body.extend_from_slice(&level.label.categories.to_bytes());
    body.push(
        flag(level.options.exportable, EXPORTABLE)
            | flag(level.options.audit_data, AUDIT_DATA)
            | flag(level.imported, IMPORTED)
            | flag(level.options.public, PUBLIC)
            | flag(level.options.erase_breaks_locks, ERASE_BREAKS_LOCKS)
            | flag(level.options.sealed_transfer, SEALED_TRANSFER),
    );
    body.push(level.options.approvals);
    body.extend_from_slice(&level.export_count.to_be_bytes());
    body.extend_from_slice(&level.created_ms.to_be_bytes());
    body.extend_from_slice(&level.generation.to_be_bytes());
}

fn read_levels(
    fields: &mut Fields<'_>,
) -> Result<BTreeMap<LevelId, (LevelEntry, Wrapped)>, KeysError> {
    let count = usize::from(u16::from_be_bytes(fields.take("level count")?));
    require(count <= LEVEL_COUNT_MAX, "level count")?;
    let (mut levels, mut names) = (BTreeMap::new(), BTreeSet::new());
    for _ in 0..count {
        let level = fields.level()?;
        require(names.insert(level.name.clone()), "level name")?;
        require(ascends(&levels, &level.id), "order of levels")?;
        levels.insert(level.id, (level, fields.take("level")?));
    }
    Ok(levels)
}

fn read_buckets(fields: &mut Fields<'_>) -> Result<BTreeMap<BucketId, Bucket>, KeysError> {
    let count = u32::from_be_bytes(fields.take("bucket count")?);
    require(count as usize <= BUCKET_COUNT_MAX, "bucket count")?;
    let mut buckets = BTreeMap::new();
    for _ in 0..count {
        let id = BucketId(fields.take("bucket")?);
        require(ascends(&buckets, &id), "order of buckets")?;
        buckets.insert(id, fields.bucket()?);
    }
    Ok(buckets)
}

fn ascends<I: Ord, T>(entries: &BTreeMap<I, T>, id: &I) -> bool {
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

    fn number(&mut self, what: &'static str) -> Result<u32, KeysError> {
        let number = u32::from_be_bytes(self.take(what)?);
        require(number > 0, what)?;
        Ok(number)
    }

    fn generation(&mut self, what: &'static str) -> Result<Generation, KeysError> {
        Ok(Generation {
            number: self.number(what)?,
            wrapped: self.take(what)?,
        })
    }

    fn held(&mut self, version: u16) -> Result<Held, KeysError> {
        const WHAT: &str = "held versions";
        if version == BODY_VERSION_HOLDING_NOTHING {
            return Ok(Held::default());
        }
        let held = Held::from_bytes(&self.take(WHAT)?);
        let held = held.filter(|held| *held != Held::default());
        held.ok_or(KeysError::Malformed { what: WHAT })
    }

    fn level(&mut self) -> Result<LevelEntry, KeysError> {
        const WHAT: &str = "level";
        let id = LevelId(self.take(WHAT)?);
        let (name, label) = (self.level_name()?, self.label()?);
        let ([flags], [approvals]) = (self.take("level options")?, self.take("level options")?);
        require(flags & !LEVEL_OPTIONS == 0, "level options")?;
        require((1..=APPROVALS_MAX).contains(&approvals), "level options")?;
        Ok(LevelEntry {
            id,
            name,
            label,
            options: LevelOptions {
                exportable: flags & EXPORTABLE != 0,
                approvals,
                audit_data: flags & AUDIT_DATA != 0,
                public: flags & PUBLIC != 0,
                erase_breaks_locks: flags & ERASE_BREAKS_LOCKS != 0,
                sealed_transfer: flags & SEALED_TRANSFER != 0,
            },
            imported: flags & IMPORTED != 0,
            export_count: u32::from_be_bytes(self.take(WHAT)?),
            created_ms: i64::from_be_bytes(self.take(WHAT)?),
            generation: self.number(WHAT)?,
        })
    }

    fn bucket(&mut self) -> Result<Bucket, KeysError> {
        const WHAT: &str = "bucket";
        let level_id = LevelId(self.take(WHAT)?);
        let [count] = self.take(WHAT)?;
        let older = match count {
            1 => None,
            2 => Some(self.generation(WHAT)?),
            _ => return Err(KeysError::Malformed { what: WHAT }),
        };
        let current = self.generation(WHAT)?;
        let ascend = older.is_none_or(|older| older.number < current.number);
        require(ascend, "order of generations")?;
        Ok(Bucket {
            level_id,
            catalog: self.take(WHAT)?,
            current,
            older,
        })
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
        require(is_level_name(name), WHAT)?;
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
