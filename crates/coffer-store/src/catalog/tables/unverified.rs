//! Rows of `meta` for blobs that were stored without being opened.

use rusqlite::Connection;

use crate::error::Result;

/// How these rows are named, before the blob's id in hexadecimal.
pub(crate) const UNVERIFIED: &str = "unverified ";

/// What sorts behind all of them.
pub(crate) const UNVERIFIED_END: &str = "unverified!";

/// Whether there is any.
pub(crate) fn has_unverified(connection: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM meta WHERE name > ? AND name < ?)";
    Ok(connection.query_row(sql, [UNVERIFIED, UNVERIFIED_END], |row| row.get(0))?)
}
