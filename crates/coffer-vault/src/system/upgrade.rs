//! The formats of `system.db`: what a new one holds, and how one of an older format is brought to
//! this one's. `docs/FORMAT.md` has all of it.
//!
//! A format that was released is never changed: what comes later is another step. Databases that
//! are opened for reading only stay as they are, so their reader does without what later
//! steps brought.

use coffer_store::StoreError;
use rusqlite::Connection;

use super::SCHEMA_1;
use crate::error::Result;

/// The format that this version writes.
pub(super) const FORMAT_VERSION: i32 = 4;

/// What each format changes in the one before: the first row makes 2 of 1. One statement each, with
/// its semicolon.
const STEPS: [&[&str]; FORMAT_VERSION as usize - 1] = [TO_2, TO_3, TO_4];

const TO_2: &[&str] = &[
    // How many commits there were: tells whether one that failed stands all the same.
    "CREATE TABLE commits(
        only INTEGER PRIMARY KEY NOT NULL CHECK(only = 1),
        number INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;",
    "INSERT INTO commits(only, number) VALUES(1, 0);",
    "ALTER TABLE subject ADD COLUMN is_trusted INTEGER NOT NULL DEFAULT 0;",
    "CREATE TABLE mark(
        subject TEXT PRIMARY KEY NOT NULL,
        label TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;",
];

const TO_3: &[&str] = &["CREATE TABLE backup(
        id BLOB PRIMARY KEY NOT NULL,
        document TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;"];

const TO_4: &[&str] = &["CREATE TABLE bucket_configuration(
        bucket_id BLOB NOT NULL,
        kind TEXT NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY(bucket_id, kind)
    ) STRICT, WITHOUT ROWID;"];

/// The tables of a new database: the same way that older ones came.
pub(super) fn schema() -> String {
    let steps = STEPS.iter().flat_map(|step| step.iter().copied());
    std::iter::once(SCHEMA_1).chain(steps).collect()
}

/// Brings a database to this format, in one transaction.
pub(super) fn upgrade(connection: &mut Connection) -> Result<()> {
    let found = connection
        .query_row("PRAGMA user_version", (), |row| row.get::<_, i32>(0))
        .map_err(StoreError::from)?;
    let done = usize::try_from(found - 1).unwrap_or(0);
    let Some(steps) = STEPS.get(done..).filter(|steps| !steps.is_empty()) else {
        return Ok(());
    };
    let mut upgrade = || {
        let transaction = connection.transaction()?;
        for statement in steps.iter().flat_map(|step| step.iter()) {
            transaction.execute_batch(statement)?;
        }
        transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
        transaction.commit()
    };
    upgrade().map_err(StoreError::from)?;
    tracing::info!(
        from = found,
        to = FORMAT_VERSION,
        "system.db was brought to a newer format: older versions of coffer refuse it now"
    );
    Ok(())
}

#[cfg(test)]
mod tests;
