//! Buckets in the system database, and in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use coffer_keys::LevelEntry;
use coffer_label::Label;
use coffer_seal::{BucketId, LevelId};
use coffer_store::StoreError;
use rusqlite::{Connection, Transaction, params};

use super::System;
use super::configuration::{self, BucketConfiguration, BucketDocuments, MD5_ETAGS};
use crate::access::BucketName;
use crate::error::{Result, VaultError};

mod room;

mod going;

mod changes;

pub(super) use self::changes::set_document;
use self::going::Going;
use self::room::Room;

/// A bucket as the system knows it.
#[derive(Clone, Debug)]
pub(crate) struct BucketRow {
    pub(crate) id: BucketId,
    pub(crate) name: BucketName,
    pub(crate) level_id: LevelId,
    pub(crate) created_ms: i64,
    /// Looked up when first needed.
    pub(crate) level: OnceLock<LevelTag>,
    /// Whether it is out of use, also for those who had looked it up before: being removed or
    /// erased, or not made yet.
    pub(crate) is_hidden: Arc<AtomicBool>,
    /// The subject that made it as a data user, where that is known.
    pub(crate) made_by: Option<Arc<str>>,
    /// Its configuration.
    pub(crate) documents: Arc<BucketDocuments>,
}

impl BucketRow {
    /// Whether it is out of use: hidden, or what was last set of it is in doubt.
    pub(crate) fn is_out_of_use(&self) -> bool {
        self.is_hidden.load(Ordering::SeqCst) || self.documents.is_in_doubt()
    }

    /// Whether objects of the bucket can be locked.
    pub(crate) fn has_object_lock(&self) -> bool {
        self.documents
            .get(BucketConfiguration::ObjectLock)
            .is_some()
    }

    /// Whether entity tags of what comes to the bucket are MD5s, whatever the server does.
    pub(crate) fn has_md5_etags(&self) -> bool {
        self.documents.get(BucketConfiguration::Etag).as_deref() == Some(MD5_ETAGS)
    }
}

/// What never changes of a level.
#[derive(Clone, Debug)]
pub(crate) struct LevelTag {
    pub(crate) name: String,
    pub(crate) label: Label,
    /// Whether reads and writes of its objects are recorded.
    pub(crate) is_watched: bool,
    /// Whether its buckets can be shared with those who sign nothing.
    pub(crate) is_public: bool,
    /// Whether clients may be given data keys of its objects.
    pub(crate) has_sealed_transfer: bool,
}

impl LevelTag {
    pub(crate) fn of(level: LevelEntry) -> Self {
        Self {
            name: level.name,
            label: level.label,
            is_watched: level.options.audit_data,
            is_public: level.options.public,
            has_sealed_transfer: level.options.sealed_transfer,
        }
    }
}

/// All buckets that are in sight.
#[derive(Default)]
pub(super) struct Buckets {
    by_name: BTreeMap<BucketName, Arc<BucketRow>>,
    by_id: HashMap<BucketId, Arc<BucketRow>>,
    /// Those whose rows are being added. Whether they are there is not known before that is
    /// committed, which may be in doubt for a while.
    being_made: HashMap<BucketId, Arc<BucketRow>>,
    going: Going,
}

impl Buckets {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut buckets = Self::default();
        let mut documents = configuration::load(connection).map_err(StoreError::from)?;
        let mut statement = connection
            .prepare("SELECT id, name, level_id, created_ms FROM bucket")
            .map_err(StoreError::from)?;
        let mut rows = statement.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let name: String = row.get(1).map_err(StoreError::from)?;
            let name = BucketName::new(&name).ok_or(VaultError::Damaged)?;
            let id = BucketId(row.get(0).map_err(StoreError::from)?);
            let mut documents = documents.remove(&id).unwrap_or_default();
            let row = BucketRow {
                id,
                name,
                level_id: LevelId(row.get(2).map_err(StoreError::from)?),
                created_ms: row.get(3).map_err(StoreError::from)?,
                level: OnceLock::new(),
                is_hidden: Arc::default(),
                made_by: documents.remove(configuration::MADE_BY),
                documents: Arc::new(BucketDocuments::new(documents)),
            };
            buckets.insert(Arc::new(row));
        }
        Ok(buckets)
    }

    fn insert(&mut self, row: Arc<BucketRow>) {
        self.by_id.insert(row.id, row.clone());
        self.by_name.insert(row.name.clone(), row);
    }

    fn remove(&mut self, id: BucketId) -> Option<Arc<BucketRow>> {
        let row = self.by_id.remove(&id)?;
        self.by_name.remove(&row.name);
        Some(row)
    }
}

impl System {
    pub(crate) fn bucket(&self, name: &BucketName) -> Option<Arc<BucketRow>> {
        self.buckets.read().by_name.get(name).cloned()
    }

    /// The bucket of this name, as it was sent.
    pub(crate) fn bucket_named(&self, name: &str) -> Option<Arc<BucketRow>> {
        self.buckets.read().by_name.get(name).cloned()
    }

    /// The bucket of this id.
    pub(crate) fn bucket_of_id(&self, id: BucketId) -> Option<Arc<BucketRow>> {
        self.buckets.read().by_id.get(&id).cloned()
    }

    /// Whether a commit is in doubt: then, so may be what is out of use.
    pub(crate) fn has_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::SeqCst)
    }

    /// The bucket of this name, also if it is in doubt whether it was made, or is to be erased.
    pub(crate) fn bucket_or_doubt(&self, name: &BucketName) -> Option<Arc<BucketRow>> {
        let buckets = self.buckets.read();
        let mut being_made = buckets.being_made.values();
        let may_be_made = || being_made.find(|row| row.name == *name && self.has_doubt());
        let may_stay = || buckets.going.doubtful().find(|row| row.name == *name);
        let found = buckets.by_name.get(name).or_else(may_be_made);
        found.or_else(may_stay).cloned()
    }

    /// Whether it is not certain that a bucket is there, or what is set of it. One that is just
    /// being made is not there yet, and one that is just being removed still is.
    pub(crate) fn is_in_doubt(&self, row: &BucketRow) -> bool {
        let buckets = self.buckets.read();
        let may_be_there =
            buckets.by_id.contains_key(&row.id) || buckets.being_made.contains_key(&row.id);
        let may_change = may_be_there && row.is_out_of_use() && self.has_doubt();
        may_change || buckets.going.is_doubtful(row.id)
    }

    /// Why a bucket that was looked up is out of use, or was a moment ago.
    pub(crate) fn out_of_use(&self, row: &BucketRow) -> VaultError {
        let buckets = self.buckets.read();
        // One that is being removed stays until that is committed, and may be shown again.
        if buckets.by_id.contains_key(&row.id) || buckets.going.is_doubtful(row.id) {
            VaultError::BucketInDoubt
        } else {
            VaultError::NoSuchBucket
        }
    }

    /// All buckets by name, and those of which it is in doubt whether they were made, or are to be
    /// erased.
    pub(crate) fn buckets_and_doubts(&self) -> Vec<Arc<BucketRow>> {
        let buckets = self.buckets.read();
        let mut rows = self.there_or_being_made(&buckets);
        rows.extend(buckets.going.doubtful().cloned());
        rows
    }

    /// All buckets, also those of which it is in doubt whether they were made, and those whose
    /// erase has begun.
    pub(crate) fn buckets_known(&self) -> Vec<Arc<BucketRow>> {
        let buckets = self.buckets.read();
        let mut rows = self.there_or_being_made(&buckets);
        rows.extend(buckets.going.rows.values().cloned());
        rows
    }

    fn there_or_being_made(&self, buckets: &Buckets) -> Vec<Arc<BucketRow>> {
        let mut rows: Vec<_> = buckets.by_name.values().cloned().collect();
        if self.has_doubt() {
            rows.extend(buckets.being_made.values().cloned());
        }
        rows
    }

    /// All buckets by name.
    pub(crate) fn buckets(&self) -> Vec<Arc<BucketRow>> {
        self.buckets.read().by_name.values().cloned().collect()
    }

    /// How many buckets there are.
    pub(crate) fn bucket_count(&self) -> usize {
        self.buckets.read().by_id.len()
    }

    /// How many buckets a subject has made, those among them of which that is in doubt.
    pub(crate) fn buckets_made_by(&self, maker: &str) -> usize {
        let buckets = self.buckets.read();
        let rows = buckets.by_id.values().chain(buckets.being_made.values());
        rows.filter(|row| row.made_by.as_deref() == Some(maker))
            .count()
    }

    /// Adds a bucket. One whose row is in doubt appears as soon as it is known to be there.
    ///
    /// # Errors
    /// [`ConfigurationsFull`](crate::AdministrationError::ConfigurationsFull): of one that is made
    /// with a list, for which its level has no room.
    pub(crate) fn add_bucket(&self, row: BucketRow) -> Result<()> {
        let row = Arc::new(row);
        row.is_hidden.store(true, Ordering::SeqCst);
        let params = (
            row.id.0,
            row.name.to_string(),
            row.level_id.0,
            row.created_ms,
        );
        let id = row.id.0;
        let mut documents = row.documents.all();
        let made_by = row.made_by.clone();
        documents.extend(made_by.map(|maker| (configuration::MADE_BY.to_owned(), maker)));
        let level_id = row.level_id;
        let is_limited = documents.contains_key(BucketConfiguration::Acl.name());
        let add = move |transaction: &Transaction<'_>| {
            let room = is_limited.then(|| Room::look(transaction, level_id));
            let room = room.transpose()?;
            let sql = "INSERT INTO bucket(id, name, level_id, created_ms) VALUES(?, ?, ?, ?)";
            transaction.execute(sql, params).map_err(StoreError::from)?;
            for (kind, document) in documents {
                let sql = "INSERT INTO bucket_configuration(bucket_id, kind, document)
                           VALUES(?, ?, ?)";
                let params = params![id, kind, &*document];
                transaction.execute(sql, params).map_err(StoreError::from)?;
            }
            if let Some(room) = room {
                room.refuse_above(transaction)?;
            }
            Ok(())
        };
        let new = row.clone();
        let appear = move |system: &Self, is_added: bool| {
            system.buckets.write().being_made.remove(&row.id);
            if is_added {
                system.show(row);
            }
        };
        let mut held = self.held();
        self.buckets.write().being_made.insert(new.id, new);
        held.change_then(add, Box::new(appear))
    }

    /// Removes a bucket's row. From then on its folder is to be removed once its key is gone, also
    /// by the next start.
    ///
    /// From the beginning the bucket is out of use, and stays so while it is in doubt whether it is
    /// removed. `kept` is called once it is certain that it is not.
    pub(crate) fn remove_bucket(
        &self,
        row: &Arc<BucketRow>,
        kept: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        row.is_hidden.store(true, Ordering::SeqCst);
        let (id, level_id) = (row.id.0, row.level_id);
        let released = self.key_releases(row);
        let remove = move |transaction: &Transaction<'_>| {
            let run = |sql| transaction.execute(sql, [id]).map_err(StoreError::from);
            run("DELETE FROM bucket_grant WHERE bucket_id = ?")?;
            run("DELETE FROM bucket_configuration WHERE bucket_id = ?")?;
            run("DELETE FROM quota WHERE kind = 'bucket' AND id = ?")?;
            run("INSERT OR IGNORE INTO doomed(bucket_id) VALUES(?)")?;
            run("DELETE FROM bucket WHERE id = ?")?;
            Self::add_key_releases(transaction, level_id, released)
        };
        let row = row.clone();
        let settle = move |system: &Self, is_removed: bool| {
            if is_removed {
                system.hide(&[row.id]);
            } else {
                kept();
                row.is_hidden.store(false, Ordering::SeqCst);
            }
        };
        self.held().change_then(remove, Box::new(settle))
    }

    /// Takes buckets out of sight whose rows are gone.
    fn hide(&self, ids: &[BucketId]) {
        let mut buckets = self.buckets.write();
        for row in ids.iter().filter_map(|id| buckets.remove(*id)) {
            row.is_hidden.store(true, Ordering::SeqCst);
        }
    }

    /// Shows a bucket whose row is there.
    fn show(&self, row: Arc<BucketRow>) {
        row.is_hidden.store(false, Ordering::SeqCst);
        self.buckets.write().insert(row);
    }
}
