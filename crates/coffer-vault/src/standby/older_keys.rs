//! Keys that a promotion without the copy takes back: where a rotation ended at the original while
//! the next state was being fetched, the folder has the keystore of that, and some catalogs of the
//! one before, whose blobs are under keys that are destroyed in it.
//!
//! The state that is served has them still. Only they are taken from it: what was erased or
//! disabled meanwhile stays so. Where the folder has none of the server that is followed, or one
//! that does not open, as after a crash while it was placed, all of it is taken from the state.

use std::path::{Path, PathBuf};

use coffer_keys::{BucketEntry, KeyFolder, Keystore};
use coffer_seal::KeystoreId;
use coffer_store::{Catalog, StoreError};

use super::{Standby, keystore, states};
use crate::blocking::blocking;
use crate::error::Result;

impl Standby {
    /// Has the keystore of the folder open what the catalogs there name, with keys of this state,
    /// as far as it has them. Which keystore it is, and of which generation.
    pub(super) async fn take_back_keys(&self, state: PathBuf) -> Result<(KeystoreId, u64)> {
        let (source, secrets) = (self.vault.source.clone(), self.vault.secrets.clone());
        let (data, of_source, with) = (self.data().to_owned(), source.clone(), secrets.clone());
        let (own, before) = blocking(move || {
            let open = |folder: &Path| keystore::open(folder, of_source.as_ref(), &with);
            let (own, before) = (open(&data), open(&state));
            let is_own = match (&own, &before) {
                (Ok(own), Ok(before)) => keystore::is_same_server(own, before),
                (Err(_), Ok(_)) => false,
                (_, Err(_)) => true,
            };
            if is_own {
                return Ok((own?, before));
            }
            tracing::warn!(
                "the keystore of the folder is not of the server that is followed: that of the \
                 state that is served takes its place"
            );
            drop(own);
            states::put_back_keys(&data, &state)?;
            Ok((open(&data)?, before))
        })
        .await?;
        let unchanged = (own.id(), own.generation());
        let before = match before {
            Ok(before) => before,
            Err(error) => {
                tracing::error!(
                    %error,
                    "the keystore of the state that is served does not open: where a rotation \
                     ended since, objects are lost"
                );
                return Ok(unchanged);
            }
        };
        let mut wanted = Vec::new();
        for entry in before.buckets() {
            wanted.extend(self.lacking(&own, &before, &entry).await);
        }
        drop(own);
        if wanted.is_empty() {
            return Ok(unchanged);
        }
        let data = self.data().to_owned();
        blocking(move || {
            // It is this server's from now on.
            let keys = KeyFolder::new(&data).accepting_rollback(true);
            let (keystore, _) = keys.open(source.as_ref(), &secrets)?;
            for entry in &wanted {
                keystore.take_back(&before, entry)?;
                tracing::warn!(
                    bucket = %entry.id,
                    "its catalog is from before a rotation: older keys are taken back"
                );
            }
            Ok((keystore.id(), keystore.generation()))
        })
        .await
    }

    /// What the key of a bucket is to be for its catalog in the folder; none where it is that, or
    /// nothing is known to help.
    async fn lacking(
        &self,
        own: &Keystore,
        before: &Keystore,
        was: &BucketEntry,
    ) -> Option<BucketEntry> {
        let now = own.bucket(was.id)?;
        let kept = generations(&now);
        let was_kept = generations(was);
        if was_kept.iter().all(|number| kept.contains(number)) {
            return None;
        }
        match self.best_key(own, before, &now).await {
            Ok(best) => best,
            Err(error) => {
                // One that was not fetched yet, or is damaged: it is refused when it is used.
                tracing::warn!(bucket = %was.id, %error, "which keys it needs is not known");
                None
            }
        }
    }

    async fn best_key(
        &self,
        own: &Keystore,
        before: &Keystore,
        now: &BucketEntry,
    ) -> Result<Option<BucketEntry>> {
        let folder = self.data().join("buckets").join(now.id.to_string());
        let key = own.bucket_key(now.id)?.catalog_key();
        let catalog = Catalog::open_read_only(&folder, &key).await?;
        let counted = async {
            let mut best = None;
            let mut least = catalog
                .count_of_neither_generation(generations(now))
                .await?;
            for entry in own.could_take_back(before, now.id) {
                if least == 0 {
                    break;
                }
                let count = catalog
                    .count_of_neither_generation(generations(&entry))
                    .await?;
                if count < least {
                    (best, least) = (Some(entry), count);
                }
            }
            Ok::<_, StoreError>((best, least))
        };
        let counted = counted.await;
        catalog.close().await;
        let (best, least) = counted?;
        if least > 0 {
            tracing::error!(
                bucket = %now.id,
                count = least,
                "its catalog needs keys that rotations have destroyed: objects of it are lost"
            );
        }
        Ok(best)
    }
}

/// The generations of a bucket's key: the one before is said to be the current where there is none.
fn generations(entry: &BucketEntry) -> [u32; 2] {
    [
        entry.generation,
        entry.older_generation.unwrap_or(entry.generation),
    ]
}
