//! Buckets' keys: made, unwrapped, destroyed.

use coffer_seal::{BucketId, LevelId, SecretKey, wrap_key};

use crate::error::KeysError;
use crate::keystore::bucket_key::BucketKey;
use crate::keystore::contents::{
    Bucket, BucketEntry, Contents, FIRST_GENERATION, Generation, bucket_context, catalog_context,
};
use crate::keystore::state::Keystore;
use crate::limits::BUCKET_COUNT_MAX;

impl Keystore {
    /// All buckets, by id.
    pub fn buckets(&self) -> Vec<BucketEntry> {
        let state = self.state();
        let buckets = state.contents.buckets.iter();
        buckets.map(|(id, bucket)| bucket.entry(*id)).collect()
    }

    /// A bucket.
    pub fn bucket(&self, bucket_id: BucketId) -> Option<BucketEntry> {
        let state = self.state();
        let bucket = state.contents.buckets.get(&bucket_id)?;
        Some(bucket.entry(bucket_id))
    }

    /// Whether it has a bucket's key.
    pub fn holds_bucket(&self, bucket_id: BucketId) -> bool {
        self.state().contents.buckets.contains_key(&bucket_id)
    }

    /// Makes a bucket's first key, wrapped by its level's.
    ///
    /// # Errors
    ///
    /// When the bucket has a key, the level doesn't exist, the keystore is full, or it can't be
    /// written.
    pub fn add_bucket(
        &self,
        bucket_id: BucketId,
        level_id: LevelId,
    ) -> Result<BucketKey, KeysError> {
        let (key, catalog_key) = (SecretKey::generate(), SecretKey::generate());
        self.change(|contents, root| {
            if contents.buckets.contains_key(&bucket_id) {
                return Err(KeysError::BucketExists { bucket_id });
            }
            let count = contents.buckets.len();
            if count >= BUCKET_COUNT_MAX {
                return Err(KeysError::TooManyBuckets { count });
            }
            let level_key = contents.level_key(root, level_id)?;
            let context = bucket_context(bucket_id, FIRST_GENERATION);
            let of_catalog = catalog_context(bucket_id, FIRST_GENERATION);
            let bucket = Bucket {
                level_id,
                catalog: wrap_key(&key, &of_catalog, &catalog_key),
                current: Generation {
                    number: FIRST_GENERATION,
                    wrapped: wrap_key(&level_key, &context, &key),
                },
                older: None,
            };
            contents.buckets.insert(bucket_id, bucket);
            Ok(())
        })?;
        Ok(BucketKey::new(
            bucket_id,
            (FIRST_GENERATION, key),
            None,
            catalog_key,
        ))
    }

    /// A bucket's key, unwrapped.
    ///
    /// # Errors
    ///
    /// [`KeysError::NoSuchBucket`] when it has none.
    pub fn bucket_key(&self, bucket_id: BucketId) -> Result<BucketKey, KeysError> {
        let state = self.state();
        let bucket = state.contents.bucket(bucket_id)?;
        let level_key = state.contents.level_key(&state.root, bucket.level_id)?;
        let unwrap = |generation: &Generation| {
            let key = Contents::bucket_generation(&level_key, bucket_id, generation)?;
            Ok::<_, KeysError>((generation.number, key))
        };
        let older = bucket.older.as_ref().map(unwrap).transpose()?;
        let current = unwrap(&bucket.current)?;
        let catalog_key = Contents::catalog_key(bucket, bucket_id, &current.1)?;
        Ok(BucketKey::new(bucket_id, current, older, catalog_key))
    }

    /// Destroys a bucket's key: when this returns, neither copy holds it. For buckets without
    /// objects: older copies of the keystore still open, unlike after [`Keystore::erase_bucket`].
    ///
    /// # Errors
    ///
    /// [`KeysError::NoSuchBucket`] when it has none; both copies are as new then, even when an
    /// earlier attempt failed half-way.
    pub fn destroy_bucket(&self, bucket_id: BucketId) -> Result<(), KeysError> {
        self.change(|contents, _| {
            contents
                .buckets
                .remove(&bucket_id)
                .map(|_| ())
                .ok_or(KeysError::NoSuchBucket { bucket_id })
        })
    }
}

#[cfg(test)]
mod tests;
