//! Blobs that came sealed and were stored without being opened: they wait to be verified, or were
//! found not to be what they were to be.
//!
//! Each has a row in `meta`, named by its id, from before anything refers to it until it has opened
//! whole. Of one that was found damaged it goes with the blob; another whose blob is gone says
//! nothing, and is removed when it is met.

use std::sync::atomic::Ordering;

use coffer_seal::BlobId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::catalog::open::Catalog;
use crate::catalog::read::{select, with_row};
use crate::catalog::tables::columns::{decode_checksum, encode_checksum};
use crate::catalog::tables::rows::{blob_columns, read_blob};
use crate::catalog::tables::unverified::{DAMAGED, UNVERIFIED, UNVERIFIED_END, name_of};
use crate::catalog::walk::contains_blob;
use crate::error::{Result, StoreError};
use crate::record::{BlobRef, Checksum, ObjectName, Verification};
use crate::version::Which;

/// What it says of others; the checksum that the client told follows.
const WAITS: &str = "waits ";

/// A blob that waits to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingBlob {
    /// Its id.
    pub id: BlobId,
    /// The checksum that its plaintext must have.
    pub checksum: Checksum,
}

/// What is known of one blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobState {
    /// It was opened whole, or never waited.
    Whole,
    /// It waits to be verified.
    Waits(WaitingBlob),
    /// It was found not to be what it was to be.
    Damaged,
    /// Nothing refers to it any more, and a verdict went with it.
    Gone,
}

impl Catalog {
    /// Notes that a blob that nothing refers to yet was stored without being opened. Durable when
    /// this returns.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn await_verification(&self, id: BlobId, checksum: &Checksum) -> Result<()> {
        let value = format!("{WAITS}{}", encode_checksum(checksum));
        self.has_unverified().store(true, Ordering::SeqCst);
        self.add(move |session| {
            let sql = "INSERT OR REPLACE INTO meta VALUES(?, ?)";
            session.execute(sql, params![name_of(id), value])?;
            Ok(())
        })
        .await
    }

    /// Notes that a blob has opened whole, or that it is gone.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn note_verified(&self, id: BlobId) -> Result<()> {
        self.write(move |session| {
            session.execute("DELETE FROM meta WHERE name = ?", [name_of(id)])?;
            Ok(())
        })
        .await
    }

    /// Notes that a blob is not what it was to be: nothing that it holds is given out any more. Of
    /// one that is gone, nothing is noted.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn note_damaged(&self, id: BlobId) -> Result<()> {
        self.write(move |session| {
            let sql = "UPDATE meta SET value = ?1 WHERE name = ?2
                       AND (EXISTS (SELECT 1 FROM blob WHERE blob_id = ?3)
                         OR EXISTS (SELECT 1 FROM part WHERE blob_id = ?3))";
            session.execute(sql, params![DAMAGED, name_of(id), id.0])?;
            Ok(())
        })
        .await
    }

    /// Whether a blob was found not to be what it was to be.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn is_noted_damaged(&self, id: BlobId) -> Result<bool> {
        if !self.has_unverified().load(Ordering::SeqCst) {
            return Ok(false);
        }
        self.point(|connection| {
            let sql = "SELECT EXISTS (SELECT 1 FROM meta WHERE name = ? AND value = ?)";
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row(params![name_of(id), DAMAGED], |row| row.get(0))?)
        })
        .await
    }

    /// Blobs that wait to be verified, behind this one, at most so many.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn waiting_blobs(
        &self,
        after: Option<BlobId>,
        limit: usize,
    ) -> Result<Vec<WaitingBlob>> {
        if !self.has_unverified().load(Ordering::SeqCst) {
            return Ok(Vec::new());
        }
        let after = after.map_or_else(|| UNVERIFIED.to_owned(), name_of);
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT name, value FROM meta
                 WHERE name > ?1 AND name < ?2 AND value <> ?3 ORDER BY name LIMIT ?4",
            )?;
            let mut rows =
                statement.query(params![after, UNVERIFIED_END, DAMAGED, limit as i64])?;
            let mut waiting = Vec::new();
            while let Some(row) = rows.next()? {
                waiting.push(waiting_blob(
                    &row.get::<_, String>(0)?,
                    &row.get::<_, String>(1)?,
                )?);
            }
            Ok(waiting)
        })
        .await
    }

    /// What is known of a blob, by one read: a verdict may come at any time, and the blob may go.
    /// Where nothing ever waited in the catalog, it is not looked for.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn blob_state(&self, id: BlobId) -> Result<BlobState> {
        if !self.has_unverified().load(Ordering::SeqCst) {
            return Ok(BlobState::Whole);
        }
        self.point(|connection| {
            let name = name_of(id);
            let value: Option<String> = connection
                .prepare_cached("SELECT value FROM meta WHERE name = ?")?
                .query_row([&name], |row| row.get(0))
                .optional()?;
            match value.as_deref() {
                None if contains_blob(connection, &id)? => Ok(BlobState::Whole),
                None => Ok(BlobState::Gone),
                Some(DAMAGED) => Ok(BlobState::Damaged),
                Some(value) => waiting_blob(&name, value).map(BlobState::Waits),
            }
        })
        .await
    }

    /// A blob as an object or a part refers to it; none where nothing does.
    ///
    /// # Errors
    /// Those of the catalog.
    pub async fn blob(&self, id: BlobId) -> Result<Option<BlobRef>> {
        self.point(|connection| {
            for sql in [
                concat!("SELECT ", blob_columns!(), " FROM blob WHERE blob_id = ?"),
                concat!("SELECT ", blob_columns!(), " FROM part WHERE blob_id = ?"),
            ] {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query([id.0])?;
                if let Some(row) = rows.next()? {
                    return read_blob(row, 0).map(Some);
                }
            }
            Ok(None)
        })
        .await
    }

    /// What is known of how an object is stored.
    ///
    /// # Errors
    /// Those of the catalog; an object that is not there is verified.
    pub async fn verification(&self, name: &ObjectName, which: Which) -> Result<Verification> {
        if !self.has_unverified().load(Ordering::SeqCst) {
            return Ok(Verification::Whole);
        }
        self.point(|connection| {
            let found = with_row(connection, name, which, select!(["o.id"] ""), |row| {
                worst_of(connection, row.get(0)?)
            })?;
            Ok(found.unwrap_or_default())
        })
        .await
    }
}

/// What is known of the blob of which least is good.
fn worst_of(connection: &Connection, object_id: i64) -> Result<Verification> {
    let mut statement = connection.prepare_cached(
        "SELECT max(value = ?2) FROM blob
         JOIN meta ON meta.name = ?3 || lower(hex(blob_id)) WHERE object_id = ?1",
    )?;
    let is_damaged: Option<bool> = statement
        .query_row(params![object_id, DAMAGED, UNVERIFIED], |row| row.get(0))
        .optional()?
        .flatten();
    Ok(match is_damaged {
        None => Verification::Whole,
        Some(false) => Verification::Waits,
        Some(true) => Verification::Failed,
    })
}

fn waiting_blob(name: &str, value: &str) -> Result<WaitingBlob> {
    let id = name.strip_prefix(UNVERIFIED).and_then(BlobId::from_hex);
    let id = id.ok_or_else(StoreError::damaged_catalog)?;
    let checksum = value.strip_prefix(WAITS);
    let checksum = decode_checksum(checksum.ok_or_else(StoreError::damaged_catalog)?)?;
    Ok(WaitingBlob { id, checksum })
}
