//! Configuration of buckets that is asked for before a bucket is opened, or by those who may not
//! have it opened: so it is here, and in memory, rather than in the catalog.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_policy::AccountId;
use coffer_seal::BucketId;
use parking_lot::{Mutex, MutexGuard, RwLock};
use rusqlite::Connection;

use crate::access::{Sharing, SharingDocuments};
use crate::error::{Result, VaultError};
use crate::lifecycle::LifecycleRules;

/// A kind of document that configures a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketConfiguration {
    /// Which pages of other origins browsers let use the bucket.
    Cors,
    /// How objects are said to be encrypted whose writers ask for nothing: a
    /// [`BucketEncryption`](crate::BucketEncryption).
    Encryption,
    /// How entity tags come about: [`MD5_ETAGS`](crate::MD5_ETAGS). Said when a bucket is made.
    Etag,
    /// When objects end by themselves: [`LifecycleRules`].
    Lifecycle,
    /// The policy: who may what, with its principals as ids.
    Policy,
    /// What blocks the public.
    PublicAccessBlock,
    /// Who owns objects, where lists count.
    ObjectOwnership,
    /// The bucket's access control list: its grants.
    Acl,
    /// That objects can be locked, and how new ones are: an
    /// [`ObjectLock`](crate::ObjectLock).
    ObjectLock,
    /// What locks there may be. The server's own.
    LockBound,
    /// How many data keys were given to clients. The server's own.
    KeyReleases,
}

/// Kinds that the server keeps for itself: no user makes them longer than they are, and none is
/// refused for what users have set.
pub(super) const OWN_KINDS: [BucketConfiguration; 2] = [
    BucketConfiguration::LockBound,
    BucketConfiguration::KeyReleases,
];

/// The document that says that entity tags are MD5s.
pub const MD5_ETAGS: &str = "md5";

impl BucketConfiguration {
    /// Its name in `system.db` and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cors => "cors",
            Self::Encryption => "encryption",
            Self::Etag => "etag",
            Self::Lifecycle => "lifecycle",
            Self::Policy => "policy",
            Self::PublicAccessBlock => "public-access-block",
            Self::ObjectOwnership => "object-ownership",
            Self::Acl => "acl",
            Self::ObjectLock => "object-lock",
            Self::LockBound => "lock-bound",
            Self::KeyReleases => "key-releases",
        }
    }
}

/// The kind of document that says who made a bucket. It is no configuration, and never changes.
pub(super) const MADE_BY: &str = "made-by";

/// The documents of a bucket, by kind.
#[derive(Debug, Default)]
pub(crate) struct BucketDocuments {
    kept: RwLock<BTreeMap<String, Arc<str>>>,
    /// Whether any of them says who may use the bucket, so that it is to be asked.
    is_shared: AtomicBool,
    /// What they say of that, once it was read.
    sharing: RwLock<Option<Arc<Sharing>>>,
    /// The lifecycle rules, once they were read.
    lifecycle: RwLock<Option<Arc<LifecycleRules>>>,
    locks_made: Mutex<LocksMade>,
    keys_given: Mutex<KeysGiven>,
    /// Whether it is in doubt what was last set of the bucket.
    is_in_doubt: AtomicBool,
}

/// How many locks were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LocksMade {
    /// At most so many; 0 before the first one since the start.
    pub(super) number: u64,
    /// Of how many it is not known yet whether they are.
    pub(super) under_way: u32,
    /// How often the bound was asked for or changed: it only rises.
    pub(super) changes: u64,
    /// Whether it is not certain that the bound was not lowered, whatever is told of it.
    pub(super) may_be_lowered: bool,
}

/// How many data keys clients were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeysGiven {
    /// At most so many; none before the first one since the start.
    pub(super) number: Option<u64>,
    /// Whether it is not certain that the bound was not lowered, whatever is told of it.
    pub(super) may_be_lowered: bool,
}

impl BucketDocuments {
    pub(super) fn new(documents: BTreeMap<String, Arc<str>>) -> Self {
        Self {
            is_shared: AtomicBool::new(says_who_may(&documents)),
            kept: RwLock::new(documents),
            sharing: RwLock::default(),
            lifecycle: RwLock::default(),
            locks_made: Mutex::default(),
            keys_given: Mutex::default(),
            is_in_doubt: AtomicBool::new(false),
        }
    }

    /// Those of a bucket that is about to be made.
    pub(crate) fn first(documents: Vec<(BucketConfiguration, String)>) -> Self {
        let named = |(kind, document): (BucketConfiguration, String)| {
            (kind.name().to_owned(), Arc::from(document))
        };
        Self::new(documents.into_iter().map(named).collect())
    }

    /// How many locks were made, for one who makes one more: no other does meanwhile.
    pub(super) fn locks_made(&self) -> MutexGuard<'_, LocksMade> {
        self.locks_made.lock()
    }

    /// How many data keys were given, for one who gives more: no other does meanwhile.
    pub(super) fn keys_given(&self) -> MutexGuard<'_, KeysGiven> {
        self.keys_given.lock()
    }

    /// The same, where that takes no waiting.
    pub(super) fn try_keys_given(&self) -> Option<MutexGuard<'_, KeysGiven>> {
        self.keys_given.try_lock()
    }

    pub(crate) fn get(&self, kind: BucketConfiguration) -> Option<Arc<str>> {
        self.kept.read().get(kind.name()).cloned()
    }

    /// Whether it is in doubt what was last set of the bucket: one of them, or a quota.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_in_doubt.load(Ordering::SeqCst)
    }

    pub(super) fn doubt(&self, is_in_doubt: bool) {
        self.is_in_doubt.store(is_in_doubt, Ordering::SeqCst);
    }

    /// All of them, by the names of their kinds.
    pub(super) fn all(&self) -> BTreeMap<String, Arc<str>> {
        self.kept.read().clone()
    }

    pub(super) fn set(&self, kind: &str, document: Option<Arc<str>>) {
        let mut documents = self.kept.write();
        match document {
            Some(document) => documents.insert(kind.to_owned(), document),
            None => documents.remove(kind),
        };
        // What was read of other documents stays: a run of rules ends where they are others.
        if SHARING.iter().any(|one| one.name() == kind) {
            *self.sharing.write() = None;
        }
        if kind == BucketConfiguration::Lifecycle.name() {
            *self.lifecycle.write() = None;
        }
        self.is_shared
            .store(says_who_may(&documents), Ordering::SeqCst);
    }

    /// The lifecycle rules, if any are set: the same as long as they are not set anew.
    ///
    /// # Errors
    /// [`VaultError::Damaged`](crate::VaultError::Damaged).
    pub(crate) fn lifecycle(&self) -> Result<Option<Arc<LifecycleRules>>> {
        // Held until it is noted what was read: else a change meanwhile would go unnoticed.
        let documents = self.kept.read();
        let Some(document) = documents.get(BucketConfiguration::Lifecycle.name()) else {
            return Ok(None);
        };
        if let Some(known) = &*self.lifecycle.read() {
            return Ok(Some(known.clone()));
        }
        let rules = serde_json::from_str(document).map_err(|_| VaultError::Damaged)?;
        // Another may have read them just now: all get the same.
        let mut known = self.lifecycle.write();
        Ok(Some(known.get_or_insert_with(|| Arc::new(rules)).clone()))
    }

    /// Whether any of them says who may use the bucket.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::SeqCst)
    }

    /// What they say of who may use the bucket, if any of them does.
    ///
    /// # Errors
    /// [`VaultError::Damaged`](crate::VaultError::Damaged).
    pub(crate) fn sharing(
        &self,
        bucket: &str,
        account: &AccountId,
    ) -> Result<Option<Arc<Sharing>>> {
        if !self.is_shared() {
            return Ok(None);
        }
        if let Some(sharing) = &*self.sharing.read() {
            return Ok(Some(sharing.clone()));
        }
        // Held until it is noted what was read: else a change meanwhile would go unnoticed.
        let documents = self.kept.read();
        if !says_who_may(&documents) {
            return Ok(None);
        }
        let text = |kind: BucketConfiguration| documents.get(kind.name()).cloned();
        let read = SharingDocuments {
            policy: text(BucketConfiguration::Policy),
            block: text(BucketConfiguration::PublicAccessBlock),
            ownership: text(BucketConfiguration::ObjectOwnership),
            acl: text(BucketConfiguration::Acl),
        };
        let sharing = Arc::new(Sharing::read(read, bucket, account)?);
        *self.sharing.write() = Some(sharing.clone());
        Ok(Some(sharing))
    }
}

/// What is read together as [`Sharing`].
const SHARING: [BucketConfiguration; 4] = [
    BucketConfiguration::Policy,
    BucketConfiguration::PublicAccessBlock,
    BucketConfiguration::ObjectOwnership,
    BucketConfiguration::Acl,
];

/// Whether any of the documents says who may use the bucket. Blocks alone only take away, and a
/// list counts only where the ownership of objects says so.
fn says_who_may(documents: &BTreeMap<String, Arc<str>>) -> bool {
    documents.contains_key(BucketConfiguration::Policy.name())
        || documents.contains_key(BucketConfiguration::ObjectOwnership.name())
}

/// All documents of all buckets, by kind.
pub(super) fn load(
    connection: &Connection,
) -> rusqlite::Result<HashMap<BucketId, BTreeMap<String, Arc<str>>>> {
    let mut all = HashMap::<_, BTreeMap<_, _>>::new();
    if !connection.table_exists(Some("main"), "bucket_configuration")? {
        return Ok(all);
    }
    let mut statement =
        connection.prepare("SELECT bucket_id, kind, document FROM bucket_configuration")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, document): (_, String) = (BucketId(row.get(0)?), row.get(2)?);
        all.entry(id)
            .or_default()
            .insert(row.get(1)?, Arc::from(document));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_stay_the_same_while_other_documents_are_set() {
        let documents = BucketDocuments::first(vec![(
            BucketConfiguration::Lifecycle,
            serde_json::to_string(&LifecycleRules(Vec::new())).unwrap(),
        )]);
        let rules = || documents.lifecycle().unwrap().unwrap();
        let before = rules();
        documents.set("cors", Some("{}".into()));
        documents.set("lock-bound", Some("{}".into()));
        assert!(Arc::ptr_eq(&before, &rules()));
        let same = documents.get(BucketConfiguration::Lifecycle);
        documents.set("lifecycle", same);
        assert!(!Arc::ptr_eq(&before, &rules()), "set anew");
    }
}
