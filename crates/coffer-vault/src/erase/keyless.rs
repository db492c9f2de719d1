//! Buckets whose key was destroyed, and that an older copy of `system.db` brought back: nothing in
//! them opens any more, so nothing is locked there, and an erase takes away what is left, which is
//! the name and noise.
//!
//! That a key was destroyed is noted where an older copy is gone on from: only a keystore that is
//! of after that copy tells it. One that is older may lack keys that a newer one has.

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

    /// Why a bucket that the keystore has no key for is refused.
    pub(crate) fn without_key(&self, row: &BucketRow) -> VaultError {
        let bucket = row.name.to_string();
        let error = if self.is_key_destroyed(row) {
            AdministrationError::BucketKeyDestroyed { bucket }
        } else {
            AdministrationError::BucketKeyMissing { bucket }
        };
        error.into()
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
        let keyless = self.buckets.iter().filter(|bucket| !bucket.entry.has_key());
        keyless.map(|bucket| {
            let name = bucket.name.as_deref().unwrap_or("without a name");
            format!(
                "the keystore had no key for bucket {name}, {}, any more when the erase was asked \
                 for: it had been destroyed before an older copy of the server's database brought \
                 the bucket back. What it held is not counted, and which objects were locked in it \
                 can't be read any more",
                bucket.entry.id
            )
        })
    }
}
