//! Configuration of buckets that is asked for before a bucket is opened, or by those who may not
//! have it opened: so it is here, and in memory, rather than in the catalog.

use std::collections::HashMap;
use std::sync::Arc;

use coffer_seal::BucketId;
use rusqlite::Connection;

/// A kind of document that configures a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketConfiguration {
    /// Which pages of other origins browsers let use the bucket.
    Cors,
}

impl BucketConfiguration {
    /// Its name in `system.db` and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cors => "cors",
        }
    }
}

/// The kind of document that says who made a bucket. It is no configuration, and never changes.
pub(super) const MADE_BY: &str = "made-by";

/// The documents of a kind, of all buckets.
pub(super) fn load(
    connection: &Connection,
    kind: &str,
) -> rusqlite::Result<HashMap<BucketId, Arc<str>>> {
    let table = "bucket_configuration";
    if !connection.table_exists(Some("main"), table)? {
        return Ok(HashMap::new());
    }
    let mut statement = connection
        .prepare("SELECT bucket_id, document FROM bucket_configuration WHERE kind = ?")?;
    let rows = statement.query_map([kind], |row| {
        let document: String = row.get(1)?;
        Ok((BucketId(row.get(0)?), Arc::from(document)))
    })?;
    rows.collect()
}
