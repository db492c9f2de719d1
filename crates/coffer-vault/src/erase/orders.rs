//! Erases as orders: from when its draft is kept, what is to be erased stays out of use, and an
//! erase that is asked for again, or a start, goes on with it. Where it turns out that no draft is
//! kept nothing was erased, and the buckets are shown again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_keys::receipt::Receipt;
use coffer_keys::{KeysError, LevelEntry};
use coffer_seal::{BucketId, LevelId};

use super::destroy::{Destroyed, destroy_keys, destroyed_before};
use super::finish::CutOff;
use super::journal::EraseDraft;
use crate::blocking::blocking;
use crate::error::{AdministrationError, Result, VaultError};
use crate::limits::ERASE_DOUBT_LOOK;
use crate::open_buckets::OpenBucket;
use crate::system::{BucketRow, DocumentId, Kind, LockBound};
use crate::vault::{Inner, Vault};

/// What an erase has taken out of use.
pub(super) struct Aside {
    /// The document that its draft is kept as.
    pub(super) draft_id: DocumentId,
    pub(super) ids: Vec<BucketId>,
    /// Those of them that no erase before has ordered.
    pub(super) unordered: Vec<BucketId>,
    /// Where all of it is to be erased.
    pub(super) level: Option<LevelId>,
    /// Those of the buckets that were in sight.
    pub(super) hidden: Vec<Arc<BucketRow>>,
}

impl Inner {
    /// The level that is like this, whose erase is ordered and not complete, or that of a bucket of
    /// it.
    pub(crate) fn level_ordered(
        &self,
        is_like: impl Fn(&LevelEntry) -> bool,
    ) -> Result<Option<LevelEntry>> {
        let drafts = self.system.documents::<EraseDraft>(Kind::Erase)?;
        let mut levels = drafts.into_iter().map(|draft| draft.level);
        Ok(levels.find(is_like))
    }

    /// What locks a bucket may hold. One whose erase was ordered, and whose catalog the copy had
    /// left out that is gone on from, holds what it held then; as soon as there is a catalog, that
    /// is not known.
    pub(crate) fn lock_bound(&self, row: &BucketRow) -> Result<LockBound> {
        let bound = self.system.lock_bound(row)?;
        if bound.is_key_destroyed {
            let is_back = self.keystore.holds_bucket(row.id);
            let known = if is_back {
                LockBound::UNKNOWN
            } else {
                LockBound::default()
            };
            return Ok(known);
        }
        if bound.is_left_to_erase && self.folder.has_catalog(row.id) {
            return Ok(LockBound::UNKNOWN);
        }
        Ok(bound)
    }

    /// Whether the bucket is one of these, or its key is destroyed: there is nothing of it that
    /// opens.
    pub(crate) fn is_left_to_erase(&self, row: &BucketRow) -> bool {
        let bound = self.lock_bound(row);
        bound.is_ok_and(|bound| bound.is_left_to_erase) || self.is_key_destroyed(row)
    }

    /// Refuses to make or take in a level in place of one whose erase is not complete.
    ///
    /// # Errors
    /// [`AdministrationError::LevelGoing`].
    pub(crate) fn refuse_ordered(&self, is_like: impl Fn(&LevelEntry) -> bool) -> Result<()> {
        match self.level_ordered(is_like)? {
            Some(LevelEntry { name: level, .. }) => {
                Err(AdministrationError::LevelGoing { level }.into())
            }
            None => Ok(()),
        }
    }
}

impl Vault {
    /// Nothing was erased, for this reason; or it is in doubt whether the draft is kept.
    pub(super) async fn spare<T>(
        &self,
        aside: Aside,
        open: Vec<Arc<OpenBucket>>,
        error: VaultError,
    ) -> Result<T> {
        let is_in_doubt = matches!(error, VaultError::SystemInDoubt);
        if is_in_doubt {
            self.inner.system.begin_erase_doubt(&aside.unordered);
        }
        self.let_go(&aside.ids, open).await;
        if is_in_doubt {
            self.look_later(aside);
        } else {
            self.show_again(aside);
        }
        Err(error)
    }

    /// Nothing was erased.
    fn show_again(&self, aside: Aside) {
        // One may have been in doubt, or still be at work.
        let shown: Vec<BucketId> = aside.hidden.iter().map(|row| row.id).collect();
        let own = |id: &&BucketId| shown.contains(*id) || !self.inner.system.is_going(**id);
        let own: Vec<BucketId> = aside.ids.iter().filter(own).copied().collect();
        for id in &own {
            self.inner.freshness.commits.is_to_be_met(*id);
        }
        self.inner.open_buckets.unbar(&own);
        self.inner.system.put_back(aside.hidden, aside.level);
    }

    /// No key was destroyed, and none is in doubt: the draft is dropped, and the buckets are shown
    /// again. As long as it is there the erase is an order, and as long as that is in doubt they
    /// are out of use.
    pub(super) async fn call_off<T>(&self, aside: Aside, source: KeysError) -> Result<T> {
        let (inner, id) = (self.inner.clone(), aside.draft_id);
        match blocking(move || inner.system.drop_document(Kind::Erase, id)).await {
            Ok(_) => {
                self.show_again(aside);
                Err(source.into())
            }
            Err(VaultError::SystemInDoubt) => {
                self.inner.system.begin_erase_doubt(&aside.unordered);
                self.look_later(aside);
                Err(VaultError::SystemInDoubt)
            }
            Err(error) => {
                tracing::warn!(%error, "the draft of an erase that failed is left");
                Err(VaultError::EraseUnsettled { source })
            }
        }
    }

    /// Shows buckets again as soon as it is certain that no draft is kept of their erase, by
    /// themselves or with others. Where one is, they stay out of use. The doubt has begun, and
    /// before `changing_buckets` is given back: what removes that which is gone asks for it.
    fn look_later(&self, aside: Aside) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(ERASE_DOUBT_LOOK).await;
                let Some(inner) = inner.upgrade() else { return };
                if inner.closed.load(Ordering::Acquire) {
                    return;
                }
                let vault = Self { inner };
                let _changing = vault.inner.changing_buckets.lock().await;
                let inner = vault.inner.clone();
                let look = move || inner.system.documents::<EraseDraft>(Kind::Erase);
                // Why it can't be found out is told of by those who need it.
                if let Ok(drafts) = blocking(look).await {
                    vault.resolve(aside, &drafts);
                    return;
                }
            }
        });
    }

    /// It is known which erases are ordered.
    fn resolve(&self, mut aside: Aside, drafts: &[EraseDraft]) {
        let doubtful = aside.unordered.clone();
        if drafts.iter().any(|draft| draft.id() == aside.draft_id) {
            tracing::warn!(
                "an erase that failed is ordered all the same: ask for it again, or restart the \
                 server"
            );
        } else {
            // What another one is of stays out of use, such as that of the buckets' level.
            let ordered = drafts.iter().flat_map(EraseDraft::bucket_ids);
            let ordered: HashSet<BucketId> = ordered.collect();
            aside.ids.retain(|id| !ordered.contains(id));
            aside.hidden.retain(|row| !ordered.contains(&row.id));
            self.show_again(aside);
        }
        self.inner.system.end_erase_doubt(&doubtful);
    }

    /// Goes on with an erase that was ordered before; none where there is no draft of one.
    pub(super) async fn go_on(&self, id: DocumentId) -> Result<Option<Receipt>> {
        let inner = self.inner.clone();
        let earlier = blocking(move || inner.system.document::<EraseDraft>(Kind::Erase, id));
        let Some(draft) = earlier.await? else {
            return Ok(None);
        };
        let is_untouched = draft.is_untouched(&self.inner.keystore);
        if is_untouched && !draft.is_ordered {
            return Ok(None);
        }
        self.inner.followers.take_away();
        let destroyed = {
            let (inner, draft) = (self.inner.clone(), draft.clone());
            let destroy = move || {
                if is_untouched {
                    Ok(destroy_keys(&inner.keystore, &draft))
                } else {
                    Ok(destroyed_before(&inner.keystore, &draft))
                }
            };
            blocking(destroy).await?
        };
        match destroyed {
            Destroyed::Yes(erased) => {
                // A start lets nothing in.
                let was_cut_off = self.inner.system.was_cut_off(&draft.bucket_ids());
                let cut_off = CutOff {
                    connections: None,
                    is_request_left: (!was_cut_off).then_some(false),
                    was_cut_off_before: was_cut_off,
                };
                self.finish(draft, *erased, cut_off).await.map(Some)
            }
            Destroyed::No(source) | Destroyed::Unknown(source) => {
                Err(VaultError::EraseUnsettled { source })
            }
        }
    }
}
