//! Objects as they are read from a catalog.

use std::ops::Range;

use rusqlite::{Connection, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_checksum, decode_u64, encode_u64};
use crate::catalog::tables::rows::{
    BLOB_COLUMNS, blob_columns, head_columns, read_blob, read_head, read_inline, row_limit,
    text_or_null,
};
use crate::error::Result;
use crate::limits::LIST_MAX;
use crate::record::{Content, ObjectHead, ObjectName, ObjectPart};

impl Catalog {
    /// What is known of an object.
    pub async fn head(&self, name: &ObjectName) -> Result<Option<ObjectHead>> {
        self.point(|connection| {
            let mut statement = connection.prepare_cached(concat!(
                "SELECT ",
                head_columns!(),
                " FROM object WHERE name = ?"
            ))?;
            let mut rows = statement.query([name.expose().as_bytes()])?;
            rows.next()?.map(read_head).transpose()
        })
        .await
    }

    /// Reads an object in one transaction: its head, from which `choose` picks a range (or
    /// refuses), and its bytes or the blobs that overlap that range.
    ///
    /// # Errors
    /// Those of the catalog; a refusal is the inner result.
    pub async fn read<E>(
        &self,
        name: &ObjectName,
        choose: impl FnOnce(&ObjectHead) -> Result<Range<u64>, E>,
    ) -> Result<Option<Result<(ObjectHead, Range<u64>, Content), E>>> {
        self.point(|connection| {
            // As long as this statement is not reset, what follows sees the same state.
            let mut statement = connection.prepare_cached(concat!(
                "SELECT ",
                head_columns!(),
                ", object.id, is_inline, data
                 FROM object LEFT JOIN inline ON object_id = id
                 WHERE name = ?"
            ))?;
            let mut rows = statement.query([name.expose().as_bytes()])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let head = read_head(row)?;
            let range = match choose(&head) {
                Ok(range) => range,
                Err(refused) => return Ok(Some(Err(refused))),
            };
            let content = if row.get(8)? {
                Content::Inline(read_inline(row, 9, head.size_bytes)?)
            } else {
                overlapping(connection, row.get(7)?, &range)?
            };
            Ok(Some(Ok((head, range, content))))
        })
        .await
    }

    /// Where part `number` lies in an object that was uploaded in parts, in bytes. `None` when
    /// there is no such object or part.
    pub async fn part_range(&self, name: &ObjectName, number: u32) -> Result<Option<Range<u64>>> {
        self.point(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT offset_bytes, plaintext_bytes FROM object
                 JOIN blob INDEXED BY blob_by_part ON object_id = id
                 WHERE name = ? AND part_number = ? AND part_number > 0",
            )?;
            let mut rows = statement.query(params![name.expose().as_bytes(), number])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let start = decode_u64(row.get(0)?)?;
            Ok(Some(start..start + decode_u64(row.get(1)?)?))
        })
        .await
    }

    /// What is known of an object, and its parts with numbers above `after`, ascending, at most
    /// [`LIST_MAX`] + 1: none where it came in one piece.
    pub async fn object_parts(
        &self,
        name: &ObjectName,
        after: u32,
        limit: usize,
    ) -> Result<Option<(ObjectHead, Vec<ObjectPart>)>> {
        let name = name.clone();
        self.long(move |connection| {
            // As long as this statement is not reset, what follows sees the same state.
            let mut statement = connection.prepare_cached(concat!(
                "SELECT ",
                head_columns!(),
                ", id FROM object WHERE name = ?"
            ))?;
            let mut rows = statement.query([name.expose().as_bytes()])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            let (head, object_id): (_, i64) = (read_head(row)?, row.get(7)?);
            let mut statement = connection.prepare_cached(
                "SELECT part_number, plaintext_bytes, checksum FROM blob INDEXED BY blob_by_part
                 WHERE object_id = ? AND part_number > 0 AND part_number > ?
                 ORDER BY part_number LIMIT ?",
            )?;
            let limit = row_limit(limit, LIST_MAX + 1);
            let mut rows = statement.query(params![object_id, after, limit])?;
            let mut parts = Vec::new();
            while let Some(row) = rows.next()? {
                parts.push(ObjectPart {
                    number: row.get(0)?,
                    size_bytes: decode_u64(row.get(1)?)?,
                    checksum: text_or_null(row, 2)?.map(decode_checksum).transpose()?,
                });
            }
            Ok(Some((head, parts)))
        })
        .await
    }

    /// Whether the bucket has neither objects nor uploads under way.
    pub async fn is_empty(&self) -> Result<bool> {
        self.point(|connection| {
            let empty = "SELECT NOT EXISTS(SELECT 1 FROM object)
                            AND NOT EXISTS(SELECT 1 FROM upload)";
            Ok(connection.query_row(empty, (), |row| row.get(0))?)
        })
        .await
    }
}

/// The blobs of an object that overlap `range`, in order.
pub(crate) fn overlapping(
    connection: &Connection,
    object_id: i64,
    range: &Range<u64>,
) -> Result<Content> {
    // The last blob that begins at or before the range's start, and all that begin in it. An empty
    // last part begins where the one before it ends: it does no harm to have it.
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        blob_columns!(),
        ", offset_bytes FROM blob
         WHERE object_id = ?1 AND offset_bytes < ?3 AND offset_bytes >=
             (SELECT max(offset_bytes) FROM blob WHERE object_id = ?1 AND offset_bytes <= ?2)
         ORDER BY offset_bytes, part_number"
    ))?;
    let mut rows = statement.query(params![
        object_id,
        encode_u64(range.start)?,
        encode_u64(range.end)?
    ])?;
    let mut first_offset_bytes = None;
    let mut blobs = Vec::new();
    while let Some(row) = rows.next()? {
        if first_offset_bytes.is_none() {
            first_offset_bytes = Some(decode_u64(row.get(BLOB_COLUMNS)?)?);
        }
        blobs.push(read_blob(row, 0)?);
    }
    Ok(Content::Blobs {
        first_offset_bytes: first_offset_bytes.unwrap_or(0),
        blobs,
    })
}
