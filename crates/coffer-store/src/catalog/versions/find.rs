//! Where a version stands, and why there is none.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Result;
use crate::lock::Lock;
use crate::record::ObjectName;
use crate::version::{Absent, VersionId, Which};

/// The table that an object's row is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// The newest version.
    Object,
    /// A version behind it, with this number.
    Version(i64),
}

/// Where the version is that is meant, unless that is the newest and no delete marker: this says
/// `Object` then whether it is there or not.
///
/// # Errors
/// Those of the catalog; that there is none is the inner result.
pub(crate) fn table_of(
    connection: &Connection,
    name: &ObjectName,
    which: Which,
) -> Result<Result<Table, Absent>> {
    let Which::Version(version) = which else {
        return Ok(Ok(Table::Object));
    };
    Ok(match find_version(connection, name, version)? {
        None => Err(Absent::Version),
        Some(Found {
            table: Table::Version(_),
            is_marker: true,
            modified_ms,
        }) => Err(Absent::Marker {
            version,
            modified_ms,
        }),
        Some(found) => Ok(found.table),
    })
}

/// Why there is no newest version that can be read.
pub(crate) fn why_absent(connection: &Connection, name: &ObjectName) -> Result<Absent> {
    let mut statement = connection.prepare_cached(
        "SELECT id, version_tag FROM version WHERE name = ? ORDER BY id DESC LIMIT 1",
    )?;
    let newest = statement
        .query_row([name.expose().as_bytes()], |row| {
            Ok(VersionId::of(row.get(0)?, row.get(1)?))
        })
        .optional()?;
    Ok(newest.map_or(Absent::Object, Absent::Deleted))
}

/// A version that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) table: Table,
    pub(crate) is_marker: bool,
    pub(crate) modified_ms: i64,
}

/// The version of this id, delete marker or not.
pub(crate) fn find_version(
    connection: &Connection,
    name: &ObjectName,
    version: VersionId,
) -> Result<Option<Found>> {
    match version {
        VersionId::Null => null_version(connection, name),
        VersionId::Numbered { id, tag } => numbered_version(connection, name, id, tag),
    }
}

fn null_version(connection: &Connection, name: &ObjectName) -> Result<Option<Found>> {
    let name = params![name.expose().as_bytes()];
    let mut newest = connection.prepare_cached(
        "SELECT 0, modified_ms FROM object WHERE name = ? AND version_tag IS NULL",
    )?;
    if let Some(found) = newest.query_row(name, in_object).optional()? {
        return Ok(Some(found));
    }
    let mut others = connection.prepare_cached(
        "SELECT id, modified_ms, is_marker FROM version
         WHERE name = ? AND version_tag IS NULL",
    )?;
    Ok(others.query_row(name, in_version).optional()?)
}

fn numbered_version(
    connection: &Connection,
    name: &ObjectName,
    id: i64,
    tag: i64,
) -> Result<Option<Found>> {
    let one = params![name.expose().as_bytes(), id, tag];
    let mut newest = connection.prepare_cached(
        "SELECT 0, modified_ms FROM object WHERE name = ? AND id = ? AND version_tag = ?",
    )?;
    if let Some(found) = newest.query_row(one, in_object).optional()? {
        return Ok(Some(found));
    }
    let mut others = connection.prepare_cached(
        "SELECT id, modified_ms, is_marker FROM version
         WHERE name = ? AND id = ? AND version_tag = ?",
    )?;
    Ok(others.query_row(one, in_version).optional()?)
}

fn in_object(row: &Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found {
        table: Table::Object,
        is_marker: false,
        modified_ms: row.get(1)?,
    })
}

fn in_version(row: &Row<'_>) -> rusqlite::Result<Found> {
    Ok(Found {
        table: Table::Version(row.get(0)?),
        is_marker: row.get(2)?,
        modified_ms: row.get(1)?,
    })
}

/// What keeps the version in this table from being deleted. None: there is no such row.
pub(crate) fn lock_of(
    connection: &Connection,
    name: &ObjectName,
    table: Table,
) -> Result<Option<Lock>> {
    let name = name.expose().as_bytes();
    let (sql, id) = match table {
        Table::Object => (
            "SELECT lock, retain_until_ms FROM object WHERE name = ?1 AND ?2 IS NULL",
            None,
        ),
        Table::Version(id) => (
            "SELECT lock, retain_until_ms FROM version WHERE name = ?1 AND id = ?2",
            Some(id),
        ),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![name, id])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Lock::of_columns(row.get(0)?, row.get(1)?).map(Some)
}
