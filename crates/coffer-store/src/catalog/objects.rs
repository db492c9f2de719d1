//! Objects as they are put into a catalog and deleted from it.

use bytes::Bytes;
use coffer_seal::BlobId;
use rusqlite::params;

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_id;
use crate::catalog::tables::rows::{ObjectRow, store_blob};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::record::{NewContent, NewObject, ObjectName, Precondition};

/// What became of a put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PutOutcome {
    /// Blobs that nothing refers to any more: their files may go.
    pub replaced: Vec<BlobId>,
}

/// What became of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Whether there was an object.
    pub existed: bool,
    /// Blobs that nothing refers to any more: their files may go.
    pub freed: Vec<BlobId>,
}

impl Catalog {
    /// Puts an object under its name, in place of what is there. Durable when this returns.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`], [`StoreError::Full`].
    pub async fn put(&self, object: NewObject, precondition: Precondition) -> Result<PutOutcome> {
        let row = ObjectRow::new(&object)?;
        let NewObject { name, content, .. } = object;
        self.add(move |session| put(session, &name, &row, &content, &precondition))
            .await
    }

    /// Deletes an object. That there is none is no error, unless the precondition says so.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`].
    pub async fn delete(
        &self,
        name: &ObjectName,
        precondition: Precondition,
    ) -> Result<DeleteOutcome> {
        let name = name.clone();
        self.write(move |session| delete(session, &name, &precondition))
            .await
    }

    /// Deletes several objects in one transaction; each has its own outcome.
    ///
    /// # Errors
    /// Those of the whole; a failed precondition is an inner result.
    pub async fn delete_many(
        &self,
        objects: Vec<(ObjectName, Precondition)>,
    ) -> Result<Vec<Result<DeleteOutcome>>> {
        self.write(move |session| {
            let mut outcomes = Vec::with_capacity(objects.len());
            for (name, precondition) in &objects {
                match delete(session, name, precondition) {
                    // Checked before anything is changed, so there is nothing to undo.
                    Err(StoreError::PreconditionFailed) => {
                        outcomes.push(Err(StoreError::PreconditionFailed));
                    }
                    outcome => outcomes.push(Ok(outcome?)),
                }
            }
            Ok(outcomes)
        })
        .await
    }
}

/// The object under a name, as far as a write needs to know it.
pub(crate) struct There {
    id: i64,
    is_inline: bool,
    etag: String,
    pub(crate) size_bytes: i64,
}

pub(crate) fn find(session: &Session, name: &ObjectName) -> Result<Option<There>> {
    let mut statement = session
        .prepare_cached("SELECT id, is_inline, etag, size_bytes FROM object WHERE name = ?")?;
    let mut rows = statement.query([name.expose().as_bytes()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(There {
        id: row.get(0)?,
        is_inline: row.get(1)?,
        etag: row.get(2)?,
        size_bytes: row.get(3)?,
    }))
}

pub(crate) fn check(precondition: &Precondition, there: Option<&There>) -> Result<()> {
    let holds = match precondition {
        Precondition::None => true,
        Precondition::Absent => there.is_none(),
        Precondition::Present => there.is_some(),
        Precondition::Etag(etag) => there.is_some_and(|there| there.etag == *etag),
    };
    if holds {
        Ok(())
    } else {
        Err(StoreError::PreconditionFailed)
    }
}

/// Removes the content of what is there, so that new content can take its id; gives a new id where
/// there is nothing. Also tells which blobs are free now.
pub(crate) fn make_room(
    session: &Session,
    there: Option<&There>,
    for_inline: bool,
) -> Result<(i64, Vec<BlobId>)> {
    match there {
        // New bytes will overwrite the old ones in their row.
        Some(there) if there.is_inline && for_inline => Ok((there.id, Vec::new())),
        Some(there) => Ok((there.id, remove_content(session, there)?)),
        None => Ok((session.next_object_id()?, Vec::new())),
    }
}

/// Counts an object that was put where there was this one, or none.
pub(crate) fn count_replaced(session: &Session, there: Option<&There>, size_bytes: i64) {
    match there {
        Some(there) => {
            session.count(0, size_bytes - there.size_bytes);
            session.note_removed();
        }
        None => session.count(1, size_bytes),
    }
}

fn put(
    session: &Session,
    name: &ObjectName,
    row: &ObjectRow,
    content: &NewContent,
    precondition: &Precondition,
) -> Result<PutOutcome> {
    // Most names are new. An insert that minds a row of the same name saves the search for one.
    if matches!(precondition, Precondition::None | Precondition::Absent) {
        let id = session.next_object_id()?;
        if row.insert_if_new(session, name, id)? {
            match content {
                NewContent::Inline(data) => store_inline(session, id, data, false)?,
                NewContent::Blob(blob) => store_blob(session, id, 0, 0, blob)?,
            }
            session.count(1, row.size_bytes);
            return Ok(PutOutcome::default());
        }
    }
    let there = find(session, name)?;
    check(precondition, there.as_ref())?;
    let (id, replaced) = make_room(session, there.as_ref(), row.is_inline)?;
    match content {
        NewContent::Inline(data) => {
            let overwrites = there.as_ref().is_some_and(|there| there.is_inline);
            store_inline(session, id, data, overwrites)?;
        }
        NewContent::Blob(blob) => store_blob(session, id, 0, 0, blob)?,
    }
    row.store(session, name, id, there.is_some())?;
    count_replaced(session, there.as_ref(), row.size_bytes);
    Ok(PutOutcome {
        replaced: without(replaced, content),
    })
}

/// What a put frees, never its own blob: not even if it should find what it has put itself.
fn without(mut replaced: Vec<BlobId>, content: &NewContent) -> Vec<BlobId> {
    if let NewContent::Blob(own) = content {
        replaced.retain(|id| *id != own.id);
    }
    replaced
}

fn delete(
    session: &Session,
    name: &ObjectName,
    precondition: &Precondition,
) -> Result<DeleteOutcome> {
    let there = find(session, name)?;
    check(precondition, there.as_ref())?;
    let Some(there) = there else {
        return Ok(DeleteOutcome::default());
    };
    let freed = remove_content(session, &there)?;
    session
        .prepare_cached("DELETE FROM object WHERE name = ?")?
        .execute([name.expose().as_bytes()])?;
    session.count(-1, -there.size_bytes);
    session.note_removed();
    Ok(DeleteOutcome {
        existed: true,
        freed,
    })
}

fn remove_content(session: &Session, there: &There) -> Result<Vec<BlobId>> {
    let mut freed = Vec::new();
    if there.is_inline {
        session
            .prepare_cached("DELETE FROM inline WHERE object_id = ?")?
            .execute([there.id])?;
    } else {
        let mut statement =
            session.prepare_cached("SELECT blob_id FROM blob WHERE object_id = ?")?;
        let mut rows = statement.query([there.id])?;
        while let Some(row) = rows.next()? {
            freed.push(decode_id(
                row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
                BlobId,
            )?);
        }
        session
            .prepare_cached("DELETE FROM blob WHERE object_id = ?")?
            .execute([there.id])?;
    }
    Ok(freed)
}

fn store_inline(session: &Session, id: i64, data: &Bytes, overwrites: bool) -> Result<()> {
    // Not an "insert or update": SQLite would keep, and SQLCipher seal, a copy of each page for
    // the case that it fails half-way.
    let mut statement = session.prepare_cached(if overwrites {
        "UPDATE inline SET data = ?2 WHERE object_id = ?1"
    } else {
        "INSERT INTO inline(object_id, data) VALUES(?1, ?2)"
    })?;
    match statement.execute(params![id, &data[..]])? {
        1 => Ok(()),
        _ => Err(StoreError::damaged_catalog()),
    }
}
