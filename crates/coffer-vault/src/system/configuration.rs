//! Configuration of buckets that is asked for before a bucket is opened, or by those who may not
//! have it opened: so it is here, and in memory, rather than in the catalog.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coffer_seal::BucketId;
use parking_lot::RwLock;
use rusqlite::Connection;

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
}

/// The document that says that entity tags are MD5s.
pub const MD5_ETAGS: &str = "md5";

impl BucketConfiguration {
    /// Its name in `system.db` and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cors => "cors",
            Self::Encryption => "encryption",
            Self::Etag => "etag",
        }
    }
}

/// The kind of document that says who made a bucket. It is no configuration, and never changes.
pub(super) const MADE_BY: &str = "made-by";

/// The documents of a bucket, by kind.
#[derive(Debug, Default)]
pub(crate) struct BucketDocuments(RwLock<BTreeMap<String, Arc<str>>>);

impl BucketDocuments {
    pub(super) fn new(documents: BTreeMap<String, Arc<str>>) -> Self {
        Self(RwLock::new(documents))
    }

    /// Those of a bucket that is about to be made.
    pub(crate) fn first(documents: Vec<(BucketConfiguration, String)>) -> Self {
        let named = |(kind, document): (BucketConfiguration, String)| {
            (kind.name().to_owned(), Arc::from(document))
        };
        Self::new(documents.into_iter().map(named).collect())
    }

    pub(crate) fn get(&self, kind: BucketConfiguration) -> Option<Arc<str>> {
        self.0.read().get(kind.name()).cloned()
    }

    /// All of them, by the names of their kinds.
    pub(super) fn all(&self) -> BTreeMap<String, Arc<str>> {
        self.0.read().clone()
    }

    pub(super) fn set(&self, kind: &str, document: Option<Arc<str>>) {
        let mut documents = self.0.write();
        match document {
            Some(document) => documents.insert(kind.to_owned(), document),
            None => documents.remove(kind),
        };
    }
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
