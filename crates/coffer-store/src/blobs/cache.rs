//! A bounded cache of blobs: files of some of the blobs that a store has, fetched when they are
//! asked for, and removed when there are too many.
//!
//! It holds sealed bytes alone and knows no keys. What a file holds is found out by who opens it;
//! what does not open goes, and is fetched anew by the next who asks. Nothing is lost with the
//! folder but blobs that no store has yet, and these are kept.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coffer_durable::check_own_folder;
use coffer_seal::BucketId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::blobs::path::{BLOBS_DIR, path_of};
use crate::error::Result;
use crate::free_space;
use crate::limits::{CACHE_FETCHES_MAX, CACHE_SPARE_BYTES};

pub(crate) mod source;

mod index;

pub(crate) mod coming;

mod scan;

mod bring;

use self::coming::{Coming, Failed};
use self::index::{Index, Key, Known};
use self::source::BlobSource;

/// Where blobs lie in the folder of a cache, in a folder a bucket.
const BUCKETS: &str = "buckets";

/// The folder beside that, where they are until they are whole.
pub const UNFINISHED: &str = "fetching";

/// A cheap handle to a cache. All handles are to the same one.
#[derive(Clone)]
pub struct BlobCache(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    max_bytes: u64,
    source: Arc<dyn BlobSource>,
    index: Mutex<Index<Arc<Coming>>>,
    fetches: Semaphore,
    /// How many fetches were begun: each has a file of its own.
    fetch_count: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    fetched_bytes: AtomicU64,
    failures: AtomicU64,
    evictions: AtomicU64,
}

/// What a cache has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// How many blobs were asked for that were there.
    pub hits: u64,
    /// How many were not there, or not yet.
    pub misses: u64,
    /// How many bytes were fetched.
    pub fetched_bytes: u64,
    /// How many blobs did not come, or not as they should be.
    pub failures: u64,
    /// How many blobs made room for others.
    pub evictions: u64,
    /// How long all files are together, in bytes.
    pub bytes: u64,
    /// How long they may be.
    pub max_bytes: u64,
}

/// A blob that is used: it is not evicted until this is dropped.
#[derive(Debug)]
pub(crate) struct Use {
    cache: BlobCache,
    key: Key,
    /// Of which of the files that it had.
    which: u64,
    /// What brings it, if it is not there yet.
    pub(crate) coming: Option<Arc<Coming>>,
    /// Whether no store has it.
    is_only_here: bool,
}

impl BlobCache {
    /// A cache in this folder, of files of so many bytes together; those that are in use, and those
    /// that no store has yet, may be more. What is in the folder is known after
    /// [`look`](Self::look), and used before.
    pub fn new(folder: &Path, max_bytes: u64, source: Arc<dyn BlobSource>) -> Self {
        Self(Arc::new(Inner {
            folder: folder.to_owned(),
            max_bytes,
            source,
            index: Mutex::default(),
            fetches: Semaphore::new(CACHE_FETCHES_MAX),
            fetch_count: AtomicU64::default(),
            hits: AtomicU64::default(),
            misses: AtomicU64::default(),
            fetched_bytes: AtomicU64::default(),
            failures: AtomicU64::default(),
            evictions: AtomicU64::default(),
        }))
    }

    /// Removes what an earlier process did not fetch to the end: before anything is fetched.
    /// Blocks.
    pub fn remove_unfinished(&self) {
        let unfinished = self.0.folder.join(UNFINISHED);
        for entry in fs::read_dir(&unfinished).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// Learns which files there are. Blocks.
    pub fn look(&self) {
        let files = scan::files(&self.0.folder.join(BUCKETS));
        self.0.index.lock().found(files.into_iter());
        self.make_room(0);
    }

    /// From now on what no store has is of no use: it is of no log.
    pub fn none_is_only_here(&self) {
        self.0.index.lock().none_is_only_here();
    }

    /// Evicts what is too much, or what a disk that is nearly full needs. Blocks.
    pub fn tend(&self) {
        self.make_room(0);
    }

    /// Whether its disk has no room for what adds data. Blocks.
    pub fn is_full(&self) -> bool {
        self.short_bytes().is_some()
    }

    /// How many bytes are to be freed on its disk before it has, if it has none. Blocks.
    pub fn short_bytes(&self) -> Option<u64> {
        free_space::short_bytes_at(&self.0.folder)
    }

    /// Forgets a bucket whose folder was removed.
    pub fn forget_bucket(&self, bucket: BucketId) {
        self.0.index.lock().forget_bucket(bucket);
    }

    /// How it stands.
    pub fn status(&self) -> CacheStatus {
        let inner = &*self.0;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CacheStatus {
            hits: count(&inner.hits),
            misses: count(&inner.misses),
            fetched_bytes: count(&inner.fetched_bytes),
            failures: count(&inner.failures),
            evictions: count(&inner.evictions),
            bytes: inner.index.lock().bytes(),
            max_bytes: inner.max_bytes,
        }
    }

    /// The folder of a bucket's blobs.
    pub(crate) fn blobs_of(&self, bucket: BucketId) -> PathBuf {
        let buckets = self.0.folder.join(BUCKETS);
        buckets.join(bucket.to_string()).join(BLOBS_DIR)
    }

    /// Holds a blob that is there, or is on its way.
    pub(crate) fn hold(&self, key: Key) -> Option<Use> {
        let mut index = self.0.index.lock();
        let known = index.hold(key);
        let which = index.which(key);
        drop(index);
        let (coming, is_only_here) = match known {
            Known::Nothing => return None,
            Known::There { is_only_here } => (None, is_only_here),
            Known::Coming(coming) => (Some(coming), false),
        };
        let counted = if coming.is_some() {
            &self.0.misses
        } else {
            &self.0.hits
        };
        counted.fetch_add(1, Ordering::Relaxed);
        Some(self.used((key, which), coming, is_only_here))
    }

    /// Holds a blob whose file was found, which was not known.
    pub(crate) fn adopt(&self, key: Key, bytes: u64) -> Use {
        let mut index = self.0.index.lock();
        index.adopt(key, bytes);
        let which = index.which(key);
        drop(index);
        self.0.hits.fetch_add(1, Ordering::Relaxed);
        self.used((key, which), None, false)
    }

    /// Has a blob fetched that is not there, of so many bytes; or holds it, if another has begun.
    pub(crate) fn fetch(&self, key: Key, bytes: u64) -> Use {
        let mut index = self.0.index.lock();
        self.0.misses.fetch_add(1, Ordering::Relaxed);
        let known = index.hold(key);
        let held = (key, index.which(key));
        match known {
            Known::Coming(coming) => return self.used(held, Some(coming), false),
            Known::There { is_only_here } => return self.used(held, None, is_only_here),
            Known::Nothing => {}
        }
        let coming = Arc::new(Coming::new(key));
        index.begin(key, coming.clone());
        let held = (key, index.which(key));
        drop(index);
        tokio::spawn(self.clone().bring(key, bytes, coming.clone()));
        self.used(held, Some(coming), false)
    }

    /// How long a blob is at its source.
    pub(crate) async fn length_at_source(&self, (bucket, id): Key) -> Result<u64> {
        let found = self.0.source.fetch(bucket, id).await;
        let found = found.map_err(|error| Failed::Source(error).told((bucket, id)))?;
        Ok(found.length_bytes)
    }

    /// A blob is begun here that no store has.
    pub(crate) fn begin_own(&self, key: Key) {
        self.0.index.lock().begin_own(key);
    }

    /// It is whole.
    pub(crate) fn made(&self, key: Key, bytes: u64) {
        self.0.index.lock().made(key, bytes);
        self.make_room(0);
    }

    /// It was not made.
    pub(crate) fn not_made(&self, key: Key) {
        self.0.index.lock().not_made(key);
    }

    /// A store has it.
    pub(crate) fn stored(&self, key: Key) {
        self.0.index.lock().stored(key);
    }

    /// Its file was removed.
    pub(crate) fn forget(&self, key: Key) {
        self.0.index.lock().forget(key);
    }

    /// Evicts until what is there is not too much, and the disk has room for so many bytes more, as
    /// far as there is what may go. Whether anything went.
    pub(crate) fn make_room(&self, bytes: u64) -> bool {
        let mut has_evicted = false;
        loop {
            let is_too_much = self.0.index.lock().bytes() > self.0.max_bytes;
            let spare_bytes = CACHE_SPARE_BYTES.saturating_add(bytes);
            if !is_too_much && free_space::room_bytes_at(&self.0.folder) >= spare_bytes {
                return has_evicted;
            }
            if !self.evict() {
                return has_evicted;
            }
            has_evicted = true;
        }
    }

    /// Removes the blob that was not used for longest, if one may go.
    fn evict(&self) -> bool {
        let Some(((bucket, id), _)) = self.0.index.lock().pop() else {
            return false;
        };
        // One who asks for it now either still opens it, or fetches it anew; should its new file
        // go in place of the old one, the next who asks finds that.
        let path = path_of(&self.blobs_of(bucket), id);
        let _ = check_own_folder(&path).and_then(|()| fs::remove_file(path));
        self.0.evictions.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn used(
        &self,
        (key, which): (Key, u64),
        coming: Option<Arc<Coming>>,
        is_only_here: bool,
    ) -> Use {
        Use {
            cache: self.clone(),
            key,
            which,
            coming,
            is_only_here,
        }
    }
}

impl Use {
    /// These bytes of it, from its source: for who reads far ahead of what has come.
    pub(crate) async fn part(&self, range: Range<u64>) -> Result<Bytes> {
        let (cache, (bucket, id)) = (&self.cache.0, self.key);
        let found = cache.source.fetch_part(bucket, id, range.clone()).await;
        let found = found.map_err(|error| Failed::Source(error).told(self.key))?;
        cache
            .fetched_bytes
            .fetch_add(found.len() as u64, Ordering::Relaxed);
        if found.len() as u64 == range.end - range.start {
            Ok(found)
        } else {
            Err(Failed::Altered("blob: its store has less of it").told(self.key))
        }
    }

    /// Its file has another length, or does not open. It goes, unless no store has it; whether it
    /// does.
    pub(crate) fn is_bad(&self) -> bool {
        self.cache.0.failures.fetch_add(1, Ordering::Relaxed);
        self.goes()
    }

    /// Its file is missing, or is to be; as [`is_bad`](Self::is_bad).
    pub(crate) fn goes(&self) -> bool {
        if self.is_only_here {
            return false;
        }
        let (bucket, id) = self.key;
        // First: what still comes is not kept then. Another may have had it fetched anew by now.
        let is_known = self.cache.0.index.lock().forget_used(self.key, self.which);
        if is_known {
            let path = path_of(&self.cache.blobs_of(bucket), id);
            let _ = check_own_folder(&path).and_then(|()| fs::remove_file(path));
        }
        true
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.cache.0.index.lock().let_go(self.key, self.which);
    }
}

impl fmt::Debug for BlobCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = formatter.debug_struct("BlobCache");
        told.field("folder", &self.0.folder).finish_non_exhaustive()
    }
}
