//! How versions make place for newer ones, and take it again when those are deleted.

use coffer_seal::BlobId;
use rusqlite::{OptionalExtension, ToSql, params};

use crate::catalog::tables::columns::decode_id;
use crate::catalog::tables::unverified::forget_verdict;
use crate::catalog::versions::find::{Table, find_version, lock_of, table_of, why_absent};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::lock::{Lock, LockTest, Retention};
use crate::record::ObjectName;
use crate::version::{Absent, VersionId, Versioning, Which};

/// The columns that `object` and `version` have in common.
macro_rules! common_columns {
    () => {
        "name, id, is_inline, size_bytes, etag, modified_ms, part_count, tag_count, checksum,
         details, tags, version_tag, owner, acl, lock, retain_until_ms"
    };
}

/// The object under a name, as far as a write needs to know it.
pub(crate) struct There {
    pub(crate) id: i64,
    pub(crate) is_inline: bool,
    pub(crate) etag: String,
    pub(crate) size_bytes: i64,
    pub(crate) modified_ms: i64,
    /// None of the null version.
    pub(crate) tag: Option<i64>,
    /// What keeps it from being deleted.
    pub(crate) lock: Lock,
}

pub(crate) fn find(session: &Session, name: &ObjectName) -> Result<Option<There>> {
    let mut statement = session.prepare_cached(
        "SELECT id, is_inline, etag, size_bytes, modified_ms, version_tag, lock, retain_until_ms
         FROM object WHERE name = ?",
    )?;
    let mut rows = statement.query([name.expose().as_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(There {
        id: row.get(0)?,
        is_inline: row.get(1)?,
        etag: row.get(2)?,
        size_bytes: row.get(3)?,
        modified_ms: row.get(4)?,
        tag: row.get(5)?,
        lock: Lock::of_columns(row.get(6)?, row.get(7)?)?,
    }))
}

/// Where the newest version of an object is to be written.
pub(crate) struct Place {
    /// The number of its content.
    pub(crate) id: i64,
    /// What tells it from others; none of the null version.
    pub(crate) tag: Option<i64>,
    /// Whether there is a row of its name in `object`, to be written over.
    pub(crate) has_row: bool,
    /// Whether there is a row of its number in `inline`, to be written over.
    pub(crate) has_inline: bool,
    /// Blobs that no row refers to any more.
    pub(crate) freed: Vec<BlobId>,
}

impl Place {
    /// Makes place for a new version of `size_bytes` in front of what is there, which stays behind
    /// it or is replaced as the bucket's state asks; and counts all that.
    pub(crate) fn make(
        session: &Session,
        name: &ObjectName,
        there: Option<&There>,
        state: Versioning,
        (is_inline, size_bytes): (bool, i64),
    ) -> Result<Self> {
        let tag = (state == Versioning::Enabled).then(VersionId::new_tag);
        let replaced = there.filter(|there| tag.is_none() && there.tag.is_none());
        if let Some(replaced) = replaced {
            // Where objects are locked, versions are kept, and nothing is replaced. Should it come
            // to that, a lock stands, ended or not.
            if !replaced.lock.is_none() {
                return Err(StoreError::Locked);
            }
            let has_inline = replaced.is_inline && is_inline;
            let freed = if has_inline {
                // New bytes will overwrite the old ones in their row.
                Vec::new()
            } else {
                remove_content(session, replaced.id, replaced.is_inline)?
            };
            session.count(0, size_bytes - replaced.size_bytes);
            session.note_removed();
            return Ok(Self {
                id: replaced.id,
                tag,
                has_row: true,
                has_inline,
                freed,
            });
        }
        let freed = match state {
            Versioning::Suspended => remove_null(session, name)?,
            _ => Vec::new(),
        };
        if there.is_some() {
            keep(session, name)?;
        }
        session.count(1, size_bytes);
        Ok(Self {
            id: session.next_object_id()?,
            tag,
            has_row: there.is_some(),
            has_inline: false,
            freed,
        })
    }
}

/// Puts the newest version among the others as well; its row in `object` is to be written over, or
/// deleted.
fn keep(session: &Session, name: &ObjectName) -> Result<()> {
    let sql = concat!(
        "INSERT INTO version(is_marker, ",
        common_columns!(),
        ") SELECT 0, ",
        common_columns!(),
        " FROM object WHERE name = ?"
    );
    one(session
        .prepare_cached(sql)?
        .execute([name.expose().as_bytes()])?)
}

/// Makes a delete marker the newest version; what is there stays behind it, but for a null version
/// that the marker replaces. Tells what the marker is called, and what is free now.
pub(crate) fn mark(
    session: &Session,
    name: &ObjectName,
    there: Option<&There>,
    state: Versioning,
    modified_ms: i64,
) -> Result<(VersionId, Vec<BlobId>)> {
    let place = Place::make(session, name, there, state, (false, 0))?;
    if place.has_row {
        delete_row(session, name)?;
    }
    session
        .prepare_cached(
            "INSERT INTO version(name, id, is_marker, is_inline, size_bytes, etag, modified_ms,
                 part_count, tag_count, version_tag)
             VALUES(?, ?, 1, 0, 0, '', ?, 0, 0, ?)",
        )?
        .execute(params![
            name.expose().as_bytes(),
            place.id,
            modified_ms,
            place.tag
        ])?;
    Ok((VersionId::of(place.id, place.tag), place.freed))
}

/// A version that was removed.
pub(crate) struct Removed {
    pub(crate) is_marker: bool,
    pub(crate) freed: Vec<BlobId>,
    /// What stood against it and was passed over.
    pub(crate) overridden: Option<Retention>,
}

/// Removes a version, and makes the one behind it the newest where it was that. None: there is no
/// such version.
pub(crate) fn remove(
    session: &Session,
    name: &ObjectName,
    version: VersionId,
    test: LockTest,
) -> Result<Option<Removed>> {
    let Some(found) = find_version(session, name, version)? else {
        return Ok(None);
    };
    let lock = lock_of(session, name, found.table)?;
    if lock.is_some_and(|lock| lock.keeps_from(test)) {
        return Err(StoreError::Locked);
    }
    let (id, is_inline, size_bytes) = match found.table {
        Table::Object => {
            let there = find(session, name)?.ok_or_else(StoreError::damaged_catalog)?;
            delete_row(session, name)?;
            (there.id, there.is_inline, there.size_bytes)
        }
        Table::Version(id) => take(session, name, id)?,
    };
    let freed = remove_content(session, id, is_inline)?;
    session.count(-1, -size_bytes);
    session.note_removed();
    promote(session, name)?;
    Ok(Some(Removed {
        is_marker: found.is_marker,
        freed,
        overridden: lock.and_then(|lock| lock.overridden(test)),
    }))
}

/// Removes what is there, where there are no other versions.
pub(crate) fn remove_only(
    session: &Session,
    name: &ObjectName,
    there: &There,
) -> Result<Vec<BlobId>> {
    // As where it would be replaced.
    if !there.lock.is_none() {
        return Err(StoreError::Locked);
    }
    delete_row(session, name)?;
    session.count(-1, -there.size_bytes);
    session.note_removed();
    remove_content(session, there.id, there.is_inline)
}

/// Removes the row of a version that is not the newest, or a marker. Number of its content, whether
/// that is inline, and how long it is.
fn take(session: &Session, name: &ObjectName, id: i64) -> Result<(i64, bool, i64)> {
    let sql = "DELETE FROM version WHERE name = ? AND id = ? RETURNING id, is_inline, size_bytes";
    let row = session
        .prepare_cached(sql)?
        .query_row(params![name.expose().as_bytes(), id], |row| row.try_into());
    Ok(row?)
}

/// Removes the null version from those that are not the newest, be it a marker.
fn remove_null(session: &Session, name: &ObjectName) -> Result<Vec<BlobId>> {
    // As above: a locked one stands, unless all that is said is that its hold is off.
    let is_locked: bool = session
        .prepare_cached(
            "SELECT EXISTS(SELECT 1 FROM version
                 WHERE name = ? AND version_tag IS NULL AND lock & 7)",
        )?
        .query_row([name.expose().as_bytes()], |row| row.get(0))?;
    if is_locked {
        return Err(StoreError::Locked);
    }
    let sql = "DELETE FROM version WHERE name = ? AND version_tag IS NULL
               RETURNING id, is_inline, size_bytes";
    let removed: Option<(i64, bool, i64)> = session
        .prepare_cached(sql)?
        .query_row([name.expose().as_bytes()], |row| row.try_into())
        .optional()?;
    let Some((id, is_inline, size_bytes)) = removed else {
        return Ok(Vec::new());
    };
    session.count(-1, -size_bytes);
    session.note_removed();
    remove_content(session, id, is_inline)
}

/// Moves the newest version to `object`, unless it is there already, or is a marker.
fn promote(session: &Session, name: &ObjectName) -> Result<()> {
    let name = name.expose().as_bytes();
    let has_newest: bool = session
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM object WHERE name = ?)")?
        .query_row([name], |row| row.get(0))?;
    if has_newest {
        return Ok(());
    }
    let newest: Option<(i64, bool)> = session
        .prepare_cached(
            "SELECT id, is_marker FROM version WHERE name = ? ORDER BY id DESC LIMIT 1",
        )?
        .query_row([name], |row| row.try_into())
        .optional()?;
    let Some((id, false)) = newest else {
        return Ok(());
    };
    let sql = concat!(
        "INSERT INTO object(",
        common_columns!(),
        ") SELECT ",
        common_columns!(),
        " FROM version WHERE name = ? AND id = ?"
    );
    one(session.prepare_cached(sql)?.execute(params![name, id])?)?;
    let sql = "DELETE FROM version WHERE name = ? AND id = ?";
    one(session.prepare_cached(sql)?.execute(params![name, id])?)
}

fn delete_row(session: &Session, name: &ObjectName) -> Result<()> {
    one(session
        .prepare_cached("DELETE FROM object WHERE name = ?")?
        .execute([name.expose().as_bytes()])?)
}

/// Sets columns of a version's row: `columns` is SQL with the places `?2` and on for `values`.
/// Tells what the version is called.
pub(crate) fn update_row(
    session: &Session,
    name: &ObjectName,
    which: Which,
    columns: &str,
    values: &[&dyn ToSql],
) -> Result<Result<VersionId, Absent>> {
    let table = match table_of(session, name, which)? {
        Ok(table) => table,
        Err(absent) => return Ok(Err(absent)),
    };
    let bytes = name.expose().as_bytes();
    let mut places: Vec<&dyn ToSql> = vec![&bytes];
    places.extend_from_slice(values);
    let (table, only) = match &table {
        Table::Object => ("object", String::new()),
        Table::Version(id) => {
            places.push(id);
            ("version", format!("AND id = ?{}", places.len()))
        }
    };
    let sql =
        format!("UPDATE {table} SET {columns} WHERE name = ?1 {only} RETURNING id, version_tag");
    let updated = session
        .prepare_cached(&sql)?
        .query_row(&places[..], |row| {
            Ok(VersionId::of(row.get(0)?, row.get(1)?))
        })
        .optional()?;
    match updated {
        Some(version) => Ok(Ok(version)),
        None => why_absent(session, name).map(Err),
    }
}

/// Removes content of a number, and tells which blobs are free now.
fn remove_content(session: &Session, id: i64, is_inline: bool) -> Result<Vec<BlobId>> {
    let mut freed = Vec::new();
    if is_inline {
        session
            .prepare_cached("DELETE FROM inline WHERE object_id = ?")?
            .execute([id])?;
    } else {
        let mut statement =
            session.prepare_cached("SELECT blob_id FROM blob WHERE object_id = ?")?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            let id = decode_id(id, BlobId)?;
            forget_verdict(session, id)?;
            freed.push(id);
        }
        session
            .prepare_cached("DELETE FROM blob WHERE object_id = ?")?
            .execute([id])?;
    }
    Ok(freed)
}

fn one(rows: usize) -> Result<()> {
    match rows {
        1 => Ok(()),
        _ => Err(StoreError::damaged_catalog()),
    }
}
