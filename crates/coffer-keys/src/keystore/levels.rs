//! Levels: made, and erased.

use coffer_label::Label;
use coffer_seal::{BucketId, KeystoreId, LevelId, SecretKey, wrap_key};
use serde::{Deserialize, Serialize};

use crate::error::KeysError;
use crate::keystore::body::check_new_level_name;
use crate::keystore::contents::{
    BucketEntry, FIRST_GENERATION, LevelEntry, LevelOptions, level_context,
};
use crate::keystore::state::Keystore;
use crate::limits::{APPROVALS_MAX, LEVEL_COUNT_MAX};
use crate::root::source::RootMedium;
use coffer_durable::now_ms;

/// What an erase destroyed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    /// Whether it was the whole level, or one bucket of it.
    pub what: ErasedWhat,
    /// The level, as it was.
    pub level: LevelEntry,
    /// The buckets whose keys are destroyed, by id.
    pub buckets: Vec<BucketEntry>,
    /// The keystore that held them.
    pub keystore_id: KeystoreId,
    /// Its generation without them.
    pub keystore_generation: u64,
    /// What held the root key that was destroyed with them.
    pub medium: RootMedium,
    /// When it was complete, in milliseconds since 1970 (UTC).
    pub erased_ms: i64,
}

/// What was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErasedWhat {
    /// A level with all of its buckets.
    Level,
    /// One bucket.
    Bucket,
}

impl Keystore {
    /// Makes a level and its key.
    ///
    /// # Errors
    ///
    /// When the name is none, a region's or taken, there are too many levels or approvals, or the
    /// keystore can't be written.
    pub fn add_level(
        &self,
        name: &str,
        label: Label,
        options: LevelOptions,
    ) -> Result<LevelEntry, KeysError> {
        check_new_level_name(name)?;
        if !(1..=APPROVALS_MAX).contains(&options.approvals) {
            return Err(KeysError::Approvals {
                count: options.approvals,
            });
        }
        self.change(|contents, root| {
            if contents
                .levels
                .values()
                .any(|(level, _)| level.name == name)
            {
                return Err(KeysError::LevelExists {
                    name: name.to_owned(),
                });
            }
            let count = contents.levels.len();
            if count >= LEVEL_COUNT_MAX {
                return Err(KeysError::TooManyLevels { count });
            }
            let level = LevelEntry {
                id: LevelId::random(),
                name: name.to_owned(),
                label,
                options,
                imported: false,
                export_count: 0,
                generation: FIRST_GENERATION,
                created_ms: now_ms(),
            };
            let wrapped = wrap_key(
                root.secret(),
                &level_context(&level),
                &SecretKey::generate(),
            );
            contents.levels.insert(level.id, (level.clone(), wrapped));
            Ok(level)
        })
    }

    /// The level of this name.
    pub fn level_named(&self, name: &str) -> Option<LevelEntry> {
        let state = self.state();
        let mut levels = state.contents.levels.values();
        levels
            .find(|(level, _)| level.name == name)
            .map(|(level, _)| level.clone())
    }

    /// Destroys a level's key and those of its buckets. When this returns, neither copy holds them,
    /// and the root key under which older copies were sealed is destroyed. It takes as long as
    /// writing the keystore, however much the level holds.
    ///
    /// # Errors
    ///
    /// When there is no such level, or the keystore can't be written, and then the level may be
    /// there after a restart or not. [`KeysError::Unsettled`] when it is gone from the newest copy
    /// and something else couldn't be destroyed: [`Keystore::settle`], or a restart, completes it.
    pub fn erase_level(&self, level_id: LevelId) -> Result<Erased, KeysError> {
        let ((level, buckets), generation) = self.change_under_new_root(|contents, _| {
            let (level, _) = contents
                .levels
                .remove(&level_id)
                .ok_or(KeysError::NoSuchLevel { level_id })?;
            let of_level = contents.buckets_of(level_id);
            let buckets: Vec<_> = of_level.map(|(id, bucket)| bucket.entry(id)).collect();
            for bucket in &buckets {
                contents.buckets.remove(&bucket.id);
            }
            Ok((level, buckets))
        })?;
        Ok(self.erased(ErasedWhat::Level, level, buckets, generation))
    }

    /// Destroys a bucket's keys as [`Keystore::erase_level`] does a level's.
    ///
    /// # Errors
    ///
    /// As [`Keystore::erase_level`], with [`KeysError::NoSuchBucket`].
    pub fn erase_bucket(&self, bucket_id: BucketId) -> Result<Erased, KeysError> {
        let ((level, bucket), generation) = self.change_under_new_root(|contents, _| {
            let bucket = contents.bucket(bucket_id)?.entry(bucket_id);
            contents.buckets.remove(&bucket_id);
            Ok((contents.level(bucket.level_id)?.0.clone(), bucket))
        })?;
        Ok(self.erased(ErasedWhat::Bucket, level, vec![bucket], generation))
    }

    fn erased(
        &self,
        what: ErasedWhat,
        level: LevelEntry,
        buckets: Vec<BucketEntry>,
        keystore_generation: u64,
    ) -> Erased {
        Erased {
            what,
            level,
            buckets,
            keystore_id: self.id(),
            keystore_generation,
            medium: self.source().medium(),
            erased_ms: now_ms(),
        }
    }
}

#[cfg(test)]
mod tests;
