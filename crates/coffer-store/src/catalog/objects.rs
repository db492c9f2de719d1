//! Objects as they are put into a catalog and deleted from it.

pub(crate) mod rename;

use bytes::Bytes;
use coffer_seal::BlobId;
use rusqlite::params;

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_u64;
use crate::catalog::tables::rows::{ObjectRow, store_blob};
use crate::catalog::versions::place::{Place, There, find, mark, remove, remove_only};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::lock::{LockTest, Retention};
use crate::record::{NewContent, NewObject, ObjectName, OnlyIf, Precondition};
use crate::version::{VersionId, Versioning, Which};

/// What became of a put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutOutcome {
    /// Blobs that nothing refers to any more: their files may go.
    pub replaced: Vec<BlobId>,
    /// What the new version is called.
    pub version: VersionId,
}

/// An object, or a version of one, to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The object's name.
    pub name: ObjectName,
    /// Its newest version, which stays behind a delete marker where the bucket keeps versions; or
    /// this one, which is removed.
    pub which: Which,
    /// What must be true of the newest version.
    pub precondition: Precondition,
    /// What must be true of it if it is an object.
    pub only_if: OnlyIf,
    /// When a marker counts as made, in milliseconds since 1970.
    pub now_ms: i64,
    /// What locks are to be compared with.
    pub test: LockTest,
}

/// What became of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Whether there was an object, or the version.
    pub existed: bool,
    /// Blobs that nothing refers to any more: their files may go.
    pub freed: Vec<BlobId>,
    /// The delete marker that was made, or removed.
    pub marker: Option<VersionId>,
    /// The retention for governance that stood against it and was passed over.
    pub overridden: Option<Retention>,
}

impl Catalog {
    /// Puts an object under its name, in place of what is there, or in front of it where the
    /// bucket keeps versions. Durable when this returns.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`], [`StoreError::NothingToMatch`], [`StoreError::Full`].
    pub async fn put(&self, object: NewObject, precondition: Precondition) -> Result<PutOutcome> {
        let row = ObjectRow::new(&object)?;
        let NewObject { name, content, .. } = object;
        let known = self.known_versioning();
        self.add(move |session| {
            let state = known.state_in(session)?;
            put(session, &name, &row, (&content, state), &precondition)
        })
        .await
    }

    /// Deletes an object. That there is none is no error, unless the precondition says so.
    ///
    /// # Errors
    /// [`StoreError::PreconditionFailed`], [`StoreError::NothingToMatch`], [`StoreError::Locked`].
    pub async fn delete(&self, deletion: Deletion) -> Result<DeleteOutcome> {
        let known = self.known_versioning();
        self.write(move |session| {
            let state = known.state_in(session)?;
            delete(session, &deletion, state)
        })
        .await
    }

    /// Deletes several objects in one transaction; each has its own outcome.
    ///
    /// # Errors
    /// Those of the whole; a failed precondition and a lock are inner results.
    pub async fn delete_many(
        &self,
        deletions: Vec<Deletion>,
    ) -> Result<Vec<Result<DeleteOutcome>>> {
        let known = self.known_versioning();
        self.write(move |session| {
            let state = known.state_in(session)?;
            let mut outcomes = Vec::with_capacity(deletions.len());
            for deletion in &deletions {
                match delete(session, deletion, state) {
                    // Checked before anything is changed, so there is nothing to undo.
                    Err(
                        error @ (StoreError::PreconditionFailed
                        | StoreError::NothingToMatch
                        | StoreError::Locked),
                    ) => outcomes.push(Err(error)),
                    outcome => outcomes.push(Ok(outcome?)),
                }
            }
            Ok(outcomes)
        })
        .await
    }
}

pub(crate) fn check(precondition: &Precondition, there: Option<&There>) -> Result<()> {
    match (precondition, there) {
        (Precondition::None, _)
        | (Precondition::Absent, None)
        | (Precondition::Present, Some(_)) => Ok(()),
        (Precondition::Etag(etag), Some(there)) if there.etag == *etag => Ok(()),
        (Precondition::Present | Precondition::Etag(_), None) => Err(StoreError::NothingToMatch),
        (Precondition::Absent | Precondition::Etag(_), Some(_)) => {
            Err(StoreError::PreconditionFailed)
        }
    }
}

/// Whether what is there is as it must be, if it is there.
fn check_only_if(only_if: OnlyIf, there: Option<&There>) -> Result<()> {
    let Some(there) = there.filter(|_| !only_if.is_nothing()) else {
        return Ok(());
    };
    let size_bytes = decode_u64(there.size_bytes)?;
    let is_same = |modified_s: i64| there.modified_ms.div_euclid(1_000) == modified_s;
    let is_as_long = |size: u64| size == size_bytes;
    if only_if.modified_s.is_none_or(is_same) && only_if.size_bytes.is_none_or(is_as_long) {
        Ok(())
    } else {
        Err(StoreError::PreconditionFailed)
    }
}

fn put(
    session: &Session,
    name: &ObjectName,
    row: &ObjectRow,
    (content, state): (&NewContent, Versioning),
    precondition: &Precondition,
) -> Result<PutOutcome> {
    let is_unconditional = matches!(precondition, Precondition::None | Precondition::Absent);
    // Most names are new. An insert that minds a row of the same name saves the search for one. A
    // null version may stand elsewhere, but only while versions are kept no more.
    if is_unconditional && state != Versioning::Suspended {
        let id = session.next_object_id()?;
        let tag = (state == Versioning::Enabled).then(VersionId::new_tag);
        if row.insert_if_new(session, name, (id, tag))? {
            store_content(session, id, content, false)?;
            session.count(1, row.size_bytes);
            return Ok(PutOutcome {
                replaced: Vec::new(),
                version: VersionId::of(id, tag),
            });
        }
    }
    let there = find(session, name)?;
    check(precondition, there.as_ref())?;
    let kind = (row.is_inline, row.size_bytes);
    let place = Place::make(session, name, there.as_ref(), state, kind)?;
    store_content(session, place.id, content, place.has_inline)?;
    row.store(session, name, (place.id, place.tag), place.has_row)?;
    Ok(PutOutcome {
        replaced: without(place.freed, content),
        version: VersionId::of(place.id, place.tag),
    })
}

fn store_content(session: &Session, id: i64, content: &NewContent, has_inline: bool) -> Result<()> {
    match content {
        NewContent::Inline(data) => store_inline(session, id, data, has_inline),
        NewContent::Blob(blob) => store_blob(session, id, 0, 0, blob),
    }
}

/// What a put frees, never its own blob: not even if it should find what it has put itself.
fn without(mut replaced: Vec<BlobId>, content: &NewContent) -> Vec<BlobId> {
    if let NewContent::Blob(own) = content {
        replaced.retain(|id| *id != own.id);
    }
    replaced
}

fn delete(session: &Session, deletion: &Deletion, state: Versioning) -> Result<DeleteOutcome> {
    let Deletion {
        name,
        which,
        precondition,
        only_if,
        now_ms,
        test,
    } = deletion;
    let there = find(session, name)?;
    check(precondition, there.as_ref())?;
    check_only_if(*only_if, there.as_ref())?;
    let version = match which {
        Which::Version(version) => *version,
        Which::Current if state == Versioning::Never => {
            let freed = there.map(|there| remove_only(session, name, &there));
            return Ok(DeleteOutcome {
                existed: freed.is_some(),
                freed: freed.transpose()?.unwrap_or_default(),
                ..DeleteOutcome::default()
            });
        }
        Which::Current => {
            let existed = there.is_some();
            let (marker, freed) = mark(session, name, there.as_ref(), state, *now_ms)?;
            return Ok(DeleteOutcome {
                existed,
                freed,
                marker: Some(marker),
                overridden: None,
            });
        }
    };
    let removed = remove(session, name, version, *test)?;
    Ok(
        removed.map_or_else(DeleteOutcome::default, |removed| DeleteOutcome {
            existed: true,
            freed: removed.freed,
            marker: removed.is_marker.then_some(version),
            overridden: removed.overridden,
        }),
    )
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
