//! Erasing: a level or a bucket, with its keys, at once.
//!
//! The steps, in this order:
//!
//! 1. Nothing new is let in: the buckets disappear, they are not opened any more, by the server
//!    itself neither, and what reads or writes is cut off.
//! 2. A draft says durably what is about to be destroyed. Counts are known, nothing is walked over.
//! 3. The keystore is written without the keys, under a new root key, and the old one destroyed.
//!    This is the moment: before it the erase has not begun, after it it will be completed.
//! 4. Catalogs are let go of, keys in memory with them; it is waited until no request is left.
//! 5. Sealed copies that the keystore goes along with take that without the keys, or are pending.
//! 6. The receipt is signed; rows go, the receipt comes, in one transaction. Then it is told.
//!
//! Folders are removed in the background: they are noise by now.

use std::sync::Arc;
use std::time::Instant;

use coffer_durable::now_ms;
use coffer_keys::receipt::{Person, Receipt};
use coffer_keys::{BucketEntry, Erased, ErasedWhat, Keystore, LevelEntry};
use coffer_seal::BucketId;
use coffer_store::Totals;
use futures::future::join_all;

use super::destroy::{Destroyed, destroy_keys, settle};
use super::journal::{DraftBucket, EraseDraft, last_audit_record};
use crate::blocking::blocking;
use crate::buckets::remove_doomed_folder;
use crate::cutoff::Connections;
use crate::error::{Result, VaultError};
use crate::limits::{COMMIT_WAIT, COUNTED_BY_OPENING_MAX, CUT_LOOK, CUT_WAIT};
use crate::open_buckets::{Barred, OpenBucket, Opening};
use crate::system::{BucketRow, DocumentId, Kind};
use crate::vault::{Inner, Vault};

/// What is to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doomed {
    Level(LevelEntry),
    Bucket(LevelEntry, BucketEntry),
}

impl Doomed {
    fn level(&self) -> &LevelEntry {
        match self {
            Self::Level(level) | Self::Bucket(level, _) => level,
        }
    }

    fn id(&self) -> DocumentId {
        match self {
            Self::Level(level) => level.id.into(),
            Self::Bucket(_, bucket) => bucket.id.into(),
        }
    }

    /// Whether its key is there: of two erases of the same, one finds nothing any more.
    fn check_there(&self, keystore: &Keystore) -> Result<()> {
        match self {
            Self::Level(level) => keystore
                .level(level.id)
                .map_or(Err(VaultError::NoSuchLevel), |_| Ok(())),
            Self::Bucket(_, bucket) => keystore
                .bucket(bucket.id)
                .map_or(Err(VaultError::NoSuchBucket), |_| Ok(())),
        }
    }

    fn entries(&self, keystore: &Keystore) -> Vec<BucketEntry> {
        match self {
            Self::Bucket(_, bucket) => vec![*bucket],
            Self::Level(level) => {
                let mut buckets = keystore.buckets();
                buckets.retain(|bucket| bucket.level_id == level.id);
                buckets
            }
        }
    }
}

/// On whose word an erase happens.
#[derive(Clone, Debug)]
pub(crate) struct Warrant {
    pub(crate) performed_by: Vec<Person>,
    pub(crate) requested_ms: i64,
}

/// How an erase left those who were cut off.
struct CutOff {
    connections: usize,
    /// Whether a request was still there when the wait was over.
    is_request_left: bool,
}

impl Vault {
    /// Erases, and returns the receipt.
    pub(crate) async fn erase(&self, doomed: Doomed, warrant: Warrant) -> Result<Receipt> {
        let inner = &self.inner;
        let _changing = inner.changing_buckets.lock().await;
        let earlier = inner
            .system
            .document::<EraseDraft>(Kind::Erase, doomed.id())?;
        if let Some(draft) = earlier.filter(|draft| !draft.is_untouched(&inner.keystore)) {
            return self.finish_late(draft).await;
        }
        doomed.check_there(&inner.keystore)?;
        let strays = match &doomed {
            Doomed::Level(level) => Box::pin(self.check_strays(level)).await?,
            Doomed::Bucket(..) => String::new(),
        };
        let buckets = doomed.entries(&inner.keystore);
        let ids: Vec<BucketId> = buckets.iter().map(|bucket| bucket.id).collect();
        self.open_uncounted(&ids).await;
        // From here on nothing is given out any more, and nothing committed. Gateways that follow
        // give nothing out any more when the act is acknowledged.
        inner.followers.take_away();
        let Barred {
            open,
            opening,
            connections,
        } = inner.open_buckets.bar(&ids);
        let connection_count = connections.iter().map(|noted| noted.count()).sum();
        let hidden = inner.system.hide(&ids);
        inner.at("cut off");
        let people = warrant.performed_by.len();
        let locks = match self.locks_at_last(doomed.level(), &hidden, people) {
            Ok(locks) => locks,
            Err(error) => return self.spare(&ids, open, hidden, error).await,
        };
        let (totals, uncounted) = self.count(&ids, &open).await;
        let mut draft = draft(&doomed, buckets, &hidden, totals, uncounted, warrant);
        draft.locks = Some(locks + &strays);
        let draft = match self.keep_draft(draft, hidden.clone()).await {
            Ok(draft) => draft,
            Err(error) => return self.spare(&ids, open, hidden, error).await,
        };
        let keys = {
            let (inner, draft) = (inner.clone(), draft.clone());
            blocking(move || Ok(destroy_keys(&inner, &draft)))
        };
        let (erased, cut_off) = tokio::join!(
            keys,
            self.wait_for_those_cut_off(&ids, open, opening, connections)
        );
        match erased? {
            Destroyed::Yes(erased) => {
                let cut_off = CutOff {
                    connections: connection_count,
                    ..cut_off
                };
                self.finish(draft, *erased, cut_off).await
            }
            Destroyed::No(error) => {
                self.show_again(&ids, hidden);
                // The next start drops it, too: the keys are there.
                if let Err(error) = inner.system.drop_document(Kind::Erase, draft.id()) {
                    tracing::warn!(%error, "the draft of an erase that failed is left");
                }
                Err(error.into())
            }
            // The buckets stay out of sight: neither side of the moment is certain.
            Destroyed::Unknown(error) => Err(VaultError::EraseUnsettled { source: error }),
        }
    }

    /// Opens the catalogs that were not counted since the start, if they are few. Counted or not,
    /// it must not take long.
    async fn open_uncounted(&self, ids: &[BucketId]) {
        let Inner {
            folder,
            keystore,
            open_buckets,
            ..
        } = &*self.inner;
        let mut uncounted = Vec::new();
        for id in ids {
            if open_buckets.known_totals(*id).await.is_none() {
                uncounted.push(*id);
            }
        }
        if uncounted.len() <= COUNTED_BY_OPENING_MAX {
            // One that can't be opened stays uncounted, and is erased all the same.
            join_all(
                uncounted
                    .into_iter()
                    .map(|id| open_buckets.open(folder, keystore, id)),
            )
            .await;
        }
    }

    /// Nothing was erased, for this reason.
    async fn spare<T>(
        &self,
        ids: &[BucketId],
        open: Vec<Arc<OpenBucket>>,
        hidden: Vec<Arc<BucketRow>>,
        error: VaultError,
    ) -> Result<T> {
        self.let_go(ids, open).await;
        self.show_again(ids, hidden);
        Err(error)
    }

    /// Nothing was erased.
    fn show_again(&self, ids: &[BucketId], hidden: Vec<Arc<BucketRow>>) {
        // One may have been in doubt, or still be at work.
        for id in ids {
            self.inner.freshness.commits.is_to_be_met(*id);
        }
        self.inner.open_buckets.unbar(ids);
        self.inner.system.show(hidden);
    }

    /// What all of them hold together, and how many of them could not be counted.
    async fn count(&self, ids: &[BucketId], open: &[Arc<OpenBucket>]) -> (Totals, usize) {
        // Commits under way may still change it; none begins any more.
        let committed = join_all(open.iter().map(|bucket| bucket.no_commit_under_way()));
        let _ = tokio::time::timeout(COMMIT_WAIT, committed).await;
        let known = ids
            .iter()
            .map(|id| self.inner.open_buckets.known_totals(*id));
        let (mut all, mut uncounted) = (Totals::default(), 0);
        for totals in join_all(known).await {
            match totals {
                Some(Totals { objects, bytes }) => {
                    all.objects += objects;
                    all.bytes += bytes;
                }
                None => uncounted += 1,
            }
        }
        (all, uncounted)
    }

    /// Lets go of the catalogs and their keys.
    async fn let_go(&self, ids: &[BucketId], open: Vec<Arc<OpenBucket>>) {
        for id in ids {
            self.inner.open_buckets.let_go(*id);
        }
        join_all(open.iter().map(|bucket| bucket.catalog.abandon())).await;
        // If they are spared, what they committed last counts.
        for bucket in open {
            let commits = &self.inner.freshness.commits;
            commits.seen(bucket.id, bucket.catalog.last_commit());
        }
    }

    /// Lets go of the catalogs, and waits until no request holds the buckets any more.
    async fn wait_for_those_cut_off(
        &self,
        ids: &[BucketId],
        open: Vec<Arc<OpenBucket>>,
        opening: Vec<Opening>,
        connections: Vec<Arc<Connections>>,
    ) -> CutOff {
        let begun = Instant::now();
        let mut held = open.clone();
        let late = join_all(opening.into_iter().map(Opening::end));
        let letting_go = async { tokio::join!(self.let_go(ids, open), late).1 };
        // Long reads of catalogs end by themselves; they are not waited for without end.
        let late = tokio::time::timeout(CUT_WAIT, letting_go).await;
        let mut is_request_left = late.is_err();
        held.extend(late.into_iter().flatten().flatten());
        let is_held = || held.iter().any(|bucket| !bucket.is_abandoned());
        let is_connected = || connections.iter().any(|noted| noted.count() > 0);
        while !is_request_left && (is_held() || is_connected()) {
            is_request_left = begun.elapsed() > CUT_WAIT;
            tokio::time::sleep(CUT_LOOK).await;
        }
        CutOff {
            connections: 0,
            is_request_left,
        }
    }

    async fn finish(&self, draft: EraseDraft, erased: Erased, cut_off: CutOff) -> Result<Receipt> {
        for id in draft.bucket_ids() {
            self.inner.open_buckets.forget(id);
        }
        let mut checked = vec![format!(
            "reads and writes under way were cut off before the erase was acknowledged, and {} \
             connections with them",
            cut_off.connections
        )];
        checked.extend(draft.locks.clone());
        let mut left = Vec::new();
        if cut_off.is_request_left {
            left.push(
                "a reader inside the server had not ended when the erase was acknowledged; it \
                 gives out nothing, and the keys and the plaintext that it holds in memory go \
                 when it ends"
                    .to_owned(),
            );
        } else {
            checked.push(
                "no reader and no writer was left, and the catalogs were closed; the keys in \
                 memory went with them, and buffers that had held plaintext were zeroized"
                    .to_owned(),
            );
        }
        self.inner.copies.carry_all(&self.inner.keystore).await;
        let inner = self.inner.clone();
        let receipt = blocking(move || {
            let last = last_audit_record(&inner.audit);
            let kept = (&*inner.keystore, &inner.copies);
            let receipt = draft.sign(kept, &erased, checked, left, last)?;
            inner.copies.note_pending(&receipt)?;
            let ids = draft.bucket_ids();
            let kept = (draft.level.id, draft.key_releases_kept());
            inner
                .system
                .finish_erase(draft.id(), &ids, kept, &receipt, now_ms())?;
            // There are no keys that would open them, unless an import brings them back.
            inner.open_buckets.unbar(&ids);
            Ok(receipt)
        })
        .await;
        // Whatever it was: "nothing was done" would be wrong.
        let receipt = receipt.map_err(|error| VaultError::ReceiptUnsettled {
            source: Box::new(error),
        })?;
        self.remove_doomed_folders_soon();
        Ok(receipt)
    }

    /// Completes an erase whose keys are gone from the keystore since an earlier attempt.
    async fn finish_late(&self, draft: EraseDraft) -> Result<Receipt> {
        self.inner.followers.take_away();
        let keystore = &self.inner.keystore;
        let settle = {
            let inner = self.inner.clone();
            blocking(move || Ok(settle(&inner.keystore)))
        };
        if let Err(source) = settle.await? {
            return Err(VaultError::EraseUnsettled { source });
        }
        let erased = draft.erased(keystore);
        let cut_off = CutOff {
            connections: 0,
            is_request_left: false,
        };
        self.finish(draft, erased, cut_off).await
    }

    /// Removes, in the background, the folders of buckets that were erased.
    pub(crate) fn remove_doomed_folders_soon(&self) {
        let inner = self.inner.clone();
        tokio::task::spawn_blocking(move || {
            if let Err(error) = remove_doomed_folders(&inner) {
                tracing::warn!(%error, "an erased bucket's folder is left to the next start");
            }
        });
    }
}

fn remove_doomed_folders(inner: &Inner) -> Result<()> {
    for id in inner.system.doomed()? {
        remove_doomed_folder(inner, id)?;
    }
    Ok(())
}

fn draft(
    doomed: &Doomed,
    buckets: Vec<BucketEntry>,
    rows: &[Arc<BucketRow>],
    totals: Totals,
    uncounted: usize,
    warrant: Warrant,
) -> EraseDraft {
    let (what, level) = match doomed {
        Doomed::Level(level) => (ErasedWhat::Level, level.clone()),
        Doomed::Bucket(level, _) => (ErasedWhat::Bucket, level.clone()),
    };
    let named = |entry: BucketEntry| {
        let row = rows.iter().find(|row| row.id == entry.id);
        DraftBucket {
            entry,
            name: row.map(|row| row.name.as_str().to_owned()),
            key_releases: None,
            created_ms: row.map(|row| row.created_ms),
        }
    };
    EraseDraft {
        what,
        level,
        buckets: buckets.into_iter().map(named).collect(),
        objects: totals.objects,
        bytes: totals.bytes,
        uncounted,
        requested_ms: warrant.requested_ms,
        performed_by: warrant.performed_by,
        locks: None,
        level_key_releases: None,
    }
}
