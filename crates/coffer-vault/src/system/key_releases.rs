//! How many data keys clients were given, as it is kept: of a bucket among its documents, and of
//! buckets that are gone under their level, for who kept a key can open old bytes all the same.

use coffer_seal::LevelId;
use coffer_store::StoreError;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::error::{Result, VaultError};
use crate::system::System;

mod cover;

/// The kind of document that says how many keys clients were given of a level's buckets that are
/// gone. It stands under the level's id.
pub(super) const LEVEL_KEY_RELEASES: &str = "level-key-releases";

/// No more data keys than this were given to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct KeyReleases {
    /// So many at most, of those that were counted.
    pub(crate) count: u64,
    /// Whether there may be others: the server went on from an older copy of what counts them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_incomplete: bool,
}

impl KeyReleases {
    /// Those of two.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            is_incomplete: self.is_incomplete || other.is_incomplete,
        }
    }

    fn of_document(document: Option<&str>) -> Result<Self> {
        match document {
            Some(document) => serde_json::from_str(document).map_err(|_| VaultError::Damaged),
            None => Ok(Self::default()),
        }
    }

    fn to_document(self) -> String {
        serde_json::to_string(&self).expect("a struct of numbers is JSON")
    }

    /// The same with another count.
    fn with_count(self, count: u64) -> Self {
        Self { count, ..self }
    }
}

/// What a level keeps of its buckets that are gone.
fn of_level(connection: &Connection, level_id: LevelId) -> Result<KeyReleases> {
    let sql = "SELECT document FROM bucket_configuration WHERE bucket_id = ? AND kind = ?";
    let params = params![level_id.0, LEVEL_KEY_RELEASES];
    let found = connection.query_row(sql, params, |row| row.get::<_, String>(0));
    let found = found.optional().map_err(StoreError::from)?;
    KeyReleases::of_document(found.as_deref())
}

impl System {
    /// Counts keys of a bucket that goes as its level's.
    pub(super) fn add_key_releases(
        transaction: &Transaction<'_>,
        level_id: LevelId,
        gone: KeyReleases,
    ) -> Result<()> {
        if gone == KeyReleases::default() {
            return Ok(());
        }
        let all = of_level(transaction, level_id)?.and(gone);
        let sql = "INSERT OR REPLACE INTO bucket_configuration(bucket_id, kind, document)
                   VALUES(?, ?, ?)";
        let params = params![level_id.0, LEVEL_KEY_RELEASES, all.to_document()];
        transaction.execute(sql, params).map_err(StoreError::from)?;
        Ok(())
    }

    /// Forgets what a level that goes kept.
    pub(super) fn forget_key_releases(
        transaction: &Transaction<'_>,
        level_id: LevelId,
    ) -> Result<()> {
        let sql = "DELETE FROM bucket_configuration WHERE bucket_id = ? AND kind = ?";
        let params = params![level_id.0, LEVEL_KEY_RELEASES];
        transaction.execute(sql, params).map_err(StoreError::from)?;
        Ok(())
    }
}
