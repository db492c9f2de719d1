//! Buckets of a level that have a key here and are not in use: those of an imported level whose
//! name is taken or whose folder is missing, and any that `system.db` does not know. No bound tells
//! of their locks, so their catalogs are asked, and what can't be read counts as locked.

use coffer_keys::LevelEntry;
use coffer_seal::BucketId;
use coffer_store::Catalog;

use super::journal::EraseDraft;
use crate::error::{AdministrationError, Result};
use crate::system::{Kind, LockBound};
use crate::vault::Vault;

impl Vault {
    /// Whether locks let those be erased along with their level. None is made, adopted or deleted
    /// meanwhile: `changing_buckets` is held. Returns what a receipt says of them.
    ///
    /// # Errors
    /// [`AdministrationError::StrayLocked`].
    pub(super) async fn check_strays(&self, level: &LevelEntry) -> Result<String> {
        let strays = self.strays(level)?;
        let count = strays.len();
        if level.options.erase_breaks_locks && count > 0 {
            return Ok(format!(
                "; whether objects were locked in buckets that were not in use here, which were \
                 {count}, was not looked at"
            ));
        }
        for id in strays {
            if let Some(why) = self.stray_locked(id).await {
                let bucket = id.to_string();
                return Err(AdministrationError::StrayLocked { bucket, why }.into());
            }
        }
        Ok(String::new())
    }

    /// The same, before an erase is asked for, or carried out.
    pub(super) async fn check_strays_before(&self, level: &LevelEntry) -> Result<()> {
        if self.strays(level)?.is_empty() {
            return Ok(());
        }
        let _changing = self.inner.changing_buckets.lock().await;
        self.check_strays(level).await.map(drop)
    }

    /// But for those of an erase that has begun, whose rows are out of sight.
    fn strays(&self, level: &LevelEntry) -> Result<Vec<BucketId>> {
        let system = &self.inner.system;
        let draft = |id| system.document::<EraseDraft>(Kind::Erase, id);
        let mut strays = Vec::new();
        for entry in self.inner.keystore.buckets() {
            let is_known = system.bucket_of_id(entry.id).is_some() || system.is_going(entry.id);
            if entry.level_id == level.id && !is_known {
                strays.push(entry.id);
            }
        }
        if strays.is_empty() {
            return Ok(strays);
        }
        let of_level = draft(level.id.into())?.map(|draft| draft.bucket_ids());
        let begun = of_level.unwrap_or_default();
        let mut left = Vec::new();
        for id in strays {
            if !begun.contains(&id) && draft(id.into())?.is_none() {
                left.push(id);
            }
        }
        Ok(left)
    }

    /// Why such a bucket counts as locked, if it does.
    async fn stray_locked(&self, id: BucketId) -> Option<String> {
        let dir = self.inner.folder.bucket(id);
        if !dir.join("catalog.db").exists() {
            // One that was being made here has nothing in it yet.
            let is_begun = !self.is_imported(id) && !dir.join("blobs").exists();
            return (!is_begun).then(|| "its catalog is not here".to_owned());
        }
        match self.locks_in_folder(id).await {
            Ok(bound) => {
                let now_ms = self.lock_now_ms();
                let stands = |until: Option<i64>| until.is_some_and(|until_ms| until_ms > now_ms);
                let is_locked = bound.has_hold
                    || stands(bound.compliance_until_ms)
                    || stands(bound.governance_until_ms);
                is_locked.then(|| "objects in it are locked".to_owned())
            }
            Err(error) => Some(format!("its catalog can't be read ({error})")),
        }
    }

    async fn locks_in_folder(&self, id: BucketId) -> Result<LockBound> {
        let key = self.inner.keystore.bucket_key(id)?;
        let dir = self.inner.folder.bucket(id);
        let catalog = Catalog::open(&dir, &key.catalog_key()).await?;
        let locked = catalog.locked().await;
        catalog.close().await;
        Ok(LockBound::of(locked?))
    }
}
