//! The multipart uploads under way, by bucket and by who began them.
//!
//! A bucket's are read from its catalog when that is opened, before anything can change them, and
//! then kept in step with what is committed. So a subject's are known exactly, but for those of
//! buckets that a start has not opened yet. Where it is in doubt whether a commit stands, the
//! upload counts, until the catalog is read again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use coffer_seal::BucketId;
use coffer_store::{Catalog, OpenUploads, StoreError};
use parking_lot::Mutex;

use crate::error::{Result, SubjectLimit};

/// All uploads under way.
#[derive(Clone, Default)]
pub(crate) struct UploadLedger(Arc<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    buckets: HashMap<BucketId, OfBucket>,
    by_maker: HashMap<String, u64>,
}

#[derive(Default)]
struct OfBucket {
    uploads: OpenUploads,
    /// Changes under way, and how many have ended: a reading of the catalog counts only if there
    /// were none meanwhile.
    changing: usize,
    changed: u64,
}

/// A change of a bucket's uploads, while it is committed.
pub(crate) struct Changing {
    ledger: UploadLedger,
    bucket: BucketId,
}

/// An upload that is being begun. It counts already; dropped, it counts no more.
pub(crate) struct Beginning {
    changing: Changing,
    /// Who begins it, unless it is certain, or possible, that it is there.
    made_by: Option<String>,
}

impl UploadLedger {
    /// Takes one more upload into the count of who begins it.
    ///
    /// # Errors
    /// [`SubjectLimit::Uploads`]: of one that has as many as one may.
    pub(crate) fn begin(&self, id: BucketId, made_by: &str, limit: usize) -> Result<Beginning> {
        let mut ledger = self.0.lock();
        let own = ledger.by_maker.get(made_by).copied().unwrap_or(0);
        if own >= limit as u64 {
            return Err(SubjectLimit::Uploads { limit }.into());
        }
        *ledger.by_maker.entry(made_by.to_owned()).or_default() += 1;
        let bucket = ledger.buckets.entry(id).or_default();
        bucket.changing += 1;
        bucket.uploads.count += 1;
        let by_maker = &mut bucket.uploads.by_maker;
        *by_maker.entry(made_by.to_owned()).or_default() += 1;
        Ok(Beginning {
            changing: Changing {
                ledger: self.clone(),
                bucket: id,
            },
            made_by: Some(made_by.to_owned()),
        })
    }

    /// Keeps readings of a bucket's catalog from counting while uploads of it are being ended.
    pub(crate) fn change(&self, id: BucketId) -> Changing {
        self.0.lock().buckets.entry(id).or_default().changing += 1;
        Changing {
            ledger: self.clone(),
            bucket: id,
        }
    }

    /// Reads how many a bucket has, and gives out what was read. A catalog that can't be read keeps
    /// the count that it had.
    pub(crate) async fn look(&self, id: BucketId, catalog: &Catalog) -> Option<OpenUploads> {
        let before = self.changed(id);
        let uploads = catalog.open_uploads(None).await.ok()?;
        let read = uploads.clone();
        let mut ledger = self.0.lock();
        let bucket = ledger.buckets.entry(id).or_default();
        if bucket.changing > 0 || bucket.changed != before {
            // Counts are in step with commits; these two are as of now and then.
            bucket.uploads.bytes = uploads.bytes;
            bucket.uploads.oldest_ms = uploads.oldest_ms;
            return Some(read);
        }
        let now = uploads.by_maker.clone();
        let old = std::mem::replace(&mut bucket.uploads, uploads);
        ledger.forget(old);
        for (made_by, count) in now {
            *ledger.by_maker.entry(made_by).or_default() += count;
        }
        Some(read)
    }

    fn changed(&self, id: BucketId) -> u64 {
        self.0.lock().buckets.get(&id).map_or(0, |it| it.changed)
    }

    /// Forgets a bucket that is gone.
    pub(crate) fn forget(&self, id: BucketId) {
        let mut ledger = self.0.lock();
        if let Some(bucket) = ledger.buckets.remove(&id) {
            ledger.forget(bucket.uploads);
        }
    }

    /// Forgets all buckets but these.
    pub(crate) fn keep(&self, ids: &HashSet<BucketId>) {
        let known: Vec<BucketId> = self.0.lock().buckets.keys().copied().collect();
        for id in known.into_iter().filter(|id| !ids.contains(id)) {
            self.forget(id);
        }
    }

    /// Those of a bucket, as far as it was opened since the start: its count as of now, the rest as
    /// of the last look.
    pub(crate) fn of(&self, id: BucketId) -> Option<OpenUploads> {
        let ledger = self.0.lock();
        ledger.buckets.get(&id).map(|it| it.uploads.clone())
    }

    /// How many there are in all buckets.
    pub(crate) fn count(&self) -> u64 {
        let ledger = self.0.lock();
        ledger.buckets.values().map(|it| it.uploads.count).sum()
    }
}

impl Ledger {
    fn forget(&mut self, uploads: OpenUploads) {
        for (made_by, count) in uploads.by_maker {
            less(&mut self.by_maker, &made_by, count);
        }
    }

    /// Takes an upload out of a bucket's count.
    fn ended(&mut self, id: BucketId, made_by: Option<&str>) {
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return;
        };
        bucket.uploads.count = bucket.uploads.count.saturating_sub(1);
        let Some(made_by) = made_by else { return };
        if let Some(count) = bucket.uploads.by_maker.get_mut(made_by) {
            *count = count.saturating_sub(1);
            less(&mut self.by_maker, made_by, 1);
        }
    }
}

fn less(counts: &mut HashMap<String, u64>, made_by: &str, by: u64) {
    if let Some(count) = counts.get_mut(made_by) {
        *count = count.saturating_sub(by);
        if *count == 0 {
            counts.remove(made_by);
        }
    }
}

impl Changing {
    /// Takes an upload that has ended out of the count.
    pub(crate) fn ended(&self, made_by: Option<&str>) {
        self.ledger.0.lock().ended(self.bucket, made_by);
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        let mut ledger = self.ledger.0.lock();
        if let Some(bucket) = ledger.buckets.get_mut(&self.bucket) {
            bucket.changing = bucket.changing.saturating_sub(1);
            bucket.changed += 1;
        }
    }
}

impl Beginning {
    /// Decides whether it goes on counting, by the outcome of the commit that was to begin it: it
    /// is there, or may be, and then the next reading decides.
    pub(crate) fn settle(mut self, outcome: &Result<(), StoreError>) {
        // A catalog that was closed may have taken it.
        if let Ok(()) | Err(StoreError::InDoubt | StoreError::Closed) = outcome {
            self.made_by = None;
        }
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if let Some(made_by) = self.made_by.take() {
            self.changing.ended(Some(&made_by));
        }
    }
}

#[cfg(test)]
mod tests {
    use coffer_seal::{SecretKey, UploadId};
    use coffer_store::record::{Details, ObjectName, Upload};

    use super::*;

    const ONE: BucketId = BucketId([1; 16]);
    const OTHER: BucketId = BucketId([2; 16]);

    fn count_of(ledger: &UploadLedger, made_by: &str) -> u64 {
        ledger.0.lock().by_maker.get(made_by).copied().unwrap_or(0)
    }

    async fn upload(catalog: &Catalog, made_by: &str) -> UploadId {
        let upload = Upload {
            id: UploadId::random(),
            name: ObjectName::new("o").unwrap(),
            started_ms: 5,
            details: Details::default(),
            checksum: None,
            tags: Vec::new(),
            lock: Default::default(),
            acl: None,
            made_by: Some(made_by.to_owned()),
        };
        let id = upload.id;
        catalog.create_upload(upload).await.unwrap();
        id
    }

    #[test]
    fn a_limit_counts_those_of_all_buckets_and_what_did_not_come_about_counts_no_more() {
        let ledger = UploadLedger::default();
        ledger.begin(ONE, "ann", 2).unwrap().settle(&Ok(()));
        let second = ledger.begin(OTHER, "ann", 2).unwrap();
        assert!(ledger.begin(ONE, "ann", 2).is_err());
        ledger.begin(ONE, "bob", 2).unwrap().settle(&Ok(()));
        assert_eq!(ledger.count(), 3);
        drop(second);
        ledger.begin(OTHER, "ann", 2).unwrap().settle(&Ok(()));
        assert!(ledger.begin(ONE, "ann", 2).is_err());
        ledger.change(ONE).ended(Some("ann"));
        assert_eq!(count_of(&ledger, "ann"), 1);
        ledger.forget(OTHER);
        assert_eq!((count_of(&ledger, "ann"), ledger.count()), (0, 1));
        // What ends in a bucket that is gone takes nothing from others.
        ledger.change(ONE).ended(None);
        ledger.keep(&HashSet::from([OTHER]));
        assert!(ledger.0.lock().by_maker.is_empty());
    }

    #[test]
    fn what_was_certainly_not_stored_counts_no_more_at_once() {
        let ledger = UploadLedger::default();
        for refused in [
            StoreError::Full,
            StoreError::DiskReadOnly,
            StoreError::Replaced,
            StoreError::Io {
                op: "open",
                path: "catalog.db".into(),
                source: std::io::ErrorKind::Other.into(),
            },
        ] {
            let begun = ledger.begin(ONE, "ann", 1).unwrap();
            begun.settle(&Err(refused));
            assert_eq!((count_of(&ledger, "ann"), ledger.count()), (0, 0));
        }
        let begun = ledger.begin(ONE, "ann", 1).unwrap();
        begun.settle(&Err(StoreError::Closed));
        assert_eq!((count_of(&ledger, "ann"), ledger.count()), (1, 1));
    }

    #[tokio::test]
    async fn a_reading_counts_unless_there_were_changes_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let key = SecretKey::generate();
        let catalog = Catalog::create(dir.path(), &key, "b").await.unwrap();
        let ledger = UploadLedger::default();
        let id = upload(&catalog, "ann").await;
        upload(&catalog, "ann").await;
        ledger.look(ONE, &catalog).await;
        assert_eq!((count_of(&ledger, "ann"), ledger.count()), (2, 2));
        // While an upload is ended, a reading may have it or not.
        let changing = ledger.change(ONE);
        catalog.abort_upload(&id).await.unwrap();
        ledger.look(ONE, &catalog).await;
        changing.ended(Some("ann"));
        drop(changing);
        assert_eq!((count_of(&ledger, "ann"), ledger.count()), (1, 1));
        // A count that was kept in doubt is set right by the next reading.
        let begun = ledger.begin(ONE, "ann", 9).unwrap();
        begun.settle(&Err(StoreError::InDoubt));
        assert_eq!(count_of(&ledger, "ann"), 2);
        ledger.look(ONE, &catalog).await;
        assert_eq!((count_of(&ledger, "ann"), ledger.count()), (1, 1));
        assert_eq!(ledger.of(ONE).unwrap().oldest_ms, Some(5));
        catalog.close().await;
    }
}
