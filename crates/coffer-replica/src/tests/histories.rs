//! Records and heads, beside each other, under whatever a store and other writers do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::*;

/// A catalog with the fill of each page, and who gets to know what was changed in it: as a gateway
/// has it that writes the log.
struct Gateway {
    writer: CopyWriter,
    records: RecordWriter,
    pages: Vec<u8>,
    commits: u64,
    /// Changed since the last head; none: all.
    for_head: Option<BTreeSet<u32>>,
    /// Changed since this commit, for records.
    for_record: Option<(u64, BTreeSet<u32>)>,
    /// What the log is known to have.
    known: Option<u64>,
    /// A head that is put together: what it says, and which records it has in it.
    under_way: Option<(BucketState, u64)>,
    chain: Option<BucketState>,
}

impl Gateway {
    /// Goes on with what the log holds.
    fn new(writer: CopyWriter, pages: Vec<u8>, commits: u64) -> Self {
        Self {
            records: writer.records(),
            chain: writer.head().buckets.get(&BUCKET.to_string()).cloned(),
            writer,
            pages,
            commits,
            for_head: None,
            for_record: None,
            known: None,
            under_way: None,
        }
    }

    fn change(&mut self, chance: &mut Chance) {
        let mut changed = BTreeSet::new();
        match chance.below(6) {
            0 if self.pages.len() > 1 => drop(self.pages.pop()),
            1 | 2 => {
                self.pages.push(0);
                changed.insert(self.pages.len() as u32);
            }
            _ => {}
        }
        let any = chance.below(self.pages.len() as u64) as u32 + 1;
        changed.insert(any);
        for number in &changed {
            self.pages[*number as usize - 1] = chance.below(256) as u8;
        }
        self.commits += 1;
        self.for_head
            .iter_mut()
            .for_each(|all| all.extend(&changed));
        let for_record = self.for_record.iter_mut();
        for_record.for_each(|(_, all)| all.extend(&changed));
    }

    fn page(&self, number: u32) -> Option<Vec<u8>> {
        let fill = self.pages.get(number as usize - 1)?;
        Some(page(*fill))
    }

    /// Up to which commit the log has all with it; none, where no record can say it.
    async fn record(&mut self) -> Option<Result<u64>> {
        let (since, changed) = self.for_record.as_ref()?;
        if *since > self.known? {
            return None;
        }
        let pages = changed.iter();
        let pages = pages.filter_map(|number| Some((*number, self.page(*number)?.into())));
        let of = RecordedPages {
            bucket: BUCKET,
            since: *since,
            commits: self.commits,
            page_count: self.pages.len() as u32,
            pages: pages.collect(),
        };
        let new = NewRecord {
            buckets: vec![of],
            ..NewRecord::default()
        };
        let commits = self.commits;
        let put = self.records.append(new).await;
        if put.is_ok() {
            self.known = Some(commits);
            self.for_record = Some((commits, BTreeSet::new()));
        }
        Some(put.map(|_| commits))
    }

    /// Takes what a head is to say, and puts it there.
    async fn begin_head(&mut self) -> Result<()> {
        let covered = self.writer.known().number;
        let all = || (1..=self.pages.len() as u32).collect();
        let numbers = self.for_head.clone().unwrap_or_else(all);
        let before = self.chain.clone().filter(|_| self.for_head.is_some());
        let pages = numbers.iter();
        let pages = pages.filter_map(|number| Some((*number, self.page(*number)?)));
        let new = NewSegment {
            commits: self.commits,
            page_count: self.pages.len() as u32,
            pages: pages.collect(),
            is_last: true,
        };
        let commits = self.commits;
        // Those who follow behind begin here, whatever becomes of it.
        self.for_record.get_or_insert((commits, BTreeSet::new()));
        let state = self
            .writer
            .put_segment(BUCKET, before.as_ref(), new)
            .await?;
        self.for_head = Some(BTreeSet::new());
        self.chain = Some(state.clone());
        self.under_way = Some((state, covered));
        Ok(())
    }

    /// Writes the head that is under way. Up to which commit it has all.
    async fn end_head(&mut self) -> Option<Result<u64>> {
        let (state, number) = self.under_way.clone()?;
        let commits = state.commits;
        let mut next = self.writer.head().clone();
        next.buckets.insert(BUCKET.to_string(), state);
        next.covers = Some(Covers { number, files: 0 });
        let put = self.writer.commit(next).await;
        if put.is_ok() {
            self.under_way = None;
            self.known = Some(commits.max(self.known.unwrap_or(0)));
        }
        Some(put.map(|()| commits))
    }
}

/// Numbers that depend on a seed alone.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One who follows: a file, and of what it is.
struct Follower {
    file: File,
    before: Option<BucketState>,
    copy: Copy,
}

impl Follower {
    fn new(copy: Copy) -> Self {
        Self {
            file: tempfile::tempfile().unwrap(),
            before: None,
            copy,
        }
    }

    /// Follows, and tells what it has then: how many commits, and each page.
    async fn follow(&mut self) -> Option<(u64, Vec<u8>)> {
        let reader = CopyReader::newest(self.copy.clone(), None).await.unwrap();
        let state = reader.head().buckets.get(&BUCKET.to_string())?.clone();
        let (before, to) = (self.before.as_ref(), Some(&self.file));
        let put = reader.catalog_after(BUCKET, &state, before, to).await;
        put.unwrap();
        let has = (state.commits, pages_of(&self.file, state.page_count));
        self.before = Some(state);
        Some(has)
    }
}

pub(super) fn pages_of(file: &File, page_count: u32) -> Vec<u8> {
    let mut pages = Vec::new();
    for number in 0..u64::from(page_count) {
        let mut read = vec![0; limits::PAGE_BYTES];
        let offset_bytes = number * limits::PAGE_BYTES as u64;
        file.read_exact_at(&mut read, offset_bytes).unwrap();
        assert!(read.iter().all(|byte| *byte == read[0]));
        pages.push(read[0]);
    }
    pages
}

/// What was, by its count of commits; and how many are acknowledged.
struct History {
    states: BTreeMap<u64, Vec<u8>>,
    acknowledged: u64,
}

impl History {
    fn check(&self, has: Option<(u64, Vec<u8>)>, seed: u64) {
        let Some((commits, pages)) = has else {
            return assert_eq!(self.acknowledged, 0, "seed {seed}");
        };
        assert!(
            commits >= self.acknowledged,
            "seed {seed}: what was acknowledged is lost"
        );
        assert_eq!(
            self.states[&commits], pages,
            "seed {seed}: commit {commits}"
        );
    }

    fn acknowledge(&mut self, done: Option<Result<u64>>, seed: u64) {
        match done {
            Some(Ok(commits)) => self.acknowledged = self.acknowledged.max(commits),
            Some(Err(error)) => assert!(error.is_passing(), "seed {seed}: {error}"),
            None => {}
        }
    }
}

async fn run(seed: u64) {
    let mut chance = Chance(seed * 2_654_435_761 + 1);
    let Bench {
        store,
        key,
        id,
        writer,
        ..
    } = Bench::new().await;
    let mut owner = Gateway::new(writer, vec![0], 0);
    let copy = || Copy::new(store.clone(), id, &key);
    let mut follower = Follower::new(copy());
    let mut former: Vec<Gateway> = Vec::new();
    let mut history = History {
        states: BTreeMap::from([(0, vec![0])]),
        acknowledged: 0,
    };
    for _ in 0..chance.below(60) + 10 {
        match chance.below(12) {
            0 => store.refused.store(1, Ordering::SeqCst),
            1 => store.unheard.store(1, Ordering::SeqCst),
            2 => store.late.store(1, Ordering::SeqCst),
            3 => store.arrive().await,
            _ => {}
        }
        match chance.below(12) {
            0..=3 => {
                owner.change(&mut chance);
                history.states.insert(owner.commits, owner.pages.clone());
            }
            4..=6 => history.acknowledge(owner.record().await, seed),
            7 => {
                let begun = owner.begin_head().await;
                history.acknowledge(Some(begun.map(|()| 0)), seed);
            }
            8 => history.acknowledge(owner.end_head().await, seed),
            9 => history.check(follower.follow().await, seed),
            10 => {
                if let Some(late) = former.last_mut() {
                    late.change(&mut chance);
                    for done in [late.record().await, late.end_head().await] {
                        let is_done = done.is_some_and(|done| done.is_ok());
                        assert!(!is_done, "seed {seed}: two wrote the log");
                    }
                }
            }
            _ => {
                // One that failed may have fenced the owner off.
                let writer = loop {
                    if let Ok(writer) = CopyWriter::resume_engine(copy(), None).await {
                        break writer;
                    }
                };
                let of_writer = CopyReader::of(&writer).unwrap();
                let newest = CopyReader::newest(copy(), None).await.unwrap();
                assert_eq!(of_writer.head(), newest.head(), "seed {seed}");
                let has = Follower::new(copy()).follow().await;
                history.check(has.clone(), seed);
                let (commits, pages) = has.unwrap_or((0, vec![0]));
                // What no log has counts for nothing any more.
                history.states.retain(|known, _| *known <= commits);
                let next = Gateway::new(writer, pages, commits);
                former.push(std::mem::replace(&mut owner, next));
            }
        }
    }
    store.arrive().await;
    history.check(follower.follow().await, seed);
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_whatever_the_store_and_other_writers_do() {
    let seeds = std::env::var("COFFER_RECORD_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    for seed in 0..seeds {
        run(seed).await;
    }
}
