//! What was changed in buckets since copies took it. It outlasts a bucket's being closed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use coffer_seal::BucketId;
use coffer_store::{BlobStore, BlobTap, Catalog, PageTap};
use parking_lot::Mutex;

use crate::error::Result;

/// The taps of one bucket.
#[derive(Clone, Default)]
pub(crate) struct BucketTap {
    pub(crate) pages: Arc<PageTap>,
    pub(crate) blobs: Arc<BlobTap>,
}

/// All taps. There are none while nothing is copied.
#[derive(Default)]
pub(crate) struct Taps(Mutex<State>);

#[derive(Default)]
struct State {
    cursors: BTreeSet<u32>,
    /// Those who take only what was changed in catalogs behind another one.
    behind: BTreeMap<u32, u32>,
    by_id: HashMap<BucketId, BucketTap>,
}

impl Taps {
    /// Notes changes for a copy as well, in buckets that are opened from now on. For those that
    /// are open, [`Taps::attach`] is to be called.
    pub(crate) fn follow(&self, cursor: u32) {
        let mut state = self.0.lock();
        state.cursors.insert(cursor);
        for tap in state.by_id.values() {
            tap.pages.follow(cursor);
            tap.blobs.follow(cursor);
        }
    }

    /// Notes changes of catalogs for one who takes only what is changed behind `leader`.
    pub(crate) fn follow_behind(&self, cursor: u32, leader: u32) {
        let mut state = self.0.lock();
        state.behind.insert(cursor, leader);
        for tap in state.by_id.values() {
            tap.pages.follow_behind(cursor, leader);
        }
    }

    /// No more.
    pub(crate) fn unfollow(&self, cursor: u32) {
        let mut state = self.0.lock();
        state.cursors.remove(&cursor);
        state.behind.remove(&cursor);
        for tap in state.by_id.values() {
            tap.pages.unfollow(cursor);
            tap.blobs.unfollow(cursor);
        }
    }

    /// The taps of a bucket that was opened since something is copied.
    pub(crate) fn of(&self, id: BucketId) -> Option<BucketTap> {
        self.0.lock().by_id.get(&id).cloned()
    }

    /// Has an open bucket tell of its changes, if anything is copied.
    pub(crate) async fn attach(
        &self,
        id: BucketId,
        catalog: &Catalog,
        blobs: &BlobStore,
    ) -> Result<()> {
        let tap = {
            let mut state = self.0.lock();
            if state.cursors.is_empty() {
                return Ok(());
            }
            let State {
                cursors,
                behind,
                by_id,
            } = &mut *state;
            let tap = by_id.entry(id).or_insert_with(|| {
                let tap = BucketTap::default();
                for cursor in cursors.iter() {
                    tap.pages.follow(*cursor);
                    tap.blobs.follow(*cursor);
                }
                for (cursor, leader) in behind.iter() {
                    tap.pages.follow_behind(*cursor, *leader);
                }
                tap
            });
            tap.clone()
        };
        blobs.tap_by(tap.blobs);
        Ok(catalog.tap_by(tap.pages).await?)
    }

    /// How many bytes of pages are to be copied, as far as that is known.
    pub(crate) fn waiting_bytes(&self, cursor: u32) -> u64 {
        let state = self.0.lock();
        let pages = state
            .by_id
            .values()
            .map(|tap| tap.pages.changed_pages(cursor));
        pages.sum::<u64>() * u64::from(coffer_store::limits::PAGE_BYTES)
    }

    pub(super) fn forget(&self, id: BucketId) {
        self.0.lock().by_id.remove(&id);
    }
}
