//! Erasing: a level or a bucket, with its keys, at once.
//!
//! The steps, in this order:
//!
//! 1. Nothing new is let in: the buckets disappear, so that who is refused by what follows finds
//!    why; they are not opened any more, by the server itself neither, and what reads or writes is
//!    cut off.
//! 2. A draft says durably what is about to be destroyed. Counts are known, nothing is walked over.
//!    This is the moment: before it the erase has not begun, after it it will be completed.
//! 3. The keystore is written without the keys, under a new root key, and the old one destroyed.
//!    Where it turns out that none was, and none will be, the draft is dropped.
//! 4. Catalogs are let go of, keys in memory with them; it is waited until no request is left.
//! 5. Sealed copies that the keystore goes along with take that without the keys, or are pending.
//! 6. The receipt is signed; rows go, the receipt comes, in one transaction. Then it is told.
//!
//! Folders are removed in the background: they are noise by now.

use std::sync::Arc;
use std::time::Instant;

use coffer_keys::receipt::{Person, Receipt};
use coffer_keys::{BucketEntry, ErasedWhat, LevelEntry};
use coffer_seal::{BucketId, LevelId};
use coffer_store::Totals;
use futures::future::join_all;

use super::destroy::{Destroyed, destroy_keys};
use super::finish::CutOff;
use super::journal::{DraftBucket, EraseDraft};
use super::orders::Aside;
use crate::blocking::blocking;
use crate::cutoff::Connections;
use crate::error::{Result, VaultError};
use crate::limits::{COMMIT_WAIT, COUNTED_BY_OPENING_MAX, CUT_LOOK, CUT_WAIT};
use crate::open_buckets::{Barred, OpenBucket, Opening};
use crate::system::{BucketRow, DocumentId};
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

    /// The level, where all of it is to be erased.
    fn whole_level(&self) -> Option<LevelId> {
        match self {
            Self::Level(level) => Some(level.id),
            Self::Bucket(..) => None,
        }
    }

    /// Whether its key is there: of two erases of the same, one finds nothing any more.
    fn check_there(&self, inner: &Inner) -> Result<()> {
        let keystore = &inner.keystore;
        match self {
            Self::Bucket(_, bucket) if !bucket.has_key() => {
                let is_there = inner.is_there_without_key(bucket.id);
                is_there.then_some(()).ok_or(VaultError::NoSuchBucket)
            }
            Self::Level(level) => keystore
                .level(level.id)
                .map_or(Err(VaultError::NoSuchLevel), |_| Ok(())),
            Self::Bucket(_, bucket) => keystore
                .bucket(bucket.id)
                .map_or(Err(VaultError::NoSuchBucket), |_| Ok(())),
        }
    }

    fn entries(&self, vault: &Vault) -> Vec<BucketEntry> {
        match self {
            Self::Bucket(_, bucket) => vec![*bucket],
            Self::Level(level) => {
                let mut buckets = vault.inner.keystore.buckets();
                buckets.retain(|bucket| bucket.level_id == level.id);
                buckets.extend(vault.without_keys(level));
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

impl Vault {
    /// Erases, and returns the receipt.
    pub(crate) async fn erase(&self, doomed: Doomed, warrant: Warrant) -> Result<Receipt> {
        let inner = &self.inner;
        let _changing = inner.changing_buckets.lock().await;
        if let Some(receipt) = self.go_on(doomed.id()).await? {
            return Ok(receipt);
        }
        doomed.check_there(inner)?;
        let strays = match &doomed {
            Doomed::Level(level) => Box::pin(self.check_strays(level)).await?,
            Doomed::Bucket(..) => String::new(),
        };
        let buckets = doomed.entries(self);
        let ids: Vec<BucketId> = buckets.iter().map(|bucket| bucket.id).collect();
        let counted = self.open_uncounted(&buckets).await;
        // From here on nothing is given out any more, and nothing committed. Gateways that follow
        // give nothing out any more when the act is acknowledged.
        inner.followers.take_away();
        let being_ordered = inner.system.begin_ordering(&ids);
        let aside = Aside {
            draft_id: doomed.id(),
            level: doomed.whole_level(),
            unordered: being_ordered.ids().to_vec(),
            hidden: inner.system.set_aside(&ids, doomed.whole_level()),
            ids,
        };
        let Barred {
            open,
            opening,
            connections,
        } = inner.open_buckets.bar(&aside.ids);
        let connection_count = connections.iter().map(|noted| noted.count()).sum();
        let was_cut_off_before = inner.system.note_cut_off(&aside.ids);
        // Those with them of which it was in doubt whether they are being erased.
        let (ids, rows) = (aside.ids.clone(), inner.system.going(&aside.ids));
        inner.at("cut off");
        let people = warrant.performed_by.len();
        let locks = match self.locks_at_last(doomed.level(), &rows, people) {
            Ok(locks) => locks,
            Err(error) => return self.spare(aside, open, error).await,
        };
        let (totals, uncounted) = self.count(&counted, &open).await;
        let mut draft = draft(&doomed, buckets, &rows, totals, uncounted, warrant);
        draft.locks = Some(locks + &strays);
        let draft = match self.keep_draft(draft, rows).await {
            Ok(draft) => draft,
            Err(error) => return self.spare(aside, open, error).await,
        };
        drop(being_ordered);
        let keys = {
            let (inner, draft) = (inner.clone(), draft.clone());
            blocking(move || Ok(destroy_keys(&inner.keystore, &draft)))
        };
        let (erased, cut_off) = tokio::join!(
            keys,
            self.wait_for_those_cut_off(&ids, open, opening, connections)
        );
        match erased? {
            Destroyed::Yes(erased) => {
                let cut_off = CutOff {
                    connections: Some(connection_count),
                    was_cut_off_before,
                    ..cut_off
                };
                self.finish(draft, *erased, cut_off).await
            }
            Destroyed::No(error) => self.call_off(aside, error).await,
            // The buckets stay out of sight, and the draft is there: this is completed.
            Destroyed::Unknown(error) => Err(VaultError::EraseUnsettled { source: error }),
        }
    }

    /// Opens the catalogs that were not counted since the start, if they are few. Counted or not,
    /// it must not take long. Those that can be counted at all: that have a key.
    async fn open_uncounted(&self, buckets: &[BucketEntry]) -> Vec<BucketId> {
        let with_key = buckets.iter().filter(|bucket| bucket.has_key());
        let ids: Vec<BucketId> = with_key.map(|bucket| bucket.id).collect();
        let Inner {
            folder,
            keystore,
            open_buckets,
            ..
        } = &*self.inner;
        let mut uncounted = Vec::new();
        for id in &ids {
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
        ids
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
            connections: None,
            is_request_left: Some(is_request_left),
            was_cut_off_before: false,
        }
    }
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
        is_ordered: true,
    }
}
