//! A round: what is new since the last one, in the order that keeps every head whole.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use coffer_replica::{BucketState, Copy, CopyWriter, Head, Place};
use coffer_seal::{BlobId, BucketId};
use coffer_store::BlobStore;
use futures::StreamExt;

use crate::blocking::blocking;
use crate::copies::{Entry, Progress};
use crate::error::{Result, VaultError};
use crate::system::BucketRow;
use crate::vault::Inner;

/// So many are looked for at once.
const BLOBS_LISTED: usize = 1_000;

/// What of small files was put since the start.
#[derive(Default)]
pub(super) struct FilesPut {
    /// How many commits `system.db` had.
    pub(super) system_commits: Option<u64>,
    /// The last record of the audit log.
    pub(super) audit_record: Option<u64>,
}

/// What a copy's task knows.
pub(super) struct Round {
    inner: Weak<Inner>,
    pub(super) entry: Entry,
    pub(super) progress: Arc<Progress>,
    readers: Arc<AtomicUsize>,
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
    /// Blobs that were gone at the last sweep: no head names them when the next one is done.
    gone: Vec<(BucketId, Vec<BlobId>)>,
    has_lost_buckets: bool,
}

impl Round {
    pub(super) fn new(
        inner: &Arc<Inner>,
        entry: Entry,
        progress: Arc<Progress>,
        readers: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            inner: Arc::downgrade(inner),
            entry,
            progress,
            readers,
            chains: HashMap::new(),
            unfinished: HashMap::new(),
            met: HashSet::new(),
            files: FilesPut::default(),
            missing: HashMap::new(),
            gone: Vec::new(),
            has_lost_buckets: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.entry.name
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
        (count > 0).then(|| {
            format!(
                "{count} blobs that catalogs name are missing in the data folder, so the copy \
                 lacks them and can't be restored whole: `coffer verify` names the objects; put \
                 their files back and start the server again, or delete the objects"
            )
        })
    }

    pub(super) fn inner(&self) -> Result<Arc<Inner>> {
        self.inner.upgrade().ok_or(VaultError::ShuttingDown)
    }

    /// Becomes the copy's writer.
    pub(super) async fn resume(&mut self) -> Result<CopyWriter> {
        let inner = self.inner()?;
        let place = Place::parse(&self.entry.url)?;
        let store = blocking(move || Ok(place.open(false)?)).await?;
        let copy = Copy::new(store, self.entry.id, &inner.keystore.system_key());
        let known = inner.copies.registry.get(&self.entry.name)?.known;
        let writer = CopyWriter::resume(copy, known.as_ref()).await?;
        self.progress.begun(writer.head().as_of_ms);
        self.note_head(&writer).await?;
        Ok(writer)
    }

    async fn note_head(&self, writer: &CopyWriter) -> Result<()> {
        let (inner, id, known) = (self.inner()?, self.entry.id, writer.known().clone());
        blocking(move || inner.copies.registry.note_head(id, &known)).await
    }

    /// Puts what is new. Whether anything was. All that was acknowledged before `began_ms` is in
    /// the copy afterwards.
    pub(super) async fn run(&mut self, writer: &mut CopyWriter, began_ms: i64) -> Result<bool> {
        let inner = self.inner()?;
        for row in inner.system.buckets() {
            self.put_bucket(writer, &row).await?;
        }
        // No bucket is made or goes from here on until all is read that tells of buckets.
        let changing = inner.changing_buckets.lock().await;
        let rows = inner.system.buckets();
        for row in &rows {
            if !self.is_known(writer, row) {
                self.put_bucket(writer, row).await?;
            }
        }
        let mut next = writer.head().clone();
        for (id, chain) in &self.chains {
            next.buckets.insert(id.to_string(), chain.clone());
        }
        let is_there: HashSet<String> = rows.iter().map(|row| row.id.to_string()).collect();
        next.buckets.retain(|id, _| is_there.contains(id));
        self.missing
            .retain(|id, _| is_there.contains(&id.to_string()));
        let read = self.read_files(&next).await?;
        drop(changing);
        if let Err(error) = self.put_files(writer, read, &mut next).await {
            self.forget_files();
            return Err(error);
        }
        let is_new = Self::differs(writer.head(), &next);
        if is_new {
            let before = writer.head().buckets.len();
            let kept = next
                .buckets
                .keys()
                .filter(|id| writer.head().buckets.contains_key(*id));
            self.has_lost_buckets = kept.count() < before;
            next.as_of_ms = began_ms;
            if let Err(error) = writer.commit(next).await {
                self.forget_files();
                return Err(error.into());
            }
            self.chains.clear();
            self.note_head(writer).await?;
        }
        Ok(is_new)
    }

    fn differs(head: &Head, next: &Head) -> bool {
        head.buckets != next.buckets || head.files != next.files || head.as_of_ms == 0
    }

    fn is_known(&self, writer: &CopyWriter, row: &BucketRow) -> bool {
        let id = row.id;
        writer.head().buckets.contains_key(&id.to_string()) || self.chains.contains_key(&id)
    }

    /// Removes what no head names, unless the copy is being read.
    pub(super) async fn sweep(&mut self, writer: &CopyWriter) -> Result<()> {
        if self.readers.load(Ordering::SeqCst) > 0 {
            return Ok(());
        }
        for (bucket, ids) in std::mem::take(&mut self.gone) {
            writer.remove_blobs(bucket, &ids).await?;
        }
        let swept = writer.sweep().await?;
        self.has_lost_buckets = false;
        if swept.object_count > 0 {
            tracing::debug!(copy = self.name(), objects = swept.object_count, "swept");
        }
        self.gone = self.find_gone(writer).await?;
        Ok(())
    }

    /// Blobs of the copy whose files are not there any more. A file goes when nothing refers to it.
    async fn find_gone(&self, writer: &CopyWriter) -> Result<Vec<(BucketId, Vec<BlobId>)>> {
        let inner = self.inner()?;
        let mut all = Vec::new();
        for row in inner.system.buckets() {
            let mut listed = pin!(writer.blobs(row.id).ready_chunks(BLOBS_LISTED));
            while let Some(there) = listed.next().await {
                let there: Vec<BlobId> = there.into_iter().collect::<Result<_, _>>()?;
                let blobs = BlobStore::new(&inner.folder.bucket(row.id), row.id);
                let gone = blocking(move || {
                    let is_gone = |id: &BlobId| !blobs.path(*id).exists();
                    Ok(there.into_iter().filter(is_gone).collect::<Vec<_>>())
                });
                let gone = gone.await?;
                if !gone.is_empty() {
                    all.push((row.id, gone));
                }
            }
        }
        Ok(all)
    }
}
