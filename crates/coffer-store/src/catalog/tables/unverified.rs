//! Rows of `meta` for blobs that were stored without being opened.

use coffer_seal::BlobId;
use rusqlite::{Connection, params};

use crate::error::Result;

/// How these rows are named, before the blob's id in hexadecimal.
pub(crate) const UNVERIFIED: &str = "unverified ";

/// What sorts behind all of them.
pub(crate) const UNVERIFIED_END: &str = "unverified!";

/// What a row says of a blob that did not open, or has another checksum.
pub(crate) const DAMAGED: &str = "damaged";

/// How the row of a blob is named.
pub(crate) fn name_of(id: BlobId) -> String {
    format!("{UNVERIFIED}{id}")
}

/// Forgets the verdict on a blob to which nothing refers any more. One that still waits has its row
/// removed when it is met.
pub(crate) fn forget_verdict(connection: &Connection, id: BlobId) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM meta WHERE name = ? AND value = ?")?
        .execute(params![name_of(id), DAMAGED])?;
    Ok(())
}

/// Whether there is any.
pub(crate) fn has_unverified(connection: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM meta WHERE name > ? AND name < ?)";
    Ok(connection.query_row(sql, [UNVERIFIED, UNVERIFIED_END], |row| row.get(0))?)
}
