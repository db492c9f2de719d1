//! Generations of bucket keys taken back from an earlier state of the keystore, where a rotation
//! has destroyed them and a catalog is from before that.

use coffer_seal::{BucketId, wrap_key};

use crate::error::KeysError;
use crate::keystore::contents::{Bucket, BucketEntry, Contents, Generation, bucket_context};
use crate::keystore::state::Keystore;

impl Keystore {
    /// What a bucket's key could be with generations that `before` has, an earlier state of this
    /// keystore: its current generation beside one of those, or all as it was. None of a bucket
    /// that either does not have: what was erased stays so.
    pub fn could_take_back(&self, before: &Self, bucket_id: BucketId) -> Vec<BucketEntry> {
        let (Some(own), Some(was)) = (self.bucket(bucket_id), before.bucket(bucket_id)) else {
            return Vec::new();
        };
        if self.id() != before.id() {
            return Vec::new();
        }
        let numbers = [Some(was.generation), was.older_generation];
        let beside = { numbers.into_iter().flatten() }
            .filter(|number| *number < own.generation)
            .map(|number| BucketEntry {
                older_generation: Some(number),
                ..own
            });
        let as_it_was = BucketEntry {
            level_id: own.level_id,
            ..was
        };
        beside.chain([as_it_was]).collect()
    }

    /// Has a bucket's key be this, of [`Keystore::could_take_back`]. Levels stay as they are.
    ///
    /// # Errors
    ///
    /// When there is no such bucket, neither has such a generation, or the keystore can't be
    /// written.
    pub fn take_back(&self, before: &Self, wanted: &BucketEntry) -> Result<(), KeysError> {
        let bucket_id = wanted.id;
        let (was, was_level_key) = {
            let state = before.state();
            let was = *state.contents.bucket(bucket_id)?;
            (was, state.contents.level_key(&state.root, was.level_id)?)
        };
        self.change(|contents, root| {
            let own = *contents.bucket(bucket_id)?;
            let level_key = contents.level_key(root, own.level_id)?;
            let numbered = |number: u32| {
                if let Some(kept) = own.generations().find(|kept| kept.number == number) {
                    return Ok(*kept);
                }
                let found = was.generations().find(|found| found.number == number);
                let found = found.ok_or(KeysError::NoSuchGeneration {
                    bucket_id,
                    generation: number,
                })?;
                let key = Contents::bucket_generation(&was_level_key, bucket_id, found)?;
                let wrapped = wrap_key(&level_key, &bucket_context(bucket_id, number), &key);
                Ok::<_, KeysError>(Generation { number, wrapped })
            };
            let is_own = wanted.generation == own.current.number;
            let taken = Bucket {
                level_id: own.level_id,
                // It is wrapped by the current generation.
                catalog: if is_own { own.catalog } else { was.catalog },
                current: numbered(wanted.generation)?,
                older: wanted.older_generation.map(numbered).transpose()?,
            };
            if !is_own && taken.current.number != was.current.number {
                return Err(KeysError::NoSuchGeneration {
                    bucket_id,
                    generation: wanted.generation,
                });
            }
            *contents.bucket_mut(bucket_id)? = taken;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
