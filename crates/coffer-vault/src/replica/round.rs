//! A round: what is new since the last one, in the order that keeps every head whole.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use std::time::Instant;

use coffer_durable::now_ms;
use coffer_replica::{
    BucketState, Copy, CopyReader, CopyWriter, GoneList, Head, KeystoreWriter, KnownHead, Place,
    ReplicaError,
};
use coffer_seal::BucketId;

use crate::blocking::blocking;
use crate::copies::{Carrier, Entry, Findings, Progress, Readers, Synchronous};
use crate::error::{Result, VaultError};
use crate::freshness::InLog;
use crate::limits::COPY_NEW_BUCKETS_PASSES;
use crate::system::BucketRow;
use crate::vault::Inner;

mod acknowledged;

pub(crate) mod fencing;

pub(in crate::replica) mod sources;

pub(crate) mod records;

mod passed;

pub(crate) mod forming;

pub(crate) mod recorder;

pub(crate) mod covers;

pub(super) use self::recorder::records_cursor;

use self::covers::Recorded;
use self::passed::PassedOver;
use self::recorder::Recording;
use self::sources::NewBlobs;

/// What of small files was put since the start.
#[derive(Default)]
pub(super) struct FilesPut {
    /// How many commits `system.db` had.
    pub(super) system_commits: Option<u64>,
    /// The last record of the audit log.
    pub(super) audit_record: Option<u64>,
    /// What the keystore may hold once a head has them.
    pub(super) in_log: Option<InLog>,
    /// Whether pieces that the copy has do not count.
    pub(super) are_renewed: bool,
}

/// What a copy's task knows.
pub(super) struct Round {
    inner: Weak<Inner>,
    pub(super) entry: Entry,
    pub(super) progress: Arc<Progress>,
    pub(super) readers: Arc<Readers>,
    pub(super) carrier: Arc<Carrier>,
    /// What acknowledgements wait for, if they do.
    pub(super) synchronous: Option<Arc<Synchronous>>,
    /// The records between heads, of the log of an engine.
    recording: Option<Recording>,
    /// Chains that are whole and that no head has yet.
    pub(super) chains: HashMap<BucketId, BucketState>,
    /// Chains that grew in a round that failed before they were whole; none: its base has no
    /// segment yet.
    pub(super) unfinished: HashMap<BucketId, Option<BucketState>>,
    /// Buckets whose catalogs were compared with what the copy has, since the start.
    pub(super) met: HashSet<BucketId>,
    pub(super) files: FilesPut,
    /// How many blobs that its catalog names had no file, of buckets where any had none.
    pub(super) missing: HashMap<BucketId, u64>,
    /// Blobs that no head names.
    pub(super) new_blobs: NewBlobs,
    /// Since when it is not known whether the head that was written last came.
    pub(super) doubt: Option<Instant>,
    /// Buckets that it goes on without.
    passed: PassedOver,
    /// Blobs that wait until no head of the window names them; none: not read from the copy yet.
    pub(super) gone: Option<Vec<GoneList>>,
    /// Whether a head is to be written though nothing is new: what is noted as gone before a head
    /// is not named after it.
    pub(super) wants_head: bool,
    /// What checks found.
    pub(super) findings: Arc<Findings>,
    /// Buckets whose catalogs are to be put as a whole, whatever the copy has.
    pub(super) renewed: HashSet<BucketId>,
    pub(super) has_lost_buckets: bool,
    /// When what is out of the window could not be removed, and why.
    pub(super) unswept: Option<(Instant, String)>,
    /// When what puts left that were ended was removed.
    pub(super) tidied: Option<Instant>,
    /// Heads that do not open, and were told.
    pub(super) damaged: Vec<RangeInclusive<u64>>,
    /// Before this time all that was acknowledged is in the newest head, in milliseconds since
    /// 1970.
    complete_ms: i64,
    /// When it was begun to follow, by the clock and by the machine's time.
    pub(super) began_ms: i64,
    pub(super) began: Instant,
}

impl Round {
    pub(super) fn new(
        inner: &Arc<Inner>,
        entry: Entry,
        progress: Arc<Progress>,
        readers: Arc<Readers>,
        findings: Arc<Findings>,
        carrier: Arc<Carrier>,
        synchronous: Option<Arc<Synchronous>>,
    ) -> Self {
        Self {
            inner: Arc::downgrade(inner),
            recording: records_cursor(&entry).map(Recording::new),
            entry,
            progress,
            readers,
            carrier,
            synchronous,
            chains: HashMap::new(),
            unfinished: HashMap::new(),
            met: HashSet::new(),
            files: FilesPut::default(),
            missing: HashMap::new(),
            new_blobs: NewBlobs::default(),
            doubt: None,
            passed: PassedOver::default(),
            gone: None,
            wants_head: false,
            findings,
            renewed: HashSet::new(),
            has_lost_buckets: false,
            unswept: None,
            tidied: None,
            damaged: Vec::new(),
            complete_ms: 0,
            began_ms: now_ms(),
            began: Instant::now(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.entry.name
    }

    /// Whether the copy is in a folder of this machine.
    pub(super) fn is_in_folder(&self) -> bool {
        Place::parse(&self.entry.url).is_ok_and(|place| place.folder().is_some())
    }

    /// Whether the vault is still there.
    pub(super) fn is_served(&self) -> bool {
        self.inner.strong_count() > 0
    }

    /// Whether the last head lacks buckets that the one before had.
    pub(super) fn has_lost_buckets(&self) -> bool {
        self.has_lost_buckets
    }

    /// What keeps a copy that has all of its source from being whole.
    pub(super) fn problem(&self) -> Option<String> {
        let count: u64 = self.missing.values().sum();
        if count > 0 {
            return Some(format!(
                "{count} blobs that catalogs name are missing or damaged in the data folder, so \
                 the copy lacks them and can't be restored whole: `coffer verify` names the \
                 objects; put their files back and start the server again, or delete the objects"
            ));
        }
        let (_, error) = self.unswept.as_ref()?;
        Some(format!(
            "the copy has all, but what is out of its window can't be removed; it is tried again: \
             {error}"
        ))
    }

    pub(super) fn inner(&self) -> Result<Arc<Inner>> {
        self.inner.upgrade().ok_or(VaultError::ShuttingDown)
    }

    /// Goes on with a writer that was made before.
    pub(super) fn goes_on(&mut self, writer: &CopyWriter) -> Result<()> {
        if let Some(records) = self.records() {
            // Its newest head may have less, and this gateway may not read all of it soon.
            let log = CopyReader::of(writer)?;
            let buckets = log.head().buckets.iter();
            let of =
                |(id, of): (&String, &BucketState)| Some((BucketId::from_hex(id)?, of.commits));
            records.taken_over(buckets.filter_map(of).collect());
        }
        if self.entry.rested.is_some() {
            self.complete_ms = self.began_ms;
        }
        self.progress.window(writer.head());
        self.progress.begun(writer.head().as_of_ms);
        Ok(())
    }

    /// Becomes the copy's writer.
    pub(super) async fn resume(&mut self) -> Result<CopyWriter> {
        let inner = self.inner()?;
        let is_of_engine = |entry: &Entry| {
            let with = entry.keystore.as_ref();
            with.is_some_and(|with| with.is_of_engine)
        };
        if is_of_engine(&self.entry) {
            // It was gone. Going on would fence off a gateway that has taken the log over since.
            return Err(ReplicaError::LogGone.into());
        }
        let (copy, known) = self.copy_known(None).await?;
        let entry = inner.copies.registry.get(&self.entry.name)?;
        // Between a stop with all copied and this start nothing was acknowledged.
        let has_rested = known.is_some() && known.as_ref().map(|head| head.number) == entry.rested;
        let writer = CopyWriter::resume(copy, known.as_ref()).await?;
        self.doubt = None;
        // That wrote a head which names what the one before it does.
        let before = writer.head().number.saturating_sub(1);
        self.forget_gone(&writer, before).await?;
        if has_rested {
            self.complete_ms = self.began_ms;
        }
        self.carrier.begin(KeystoreWriter::new(&writer)).await;
        self.progress.window(writer.head());
        self.progress.begun(writer.head().as_of_ms);
        self.note_head(&writer).await?;
        Ok(writer)
    }

    /// The copy, and what is known to have been written last.
    pub(super) async fn copy_known(
        &self,
        writer: Option<&CopyWriter>,
    ) -> Result<(Copy, Option<KnownHead>)> {
        if let Some(writer) = writer {
            return Ok((writer.copy().clone(), Some(writer.known())));
        }
        let inner = self.inner()?;
        let place = Place::parse(&self.entry.url)?;
        let store = blocking(move || Ok(place.open(false)?)).await?;
        let copy = Copy::new(store, self.entry.id, &inner.keystore.system_key());
        let known = inner.copies.registry.get(&self.entry.name)?.known;
        Ok((copy, known))
    }

    pub(super) async fn note_head(&self, writer: &CopyWriter) -> Result<()> {
        let (inner, id, known) = (self.inner()?, self.entry.id, writer.known());
        let as_of_ms = writer.head().as_of_ms;
        blocking(move || inner.copies.registry.note_head(id, &known, as_of_ms)).await
    }

    /// Puts what is new. Whether anything was. All that was acknowledged before `began_ms` is in
    /// the copy afterwards.
    pub(super) async fn run(&mut self, writer: &mut CopyWriter, began_ms: i64) -> Result<bool> {
        let inner = self.inner()?;
        // Whatever was recorded by now is in what is read from here on.
        let recorded = Recorded::now(writer.known().number, self.records());
        self.remove_new(writer).await;
        self.renew(writer).await?;
        // Before what it holds is read: so system.db is never older than it says.
        let keystore = self.carry().await?;
        self.put_buckets(writer, &inner).await?;
        let keystore = self.carry_changed(keystore).await?;
        // No bucket is made or goes from here on until all is read that tells of buckets.
        let changing = inner.changing_buckets.lock().await;
        if inner.system.is_an_erase_in_doubt() {
            return Err(VaultError::SystemInDoubt);
        }
        let rows = inner.system.buckets();
        for row in &rows {
            let commits = self.commits_of(writer, row);
            if !self.is_known(writer, row) || recorded.has_more(row.id, commits) {
                self.put_bucket(writer, row).await?;
            }
        }
        let mut next = writer.head().clone();
        // It opens all that was read, and says no more than what is read from here on.
        next.keystore = self.carry_changed(keystore).await?;
        let has = rows.iter();
        let has: Vec<_> = has
            .map(|row| (row.id, self.commits_of(writer, row)))
            .collect();
        if let Some(number) = recorded.covered_by(has.iter().copied()) {
            self.cover(&mut next, number);
        }
        for (id, chain) in &self.chains {
            next.buckets.insert(id.to_string(), chain.clone());
        }
        let is_there: HashSet<String> = rows.iter().map(|row| row.id.to_string()).collect();
        next.buckets.retain(|id, _| is_there.contains(id));
        self.missing
            .retain(|id, _| is_there.contains(&id.to_string()));
        self.tell_passed(&inner, &rows, &recorded.behind(has));
        let read = self.read_files(&next).await?;
        drop(changing);
        if let Err(error) = self.put_files(writer, read, &mut next).await {
            self.forget_files();
            return Err(error);
        }
        let is_new = self.wants_head || Self::differs(writer.head(), &next);
        if is_new {
            let before = writer.head().buckets.len();
            let kept = next
                .buckets
                .keys()
                .filter(|id| writer.head().buckets.contains_key(*id));
            self.has_lost_buckets = kept.count() < before;
            (next.as_of_ms, next.after_ms) = (began_ms, self.complete_ms());
            next.keep_ms = self.entry.keep_ms;
            if let Err(error) = self.commit(writer, next).await {
                self.forget_files();
                return Err(error);
            }
            self.note_in_head(&inner, writer.head());
            self.chains.clear();
            (self.wants_head, self.files.are_renewed) = (false, false);
            self.progress.window(writer.head());
            self.note_head(writer).await?;
        }
        self.complete_ms = began_ms;
        self.note_complete(began_ms);
        Ok(is_new)
    }

    /// Puts what is new of all buckets that there are, and of those that are made meanwhile, so
    /// that little is left for when none can be made.
    async fn put_buckets(&mut self, writer: &mut CopyWriter, inner: &Inner) -> Result<()> {
        for row in inner.system.buckets() {
            self.put_bucket(writer, &row).await?;
        }
        for _ in 0..COPY_NEW_BUCKETS_PASSES {
            let rows = inner.system.buckets().into_iter();
            let new: Vec<_> = rows.filter(|row| !self.is_known(writer, row)).collect();
            if new.is_empty() {
                break;
            }
            for row in new {
                self.put_bucket(writer, &row).await?;
            }
        }
        Ok(())
    }

    /// What was put since the last head is not believed to be there.
    pub(super) fn forget_puts(&mut self) {
        let lost = self.chains.drain().map(|(id, _)| id);
        let lost = lost.chain(self.unfinished.drain().map(|(id, _)| id));
        self.renewed.extend(lost);
        self.met.clear();
        self.new_blobs.forget();
        self.forget_files();
        self.gone = None;
    }

    /// What was written last does not open any more: the next head says all of it again.
    pub(super) fn end_is_damaged(&mut self, writer: &CopyWriter) {
        tracing::error!(
            copy = self.name(),
            number = writer.known().number,
            "the end of the log was damaged in its store: a head is written that has all of it"
        );
        self.wants_head = true;
    }

    /// Remembers that the newest head has all, and that nothing comes any more.
    pub(super) async fn rest(&self, writer: &CopyWriter) -> Result<()> {
        let (inner, id, number) = (self.inner()?, self.entry.id, writer.known().number);
        blocking(move || inner.copies.registry.note_rest(id, number)).await
    }

    fn differs(head: &Head, next: &Head) -> bool {
        let is_whole = head.as_of_ms > 0;
        let is_same = head.buckets == next.buckets && head.files == next.files;
        !(is_whole && is_same && head.keystore == next.keystore)
    }

    /// How many commits of a catalog the next head has.
    fn commits_of(&self, writer: &CopyWriter, row: &BucketRow) -> u64 {
        let of_head = || writer.head().buckets.get(&row.id.to_string());
        let state = self.chains.get(&row.id).or_else(of_head);
        state.map_or(0, |state| state.commits)
    }

    fn is_known(&self, writer: &CopyWriter, row: &BucketRow) -> bool {
        let id = row.id;
        writer.head().buckets.contains_key(&id.to_string()) || self.chains.contains_key(&id)
    }
}
