//! The formats of `system.db`: what a new one holds, and how one of an older format is brought to
//! this one's. `docs/FORMAT.md` has all of it.
//!
//! A format that was released is never changed: what comes later is another step. Databases that
//! are opened for reading only stay as they are, so their reader does without what later
//! steps brought.

use coffer_store::{StoreError, ZeroizedGaps};
use rusqlite::{Connection, Transaction};

use super::SCHEMA_1;
use crate::error::Result;

/// The format that this version writes.
pub(super) const FORMAT_VERSION: i32 = 6;

/// What each format changes in the one before: the first row makes 2 of 1. One statement each, with
/// its semicolon.
const STEPS: [&[&str]; FORMAT_VERSION as usize - 1] = [TO_2, TO_3, TO_4, TO_5, TO_6];

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

/// Until then a subject was its access key: its id. Now it has an id of its own, to which all is
/// bound, and any number of access keys.
const TO_5: &[&str] = &[
    "ALTER TABLE subject RENAME TO old_subject;",
    "CREATE TABLE subject(
        id BLOB PRIMARY KEY NOT NULL,
        name TEXT NOT NULL UNIQUE,
        clearance TEXT NOT NULL,
        roles TEXT NOT NULL,
        is_narrowed INTEGER NOT NULL,
        is_disabled INTEGER NOT NULL,
        expires_ms INTEGER,
        created_ms INTEGER NOT NULL,
        is_trusted INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;",
    "INSERT INTO subject SELECT randomblob(16), name, clearance, roles, is_narrowed, is_disabled,
        expires_ms, created_ms, is_trusted FROM old_subject;",
    "CREATE TABLE access_key(
        id TEXT PRIMARY KEY NOT NULL,
        subject_id BLOB NOT NULL,
        secret TEXT NOT NULL,
        is_disabled INTEGER NOT NULL,
        expires_ms INTEGER,
        created_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;",
    "INSERT INTO access_key SELECT old.access_key_id, subject.id, old.secret_access_key, 0, NULL,
        old.created_ms FROM old_subject old JOIN subject USING(name);",
    "ALTER TABLE bucket_grant RENAME TO old_grant;",
    "CREATE TABLE bucket_grant(
        subject_id BLOB NOT NULL,
        bucket_id BLOB NOT NULL,
        rights TEXT NOT NULL,
        PRIMARY KEY(subject_id, bucket_id)
    ) STRICT, WITHOUT ROWID;",
    "INSERT INTO bucket_grant SELECT access_key.subject_id, bucket_id, rights
        FROM old_grant JOIN access_key ON access_key.id = access_key_id;",
    "ALTER TABLE mark RENAME TO old_mark;",
    "CREATE TABLE mark(
        subject_id BLOB PRIMARY KEY NOT NULL,
        label TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;",
    "INSERT INTO mark SELECT subject.id, label
        FROM old_mark JOIN subject ON subject.name = old_mark.subject;",
    "DROP TABLE old_grant;",
    "DROP TABLE old_mark;",
    "DROP TABLE old_subject;",
];

const TO_6: &[&str] = &[
    "CREATE TABLE quota(
        kind TEXT NOT NULL,
        id BLOB NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY(kind, id)
    ) STRICT, WITHOUT ROWID;",
    "CREATE TABLE lock_time(
        id BLOB PRIMARY KEY NOT NULL,
        document TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;",
];

/// From this format on, requests that wait for approvals name people by subject id.
const PEOPLE_BY_ID: i32 = 5;

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
        let _gaps = ZeroizedGaps::of(&transaction);
        for statement in steps.iter().flat_map(|step| step.iter()) {
            transaction.execute_batch(statement)?;
        }
        if found < PEOPLE_BY_ID {
            name_people_by_id(&transaction)?;
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

/// Has requests that wait name people by subject id, not by access key id: else one person could
/// speak twice. Ids of access keys stand in these documents for people only, in quotation marks.
fn name_people_by_id(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut keys = transaction.prepare("SELECT id, lower(hex(subject_id)) FROM access_key")?;
    let mut rows = keys.query(())?;
    while let Some(row) = rows.next()? {
        let (key, subject): (String, String) = (row.get(0)?, row.get(1)?);
        let sql = "UPDATE request SET document = replace(document, ?1, ?2)
                   WHERE instr(document, ?1)";
        transaction.execute(sql, [format!("\"{key}\""), format!("\"{subject}\"")])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
