//! The end of a rotation: when the older generations may go, and that they are gone.
//!
//! A sealed copy that a keystore goes along with has the newest one alone. So a generation is
//! destroyed only when the newest head of each such copy has the catalogs with nothing under it:
//! until then the keystores that are carried there hold both. And a rotation has ended only when
//! each has taken the keystore without it. What is away is waited for, until it is given up.
//!
//! No head gets a catalog any more whose bucket is ordered to be erased, which may be completed
//! days later. Nothing is waited for there: all its generations go with the erase.

use coffer_seal::BucketId;

use super::{Plan, settled};
use crate::blocking::blocking;
use crate::error::Result;
use crate::limits::{ROTATION_LOOKS_EVERY, ROTATION_TELLS_AFTER};
use crate::vault::Vault;

/// An older generation of a bucket's key that wraps nothing any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeftGeneration {
    pub(super) id: BucketId,
    pub(super) older: u32,
    /// With so many commits the catalog had nothing under it.
    pub(super) commits: u64,
}

impl Vault {
    /// Returns when no copy that a keystore goes along with has a newest head that needs these
    /// generations.
    pub(super) async fn wait_for_catalogs(
        &self,
        plan: &Plan,
        left: &[LeftGeneration],
    ) -> Result<()> {
        self.wait_for_copies(plan, || {
            // Those that are gone meanwhile, or are to go, are in no head any more.
            let kept = left.iter().filter(|left| self.is_to_retire(left));
            let wanted: Vec<_> = kept.map(|left| (left.id, left.commits)).collect();
            self.inner.copies.without_catalogs(&wanted)
        })
        .await
    }

    /// Returns when all copies that a keystore goes along with have taken what it is now.
    pub(super) async fn wait_for_keystores(&self, plan: &Plan) -> Result<()> {
        let generation = self.inner.keystore.generation();
        self.wait_for_copies(plan, || self.inner.copies.without_keystore(generation))
            .await
    }

    async fn wait_for_copies(
        &self,
        plan: &Plan,
        behind: impl Fn() -> Result<Vec<String>>,
    ) -> Result<()> {
        let mut look_count: u32 = 0;
        loop {
            let names = behind()?;
            let is_done = names.is_empty();
            if look_count == ROTATION_TELLS_AFTER && !is_done {
                tracing::warn!(
                    copies = names.join(", "),
                    "a rotation waits for copies that the keystore goes along with: the older \
                     keys are destroyed when they are up to date, or removed"
                );
            }
            self.tell(plan, |told| told.waits_for = names);
            if is_done {
                return Ok(());
            }
            look_count = look_count.saturating_add(1);
            tokio::time::sleep(ROTATION_LOOKS_EVERY).await;
        }
    }

    fn is_kept(&self, left: &LeftGeneration) -> bool {
        let entry = self.inner.keystore.bucket(left.id);
        entry.is_some_and(|entry| entry.older_generation == Some(left.older))
    }

    /// Whether it is there, and not left to an erase.
    fn is_to_retire(&self, left: &LeftGeneration) -> bool {
        self.is_kept(left) && !self.is_ordered(left.id)
    }

    /// Whether the bucket's erase is ordered: one that is under way, or in doubt, may still be
    /// called off.
    fn is_ordered(&self, id: BucketId) -> bool {
        if !self.inner.system.is_going(id) {
            return false;
        }
        let changing = self.inner.changing_buckets.try_lock();
        changing.is_ok() && self.is_surely_ordered(id)
    }

    /// The same where nothing of buckets changes: `changing_buckets` is held.
    fn is_surely_ordered(&self, id: BucketId) -> bool {
        let system = &self.inner.system;
        system.is_going(id) && !system.is_an_erase_in_doubt()
    }

    /// Destroys it, unless it is gone or is left to an erase.
    pub(super) async fn retire(&self, left: &LeftGeneration) -> Result<()> {
        let _turn = self.inner.one_rotation.lock().await;
        // A round of copies may hold it: then nothing can be said yet.
        let changing = self.inner.changing_buckets.lock().await;
        if !self.is_kept(left) || self.is_surely_ordered(left.id) {
            return Ok(());
        }
        drop(changing);
        let (inner, id, older) = (self.inner.clone(), left.id, left.older);
        blocking(move || {
            let retired = inner.keystore.retire_bucket_generation(id, older);
            settled(&inner.keystore, retired)
        })
        .await?;
        self.inner.at("older destroyed");
        // Without the older generation, which goes from memory with its last reader. One that is
        // erased meanwhile is let go of.
        let inner = &self.inner;
        let opened = inner
            .open_buckets
            .open(&inner.folder, &inner.keystore, id)
            .await;
        if let (Ok(bucket), Ok(key)) = (opened, inner.keystore.bucket_key(id)) {
            bucket.take_key(key).await;
        }
        Ok(())
    }
}
