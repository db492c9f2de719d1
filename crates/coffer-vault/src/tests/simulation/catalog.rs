//! A catalog of a few keys, in pages: what a record and a head take of it, and what was put
//! together of them.
//!
//! It notes changes as the taps of real catalogs do (`coffer-store`), for heads and for records
//! that follow behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coffer_replica::limits::PAGE_BYTES;
use coffer_replica::{NewSegment, RecordedPages};
use coffer_seal::BucketId;
use parking_lot::Mutex;

use crate::replica::round::forming::TakenPages;

/// How many keys each bucket has.
pub(super) const KEYS: usize = 3;

/// What the keys have; 0, where nothing was ever put.
pub(super) type Values = [u64; KEYS];

/// One page says how many commits there were, and one for each key what it has.
const PAGES: u32 = KEYS as u32 + 1;

/// All catalogs of a gateway that serves.
pub(super) type Catalogs = Arc<Mutex<BTreeMap<BucketId, Catalog>>>;

/// One.
#[derive(Clone, Debug)]
pub(super) struct Catalog {
    pub(super) commits: u64,
    pub(super) values: Values,
    for_heads: Noted,
    for_records: Noted,
    /// All that was changed since this commit is noted for records, or was recorded.
    since: u64,
}

/// Changes that are noted; none: all.
#[derive(Clone, Debug, Default)]
struct Noted {
    pages: Option<BTreeSet<u32>>,
    in_flight: Vec<u32>,
    in_flight_commits: u64,
}

/// Some pages, for a segment.
pub(super) struct ForHead {
    pub(super) segment: NewSegment,
    /// Whether they are the first of all.
    pub(super) is_base: bool,
}

/// Pages that were taken for a record.
struct TakenOf {
    catalogs: Catalogs,
    bucket: BucketId,
}

impl Catalog {
    pub(super) fn new(commits: u64, values: Values) -> Self {
        Self {
            commits,
            values,
            for_heads: Noted::default(),
            for_records: Noted::default(),
            since: 0,
        }
    }

    /// From its pages; none, where they are not of one commit, of which it is said that it is this.
    pub(super) fn from_pages(bytes: &[u8], commits: u64) -> Option<Self> {
        let mut words = bytes.chunks(PAGE_BYTES).map(|page| {
            let mut word = [0; 8];
            word.copy_from_slice(page.get(..8)?);
            Some(u64::from_be_bytes(word))
        });
        let found = words.next()??;
        let mut values = [0; KEYS];
        for value in &mut values {
            *value = words.next()??;
        }
        (found == commits).then(|| Self::new(commits, values))
    }

    fn page(&self, number: u32) -> Vec<u8> {
        let word = match number {
            1 => self.commits,
            _ => self.values[number as usize - 2],
        };
        let mut page = vec![0; PAGE_BYTES];
        page[..8].copy_from_slice(&word.to_be_bytes());
        page
    }

    /// All of it, as it lies on a disk.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let pages: Vec<_> = (1..=PAGES).map(|number| self.page(number)).collect();
        pages.concat()
    }

    /// A commit.
    pub(super) fn change(&mut self, key: usize, value: u64) {
        self.commits += 1;
        self.values[key] = value;
        for noted in [&mut self.for_heads, &mut self.for_records] {
            if let Some(pages) = &mut noted.pages {
                pages.extend([1, key as u32 + 2]);
            }
        }
    }

    /// What the next head lacks, so many pages at most.
    pub(super) fn for_head(&mut self, most: usize) -> ForHead {
        self.for_heads.give_back();
        let is_base = self.for_heads.pages.is_none();
        let all = || (1..=PAGES).collect();
        let pages = self.for_heads.pages.get_or_insert_with(all);
        let taken: Vec<u32> = pages.iter().copied().take(most).collect();
        pages.retain(|number| !taken.contains(number));
        let is_last = pages.is_empty();
        self.for_heads.in_flight.clone_from(&taken);
        // Records follow behind what a head takes.
        if is_last && self.for_records.pages.is_none() {
            self.for_records.pages = Some(BTreeSet::new());
            self.since = self.commits;
        }
        let pages = taken.into_iter().map(|number| (number, self.page(number)));
        let segment = NewSegment {
            commits: self.commits,
            page_count: PAGES,
            pages: pages.collect(),
            is_last,
        };
        ForHead { segment, is_base }
    }

    pub(super) fn head_has_it(&mut self) {
        self.for_heads.in_flight.clear();
    }

    pub(super) fn head_lacks_it(&mut self) {
        self.for_heads.give_back();
    }

    /// What the log lacks that has `known` commits of it; none, where no record can say it.
    fn for_record(&mut self, bucket: BucketId, known: u64) -> Option<RecordedPages> {
        self.for_records.give_back();
        let noted = self.for_records.pages.as_mut()?;
        if self.since > known {
            return None;
        }
        let taken: Vec<u32> = std::mem::take(noted).into_iter().collect();
        self.for_records.in_flight.clone_from(&taken);
        self.for_records.in_flight_commits = self.commits;
        let pages = taken.into_iter();
        let pages = pages.map(|number| (number, self.page(number).into()));
        Some(RecordedPages {
            bucket,
            since: self.since,
            commits: self.commits,
            page_count: PAGES,
            pages: pages.collect(),
        })
    }
}

impl Noted {
    fn give_back(&mut self) {
        let taken = std::mem::take(&mut self.in_flight);
        if let Some(pages) = &mut self.pages {
            pages.extend(taken);
        }
    }
}

/// Pages of a catalog for a record, and what settles whether they arrived.
pub(super) fn take_for_record(
    catalogs: &Catalogs,
    bucket: BucketId,
    known: u64,
) -> Option<(RecordedPages, Box<dyn TakenPages>)> {
    let mut all = catalogs.lock();
    let pages = all.get_mut(&bucket)?.for_record(bucket, known)?;
    let catalogs = catalogs.clone();
    Some((pages, Box::new(TakenOf { catalogs, bucket })))
}

impl TakenOf {
    fn settle(&self, settle: impl FnOnce(&mut Catalog)) {
        if let Some(catalog) = self.catalogs.lock().get_mut(&self.bucket) {
            settle(catalog);
        }
    }
}

impl TakenPages for TakenOf {
    fn arrived(&self) {
        self.settle(|catalog| {
            catalog.for_records.in_flight.clear();
            catalog.since = catalog.for_records.in_flight_commits;
        });
    }

    fn give_back(&self) {
        self.settle(|catalog| catalog.for_records.give_back());
    }
}
