//! New root keys, and new generations of level and bucket keys.
//!
//! A level's key wraps nothing but bucket keys, which are all here: so a level is rotated at once,
//! and its old key is gone. A bucket's key wraps data keys in the bucket's catalog: its old
//! generation stays until the caller has wrapped them anew, and says so.

use coffer_seal::{BucketId, LevelId, SecretKey, wrap_key};

use crate::error::KeysError;
use crate::keystore::bucket_key::BucketKey;
use crate::keystore::contents::{
    Contents, Generation, LevelEntry, bucket_context, catalog_context, level_context,
};
use crate::keystore::state::Keystore;

impl Keystore {
    /// Moves the keystore under a new root key and destroys the old one.
    ///
    /// # Errors
    ///
    /// When it can't be written; [`KeysError::Unsettled`] when the new root key is in force and the
    /// old one couldn't be destroyed.
    pub fn rotate_root(&self) -> Result<(), KeysError> {
        self.change_under_new_root(|_, _| Ok(())).map(drop)
    }

    /// Gives a level a new key, wraps its bucket keys under it, and destroys the old one as an
    /// erase does. The bucket keys themselves stay.
    ///
    /// # Errors
    ///
    /// When there is no such level; as [`Keystore::erase_level`].
    pub fn rotate_level(&self, level_id: LevelId) -> Result<LevelEntry, KeysError> {
        let (level, _) = self.change_under_new_root(|contents, root| {
            let old_key = contents.level_key(root, level_id)?;
            let mut level = contents.level(level_id)?.0.clone();
            level.generation = next(level.generation)?;
            let new_key = SecretKey::generate();
            contents.rewrap_buckets(level_id, &old_key, &new_key)?;
            let wrapped = wrap_key(root.secret(), &level_context(&level), &new_key);
            contents.levels.insert(level_id, (level.clone(), wrapped));
            Ok(level)
        })?;
        Ok(level)
    }

    /// Gives a bucket a new key, which wraps from now on; the old generation still unwraps, until
    /// [`Keystore::retire_bucket_generation`].
    ///
    /// # Errors
    ///
    /// [`KeysError::RotationUnderWay`] while an older generation is kept; when there is no such
    /// bucket, or the keystore can't be written.
    pub fn rotate_bucket(&self, bucket_id: BucketId) -> Result<BucketKey, KeysError> {
        self.change(|contents, root| {
            let level_id = contents.bucket(bucket_id)?.level_id;
            let level_key = contents.level_key(root, level_id)?;
            let bucket = contents.bucket_mut(bucket_id)?;
            if bucket.older.is_some() {
                return Err(KeysError::RotationUnderWay { bucket_id });
            }
            let number = next(bucket.current.number)?;
            let context = bucket_context(bucket_id, number);
            let key = SecretKey::generate();
            let wrapped = wrap_key(&level_key, &context, &key);
            let old_key = Contents::bucket_generation(&level_key, bucket_id, &bucket.current)?;
            let catalog_key = Contents::catalog_key(bucket, bucket_id, &old_key)?;
            let of_catalog = catalog_context(bucket_id, number);
            bucket.catalog = wrap_key(&key, &of_catalog, &catalog_key);
            bucket.older = Some(bucket.current);
            bucket.current = Generation { number, wrapped };
            Ok(())
        })?;
        self.bucket_key(bucket_id)
    }

    /// Destroys the older generation of a bucket's key, as an erase does: the caller has made sure
    /// that no data key is under it any more.
    ///
    /// # Errors
    ///
    /// [`KeysError::NoSuchGeneration`] when that is not the older generation, such as when it is
    /// destroyed already; as [`Keystore::erase_level`].
    pub fn retire_bucket_generation(
        &self,
        bucket_id: BucketId,
        generation: u32,
    ) -> Result<(), KeysError> {
        self.change_under_new_root(|contents, _| {
            let bucket = contents.bucket_mut(bucket_id)?;
            match bucket.older {
                Some(older) if older.number == generation => bucket.older = None,
                _ => {
                    return Err(KeysError::NoSuchGeneration {
                        bucket_id,
                        generation,
                    });
                }
            }
            Ok(())
        })?;
        Ok(())
    }
}

fn next(generation: u32) -> Result<u32, KeysError> {
    generation
        .checked_add(1)
        .ok_or(KeysError::GenerationsExhausted)
}
