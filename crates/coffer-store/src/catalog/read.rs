//! Objects as they are read from a catalog.

use std::ops::Range;

use rusqlite::{Connection, Row, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_checksum, decode_u64, encode_u64};
use crate::catalog::tables::rows::{
    BLOB_COLUMNS, HEAD_COLUMNS, HEAD_ID, blob_columns, head_columns, read_blob, read_head,
    read_inline, row_limit, text_or_null,
};
use crate::catalog::versions::find::{Table, table_of, why_absent};
use crate::error::Result;
use crate::limits::LIST_MAX;
use crate::record::{Content, ObjectHead, ObjectName, ObjectPart};
use crate::version::{Absent, Which};

/// A version's row: columns, and what they are joined with.
macro_rules! select {
    ([$($columns:tt)*] $join:literal) => {
        (
            concat!("SELECT ", $($columns)*, " FROM object AS o ", $join, " WHERE name = ?"),
            concat!(
                "SELECT ",
                $($columns)*,
                " FROM version AS o ",
                $join,
                " WHERE name = ? AND o.id = ?"
            ),
        )
    };
}
pub(crate) use select;

/// Runs one of the two statements of `select!` for the version that is meant, and gives `read` its
/// row. As long as `read` runs, what else is read is of the same state.
pub(crate) fn with_row<T>(
    connection: &Connection,
    name: &ObjectName,
    which: Which,
    (in_object, in_version): (&str, &str),
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Result<T, Absent>> {
    let bytes = name.expose().as_bytes();
    let found = match table_of(connection, name, which)? {
        Ok(Table::Object) => {
            let mut statement = connection.prepare_cached(in_object)?;
            let mut rows = statement.query([bytes])?;
            rows.next()?.map(read).transpose()?
        }
        Ok(Table::Version(id)) => {
            let mut statement = connection.prepare_cached(in_version)?;
            let mut rows = statement.query(params![bytes, id])?;
            rows.next()?.map(read).transpose()?
        }
        Err(absent) => return Ok(Err(absent)),
    };
    match found {
        Some(found) => Ok(Ok(found)),
        None => why_absent(connection, name).map(Err),
    }
}

impl Catalog {
    /// What is known of an object.
    ///
    /// # Errors
    /// Those of the catalog; that there is none is the inner result.
    pub async fn head(
        &self,
        name: &ObjectName,
        which: Which,
    ) -> Result<Result<ObjectHead, Absent>> {
        self.point(|connection| {
            let statements = select!([head_columns!()] "");
            with_row(connection, name, which, statements, read_head)
        })
        .await
    }

    /// What is known of an object, and where its part of this number lies, in one transaction.
    ///
    /// # Errors
    /// As [`head`](Self::head).
    pub async fn head_and_part(
        &self,
        name: &ObjectName,
        which: Which,
        number: Option<u32>,
    ) -> Result<Result<(ObjectHead, Option<Range<u64>>), Absent>> {
        self.point(|connection| {
            let statements = select!([head_columns!()] "");
            with_row(connection, name, which, statements, |row| {
                let part = range_of_part(connection, row.get(HEAD_ID)?, number)?;
                Ok((read_head(row)?, part))
            })
        })
        .await
    }

    /// Reads an object in one transaction: its head, from which `choose` picks a range (or
    /// refuses), and its bytes or the blobs that overlap that range.
    ///
    /// # Errors
    /// Those of the catalog; that there is none, and a refusal, are the inner results.
    pub async fn read<E>(
        &self,
        name: &ObjectName,
        which: Which,
        choose: impl FnOnce(&ObjectHead) -> Result<Range<u64>, E>,
    ) -> Result<Result<Result<(ObjectHead, Range<u64>, Content), E>, Absent>> {
        let choose = |head: &ObjectHead, _| choose(head);
        self.read_part(name, which, None, choose).await
    }

    /// The same, where `choose` is told where the part of this number lies as well.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_part<E>(
        &self,
        name: &ObjectName,
        which: Which,
        number: Option<u32>,
        choose: impl FnOnce(&ObjectHead, Option<Range<u64>>) -> Result<Range<u64>, E>,
    ) -> Result<Result<Result<(ObjectHead, Range<u64>, Content), E>, Absent>> {
        self.point(|connection| {
            let statements = select!(
                [head_columns!(), ", is_inline, data"] "LEFT JOIN inline ON object_id = o.id"
            );
            with_row(connection, name, which, statements, |row| {
                let head = read_head(row)?;
                let part = range_of_part(connection, row.get(HEAD_ID)?, number)?;
                let range = match choose(&head, part) {
                    Ok(range) => range,
                    Err(refused) => return Ok(Err(refused)),
                };
                let content = if row.get(HEAD_COLUMNS)? {
                    Content::Inline(read_inline(row, HEAD_COLUMNS + 1, head.size_bytes)?)
                } else {
                    overlapping(connection, row.get(HEAD_ID)?, &range)?
                };
                Ok(Ok((head, range, content)))
            })
        })
        .await
    }

    /// Where part `number` lies in an object that was uploaded in parts, in bytes. `None` when
    /// there is no such object or part.
    pub async fn part_range(
        &self,
        name: &ObjectName,
        which: Which,
        number: u32,
    ) -> Result<Option<Range<u64>>> {
        self.point(|connection| {
            let id = with_row(connection, name, which, select!(["o.id"] ""), |row| {
                Ok(row.get::<_, i64>(0)?)
            })?;
            let Ok(id) = id else { return Ok(None) };
            range_of_part(connection, id, Some(number))
        })
        .await
    }

    /// What is known of an object, and its parts with numbers above `after`, ascending, at most
    /// [`LIST_MAX`] + 1: none where it came in one piece.
    ///
    /// # Errors
    /// Those of the catalog; that there is none is the inner result.
    pub async fn object_parts(
        &self,
        name: &ObjectName,
        which: Which,
        after: u32,
        limit: usize,
    ) -> Result<Result<(ObjectHead, Vec<ObjectPart>), Absent>> {
        let name = name.clone();
        let limit = row_limit(limit, LIST_MAX + 1);
        self.long(move |connection| {
            let statements = select!([head_columns!()] "");
            with_row(connection, &name, which, statements, |row| {
                let parts = parts_of(connection, row.get(HEAD_ID)?, after, limit)?;
                Ok((read_head(row)?, parts))
            })
        })
        .await
    }

    /// Whether the bucket has neither objects nor delete markers; there may be uploads under way.
    pub async fn is_without_objects(&self) -> Result<bool> {
        self.point(|connection| {
            let empty = "SELECT NOT EXISTS(SELECT 1 FROM object)
                            AND NOT EXISTS(SELECT 1 FROM version)";
            Ok(connection.query_row(empty, (), |row| row.get(0))?)
        })
        .await
    }

    /// Whether the bucket has neither objects, delete markers nor uploads under way.
    pub async fn is_empty(&self) -> Result<bool> {
        self.point(|connection| {
            let empty = "SELECT NOT EXISTS(SELECT 1 FROM object)
                            AND NOT EXISTS(SELECT 1 FROM version)
                            AND NOT EXISTS(SELECT 1 FROM upload)";
            Ok(connection.query_row(empty, (), |row| row.get(0))?)
        })
        .await
    }
}

fn range_of_part(
    connection: &Connection,
    object_id: i64,
    number: Option<u32>,
) -> Result<Option<Range<u64>>> {
    let Some(number) = number else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(
        "SELECT offset_bytes, plaintext_bytes FROM blob INDEXED BY blob_by_part
         WHERE object_id = ? AND part_number = ? AND part_number > 0",
    )?;
    let mut rows = statement.query(params![object_id, number])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let start = decode_u64(row.get(0)?)?;
    Ok(Some(start..start + decode_u64(row.get(1)?)?))
}

fn parts_of(
    connection: &Connection,
    object_id: i64,
    after: u32,
    limit: i64,
) -> Result<Vec<ObjectPart>> {
    let mut statement = connection.prepare_cached(
        "SELECT part_number, plaintext_bytes, checksum FROM blob INDEXED BY blob_by_part
         WHERE object_id = ? AND part_number > 0 AND part_number > ?
         ORDER BY part_number LIMIT ?",
    )?;
    let mut rows = statement.query(params![object_id, after, limit])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        parts.push(ObjectPart {
            number: row.get(0)?,
            size_bytes: decode_u64(row.get(1)?)?,
            checksum: text_or_null(row, 2)?.map(decode_checksum).transpose()?,
        });
    }
    Ok(parts)
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
