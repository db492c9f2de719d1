//! Buckets whose key was destroyed, and that an older copy of `system.db` brought back: nothing in
//! them opens any more, so nothing is locked there, and an erase takes away what is left, which is
//! the name and noise.
//!
//! That a key was destroyed is noted where an older copy is gone on from: only a keystore that is
//! of after that copy tells it. One that is older may lack keys that a newer one has.
//!
//! Where the keystore lacks the level as well, the level was erased, or the keystore came from a
//! sealed copy that leaves it out: which, nothing here tells. Neither its label is known, so that
//! those who look after the server are told of its buckets, and an erase, which destroys no key,
//! says it so.

use coffer_keys::{BucketEntry, ErasedWhat, LevelEntry};
use coffer_seal::BucketId;

use super::journal::EraseDraft;
use crate::error::{AdministrationError, Result, VaultError};
use crate::system::BucketRow;
use crate::vault::{Inner, Vault};

impl Inner {
    /// Whether the bucket's key was destroyed before an older copy brought the bucket back.
    pub(crate) fn is_key_destroyed(&self, row: &BucketRow) -> bool {
        let bound = self.system.lock_bound(row);
        bound.is_ok_and(|bound| bound.is_key_destroyed) && !self.keystore.holds_bucket(row.id)
    }

    /// Whether it is such a bucket, of a level that is not there either.
    pub(crate) fn is_level_gone(&self, row: &BucketRow) -> bool {
        self.keystore.level(row.level_id).is_none() && self.is_key_destroyed(row)
    }

    /// The level of a bucket, as far as it is known.
    pub(crate) fn level_to_erase(&self, row: &BucketRow) -> Option<LevelEntry> {
        let unknown = || LevelEntry::unknown(row.level_id);
        let level = self.keystore.level(row.level_id);
        level.or_else(|| self.is_key_destroyed(row).then(unknown))
    }

    /// Why a bucket that the keystore has no key for is refused.
    pub(crate) fn without_key(&self, row: &BucketRow) -> VaultError {
        let bucket = row.name.to_string();
        let error = if self.is_level_gone(row) {
            AdministrationError::BucketLevelGone { bucket }
        } else if self.is_key_destroyed(row) {
            AdministrationError::BucketKeyDestroyed { bucket }
        } else {
            AdministrationError::BucketKeyMissing { bucket }
        };
        error.into()
    }

    /// Refuses a bucket that the keystore has no key for, to who may know of it.
    ///
    /// # Errors
    /// [`AdministrationError::BucketKeyDestroyed`], `BucketLevelGone`, `BucketKeyMissing`.
    pub(crate) fn check_key(&self, row: &BucketRow) -> Result<()> {
        if self.keystore.holds_bucket(row.id) {
            return Ok(());
        }
        // The keystore of a standby may be newer than what names its buckets.
        Err(match self.standby {
            Some(_) => VaultError::NoSuchBucket,
            None => self.without_key(row),
        })
    }

    /// Refuses a bucket whose key may be in a newer keystore: it is not known to be destroyed.
    ///
    /// # Errors
    /// [`AdministrationError::BucketKeyMissing`].
    pub(crate) fn refuse_missing_key(&self, row: &BucketRow) -> Result<()> {
        if self.keystore.holds_bucket(row.id) || self.is_key_destroyed(row) {
            Ok(())
        } else {
            Err(self.without_key(row))
        }
    }

    /// Whether the bucket is there, without a key.
    pub(super) fn is_there_without_key(&self, id: BucketId) -> bool {
        let row = self.system.bucket_of_id(id);
        row.is_some_and(|row| self.is_key_destroyed(&row))
    }
}

impl Vault {
    /// The level's buckets of this kind.
    pub(super) fn without_keys(&self, level: &LevelEntry) -> Vec<BucketEntry> {
        let rows = self.rows_of_level(level).into_iter();
        let lacking = rows.filter(|row| self.inner.is_key_destroyed(row));
        lacking
            .map(|row| BucketEntry::without_key(row.id, row.level_id))
            .collect()
    }
}

impl EraseDraft {
    /// Whether it is of one bucket, for which there was no key when it was asked for.
    pub(super) fn has_no_key(&self) -> bool {
        self.what == ErasedWhat::Bucket && self.buckets.iter().all(|bucket| !bucket.entry.has_key())
    }

    /// What a receipt says of buckets without a key.
    pub(super) fn keyless_told(&self) -> impl Iterator<Item = String> {
        let is_known = self.level.is_known();
        let keyless = self.buckets.iter().filter(|bucket| !bucket.entry.has_key());
        keyless.map(move |bucket| {
            let name = bucket.name.as_deref().unwrap_or("without a name");
            let id = bucket.entry.id;
            let lacked = if is_known {
                format!(
                    "the keystore had no key for bucket {name}, {id}, any more when the erase was \
                     asked for: it had been destroyed before an older copy of the server's \
                     database brought the bucket back"
                )
            } else {
                format!(
                    "the keystore had neither a key for bucket {name}, {id}, nor its level when \
                     the erase was asked for: the level had been erased before an older copy of \
                     the server's database brought the bucket back; or the keystore came from a \
                     sealed copy that leaves the level out, and then the one that it was taken \
                     from may hold the key"
                )
            };
            format!(
                "{lacked}. What it held is not counted, and which objects were locked in it can't \
                 be read any more"
            )
        })
    }
}
