//! What `system.db` keeps of erases, requests and rotations: drafts of what is under way, so that a
//! restart can complete it, and receipts, which stay.
//!
//! Each is a JSON document under an id. They are few and small, and read when they are asked for.

use coffer_keys::receipt::Receipt;
use coffer_seal::{BucketId, LevelId, RequestId};
use coffer_store::StoreError;
use rusqlite::{OptionalExtension, Transaction, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Result, VaultError};
use crate::system::key_releases::LEVEL_KEY_RELEASES;
use crate::system::{Held, KeyReleases, System};

mod notes;

pub(crate) use self::notes::{FenceNote, WentOn};

/// A kind of documents: its table.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Erases that have begun, by the id of the level or bucket.
    Erase,
    /// Requests that wait for an approval.
    Request,
    /// Rotations under way, by the id of the level or bucket.
    Rotation,
    /// The last backup of the root key.
    Backup,
    /// How far the time has come by which locks end.
    LockTime,
}

/// The id of what is erased or rotated, or of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DocumentId([u8; 16]);

impl DocumentId {
    /// Of a kind that has one document.
    pub(crate) const ONLY: Self = Self([0; 16]);
}

impl From<LevelId> for DocumentId {
    fn from(LevelId(id): LevelId) -> Self {
        Self(id)
    }
}

impl From<BucketId> for DocumentId {
    fn from(BucketId(id): BucketId) -> Self {
        Self(id)
    }
}

impl From<RequestId> for DocumentId {
    fn from(RequestId(id): RequestId) -> Self {
        Self(id)
    }
}

impl Kind {
    fn table(self) -> &'static str {
        match self {
            Self::Erase => "erase",
            Self::Request => "request",
            Self::Rotation => "rotation",
            Self::Backup => "backup",
            Self::LockTime => "lock_time",
        }
    }
}

const DOOM: &str = "INSERT OR IGNORE INTO doomed(bucket_id) VALUES(?)";

/// What is told of a receipt in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceiptSummary {
    /// The receipt's id.
    pub id: String,
    /// When it was signed, in milliseconds since 1970.
    pub signed_ms: i64,
    /// "level" or "bucket".
    pub what: String,
    /// The level's name.
    pub level: String,
    /// The bucket's id, where that is what was erased.
    pub bucket_id: Option<String>,
    /// How many objects were covered.
    pub objects: u64,
    /// How many bytes those had.
    pub bytes: u64,
}

/// The documents of a kind, which no other request can change.
pub(crate) struct Documents<'a> {
    held: Held<'a>,
    table: &'static str,
}

impl Documents<'_> {
    /// Keeps a document in place of what is there under its id. Durable when this returns.
    pub(crate) fn keep<T: Serialize>(&mut self, id: DocumentId, document: &T) -> Result<()> {
        let table = self.table;
        let sql = format!("INSERT OR REPLACE INTO {table}(id, document) VALUES(?, ?)");
        let json = to_json(document)?;
        self.held
            .change(|transaction| run(transaction, &sql, params![id.0, json]).map(drop))
    }

    /// Removes a document. Whether it was there.
    pub(crate) fn remove(&mut self, id: DocumentId) -> Result<bool> {
        let sql = format!("DELETE FROM {} WHERE id = ?", self.table);
        self.held
            .change(|transaction| Ok(run(transaction, &sql, [id.0])? > 0))
    }

    /// A document.
    pub(crate) fn get<T: DeserializeOwned>(&mut self, id: DocumentId) -> Result<Option<T>> {
        let sql = format!("SELECT document FROM {} WHERE id = ?", self.table);
        let found: Option<String> = self.held.read(|connection| {
            let found = connection.query_row(&sql, [id.0], |row| row.get(0));
            Ok(found.optional().map_err(StoreError::from)?)
        })?;
        found.map(|json| from_json(&json)).transpose()
    }

    /// All of them, by id.
    pub(crate) fn all<T: DeserializeOwned>(&mut self) -> Result<Vec<T>> {
        let sql = format!("SELECT document FROM {} ORDER BY id", self.table);
        let all = self.held.read(|connection| {
            let mut statement = connection.prepare(&sql).map_err(StoreError::from)?;
            collect(statement.query_map((), |row| row.get::<_, String>(0)))
        })?;
        all.iter().map(|json| from_json(json)).collect()
    }
}

/// Runs a statement; how many rows it changed.
fn run(transaction: &Transaction<'_>, sql: &str, params: impl rusqlite::Params) -> Result<usize> {
    Ok(transaction.execute(sql, params).map_err(StoreError::from)?)
}

/// All rows of a query.
fn collect<T, F>(rows: rusqlite::Result<rusqlite::MappedRows<'_, F>>) -> Result<Vec<T>>
where
    F: FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
{
    let rows = rows.map_err(StoreError::from)?;
    rows.map(|row| Ok(row.map_err(StoreError::from)?)).collect()
}

impl System {
    /// The documents of a kind, for more than one step: no other request changes any meanwhile.
    pub(crate) fn ledger(&self, kind: Kind) -> Documents<'_> {
        Documents {
            held: self.held(),
            table: kind.table(),
        }
    }

    /// Keeps a document in place of what is there under its id. Durable when this returns.
    pub(crate) fn keep<T: Serialize>(
        &self,
        kind: Kind,
        id: DocumentId,
        document: &T,
    ) -> Result<()> {
        self.ledger(kind).keep(id, document)
    }

    /// Drops a document. Whether it was there.
    pub(crate) fn drop_document(&self, kind: Kind, id: DocumentId) -> Result<bool> {
        self.ledger(kind).remove(id)
    }

    /// A document.
    pub(crate) fn document<T: DeserializeOwned>(
        &self,
        kind: Kind,
        id: DocumentId,
    ) -> Result<Option<T>> {
        self.ledger(kind).get(id)
    }

    /// All documents of a kind, by id.
    pub(crate) fn documents<T: DeserializeOwned>(&self, kind: Kind) -> Result<Vec<T>> {
        self.ledger(kind).all()
    }

    /// Ends an erase, in one transaction: the rows of the buckets go, the receipt comes, the draft
    /// is dropped, and the buckets' folders are doomed. A level that stays keeps how many data keys
    /// were given of the bucket.
    pub(crate) fn finish_erase(
        &self,
        draft_id: DocumentId,
        buckets: &[BucketId],
        (level_id, released): (LevelId, Option<KeyReleases>),
        receipt: &Receipt,
        signed_ms: i64,
    ) -> Result<()> {
        let json = receipt.to_json();
        let finish = |transaction: &Transaction<'_>| {
            for id in buckets {
                run(transaction, "DELETE FROM bucket WHERE id = ?", [id.0])?;
                run(transaction, DOOM, [id.0])?;
                // One of its own that was not finished, before all of its level is erased.
                run(transaction, "DELETE FROM erase WHERE id = ?", [id.0])?;
            }
            let orphans = "DELETE FROM bucket_grant WHERE bucket_id NOT IN (SELECT id FROM bucket)";
            run(transaction, orphans, ())?;
            let orphans =
                "DELETE FROM bucket_configuration WHERE bucket_id NOT IN (SELECT id FROM bucket)
                 AND bucket_id != ? AND kind != ?";
            let kept = params![DocumentId::ONLY.0, LEVEL_KEY_RELEASES];
            run(transaction, orphans, kept)?;
            match released {
                Some(released) => System::add_key_releases(transaction, level_id, released)?,
                None => System::forget_key_releases(transaction, level_id)?,
            }
            let orphans =
                "DELETE FROM quota WHERE kind = 'bucket' AND id NOT IN (SELECT id FROM bucket)";
            run(transaction, orphans, ())?;
            let keep = "INSERT INTO receipt(id, signed_ms, document) VALUES(?, ?, ?)";
            run(transaction, keep, params![receipt.id, signed_ms, json])?;
            for table in ["erase", "rotation"] {
                let sql = format!("DELETE FROM {table} WHERE id = ?");
                run(transaction, &sql, [draft_id.0])?;
            }
            Ok(())
        };
        let (gone, level) = (buckets.to_vec(), released.is_none().then_some(level_id));
        let settle = move |system: &Self, is_finished: bool| {
            if is_finished {
                system.gone(&gone, level);
            }
        };
        self.held().change_then(finish, Box::new(settle))
    }

    /// Keeps a receipt that was signed again in place of the one with its id.
    pub(crate) fn replace_receipt(&self, receipt: &Receipt) -> Result<()> {
        let json = receipt.to_json();
        self.held().change(|transaction: &Transaction<'_>| {
            let replace = "UPDATE receipt SET document = ? WHERE id = ?";
            run(transaction, replace, params![json, receipt.id])?;
            Ok(())
        })
    }

    /// The buckets whose folders are still to be removed.
    pub(crate) fn doomed(&self) -> Result<Vec<BucketId>> {
        self.held().read(|connection| {
            let statement = connection.prepare("SELECT bucket_id FROM doomed");
            let mut statement = statement.map_err(StoreError::from)?;
            collect(statement.query_map((), |row| row.get(0).map(BucketId)))
        })
    }

    /// From now on a bucket's folder is to be removed, also by the next start.
    pub(crate) fn doom(&self, id: BucketId) -> Result<()> {
        self.held()
            .change(|transaction| run(transaction, DOOM, [id.0]).map(drop))
    }

    /// A doomed folder is gone.
    pub(crate) fn forget_doomed(&self, id: BucketId) -> Result<()> {
        let forget = "DELETE FROM doomed WHERE bucket_id = ?";
        self.held()
            .change(|transaction| run(transaction, forget, [id.0]).map(drop))
    }

    /// A page of receipts, the newest first, signed before `before_ms`.
    pub(crate) fn receipts(&self, before_ms: i64, limit: usize) -> Result<Vec<ReceiptSummary>> {
        let sql = "SELECT id, signed_ms, document ->> '$.erased.what',
                       document ->> '$.erased.level.name', document ->> '$.erased.objects',
                       document ->> '$.erased.bytes',
                       CASE document ->> '$.erased.what'
                           WHEN 'bucket' THEN document ->> '$.erased.buckets[0].id' END
                   FROM receipt WHERE signed_ms < ? ORDER BY signed_ms DESC, id LIMIT ?";
        let count = |row: &rusqlite::Row<'_>, column| -> rusqlite::Result<u64> {
            let count: i64 = row.get(column)?;
            Ok(count.unsigned_abs())
        };
        let summary = |row: &rusqlite::Row<'_>| {
            Ok(ReceiptSummary {
                id: row.get(0)?,
                signed_ms: row.get(1)?,
                what: row.get(2)?,
                level: row.get(3)?,
                objects: count(row, 4)?,
                bytes: count(row, 5)?,
                bucket_id: row.get(6)?,
            })
        };
        self.held().read(|connection| {
            let mut statement = connection.prepare(sql).map_err(StoreError::from)?;
            collect(statement.query_map(params![before_ms, limit as i64], summary))
        })
    }

    /// Receipts that say of a copy of this id, or without ids of one of this name, that it is yet
    /// to take a keystore.
    pub(crate) fn receipts_pending_in(&self, id: &str, name: &str) -> Result<Vec<String>> {
        let sql = "SELECT id FROM receipt WHERE EXISTS(
                       SELECT 1 FROM json_each(document, '$.copies')
                       WHERE iif(value ->> '$.id' IS NULL, value ->> '$.name' = ?2,
                                 value ->> '$.id' = ?1)
                           AND value ->> '$.keystore.state' = 'pending')
                   ORDER BY signed_ms, id";
        self.held().read(|connection| {
            let mut statement = connection.prepare(sql).map_err(StoreError::from)?;
            collect(statement.query_map([id, name], |row| row.get(0)))
        })
    }

    /// A receipt.
    pub(crate) fn receipt(&self, id: &str) -> Result<Option<Receipt>> {
        let sql = "SELECT document FROM receipt WHERE id = ?";
        let found: Option<String> = self.held().read(|connection| {
            let found = connection.query_row(sql, [id], |row| row.get(0));
            Ok(found.optional().map_err(StoreError::from)?)
        })?;
        let receipt = found.map(|json| Receipt::from_json(&json)).transpose();
        Ok(receipt?)
    }
}

fn to_json<T: Serialize>(document: &T) -> Result<String> {
    serde_json::to_string(document).map_err(|_| VaultError::Damaged)
}

fn from_json<T: DeserializeOwned>(json: &str) -> Result<T> {
    serde_json::from_str(json).map_err(|_| VaultError::Damaged)
}

#[cfg(test)]
mod tests;
