//! Multipart uploads under way, and what they become.

use coffer_seal::{BlobId, UploadId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::catalog::delimiter::{Delimiter, end_of};
use crate::catalog::finished_uploads::note;
use crate::catalog::objects::check;
use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{
    decode_checksum_type, decode_details, decode_id, decode_tags, encode_checksum,
    encode_checksum_type, encode_details, encode_tags, encode_u64,
};
use crate::catalog::tables::rows::{
    BLOB_COLUMNS, ObjectRow, blob_columns, read_blob, read_name, store_blob, text_or_null,
};
use crate::catalog::tables::unverified::forget_verdict;
use crate::catalog::versions::place::{Place, find};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::limits::LIST_MAX;
use crate::lock::Lock;
use crate::record::{CompletedObject, Part, Precondition, Upload, UploadsPage, UploadsQuery};
use crate::version::{VersionId, Versioning};

/// An upload that was ended without an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbortedUpload {
    /// The blobs of its parts, which no row refers to any more.
    pub freed: Vec<BlobId>,
    /// Who began it, where that is known.
    pub made_by: Option<String>,
}

/// An upload that became an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedUpload {
    /// Blobs that no row refers to any more.
    pub replaced: Vec<BlobId>,
    /// What the new version is called.
    pub version: VersionId,
    /// Who began it, where that is known.
    pub made_by: Option<String>,
}

impl Catalog {
    /// Begins an upload. Durable when this returns.
    pub async fn create_upload(&self, upload: Upload) -> Result<()> {
        let (lock, retain_until_ms) = upload.lock.to_columns();
        self.add(move |session| {
            session
                .prepare_cached(
                    "INSERT INTO upload(name, upload_id, started_ms, checksum, details, tags,
                         made_by, lock, retain_until_ms, acl)
                     VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    upload.name.expose().as_bytes(),
                    upload.id.0,
                    upload.started_ms,
                    upload.checksum.map(encode_checksum_type),
                    encode_details(&upload.details),
                    encode_tags(&upload.tags),
                    upload.made_by,
                    lock,
                    retain_until_ms,
                    upload.acl,
                ])?;
            session.count_uploads(1, 0);
            Ok(())
        })
        .await
    }

    /// An upload under way.
    pub async fn upload(&self, id: &UploadId) -> Result<Option<Upload>> {
        self.point(|connection| find_upload(connection, id)).await
    }

    /// Takes a part, in place of one of the same number, whose blob it then tells.
    ///
    /// # Errors
    /// [`StoreError::NoSuchUpload`].
    pub async fn put_part(&self, upload_id: UploadId, part: Part) -> Result<Option<BlobId>> {
        self.add(move |session| {
            let replaced: Option<([u8; 16], i64)> = session
                .prepare_cached(
                    "SELECT blob_id, plaintext_bytes FROM part
                     WHERE upload_id = ? AND part_number = ?",
                )?
                .query_row(params![upload_id.0, part.number], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            let replaced_bytes = replaced.map_or(0, |(_, bytes)| bytes);
            let grown = encode_u64(part.blob.plaintext_bytes)? - replaced_bytes;
            grow(session, &upload_id, grown)?;
            session
                .prepare_cached(
                    "INSERT OR REPLACE INTO part(upload_id, part_number, etag, modified_ms,
                         blob_id, plaintext_bytes, key_generation, wrapped_key, checksum)
                     VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                )?
                .execute(params![
                    upload_id.0,
                    part.number,
                    part.etag,
                    part.modified_ms,
                    part.blob.id.0,
                    encode_u64(part.blob.plaintext_bytes)?,
                    part.blob.key_generation,
                    part.blob.wrapped_key,
                    part.blob.checksum.as_ref().map(encode_checksum),
                ])?;
            if replaced.is_some() {
                session.note_removed();
            }
            // Never its own, not even if it should find what it has put itself.
            let replaced = replaced.map(|(id, _)| BlobId(id));
            let replaced = replaced.filter(|id| *id != part.blob.id);
            if let Some(id) = replaced {
                forget_verdict(session, id)?;
            }
            Ok(replaced)
        })
        .await
    }

    /// A page of uploads under way, at most [`LIST_MAX`] rows.
    pub async fn uploads(&self, query: UploadsQuery) -> Result<UploadsPage> {
        self.long(move |connection| list(connection, &query)).await
    }

    /// Ends an upload without an object: its parts' files may go.
    ///
    /// # Errors
    /// [`StoreError::NoSuchUpload`].
    pub async fn abort_upload(&self, id: &UploadId) -> Result<AbortedUpload> {
        let id = *id;
        self.write(move |session| abort(session, &id)).await
    }

    /// Makes an object of the named parts, in one transaction; parts not named are freed, like
    /// what the object replaces.
    ///
    /// # Errors
    /// [`StoreError::NoSuchUpload`] (also for another name than the upload's),
    /// [`StoreError::PartChanged`], [`StoreError::PreconditionFailed`],
    /// [`StoreError::NothingToMatch`].
    pub async fn complete_upload(
        &self,
        id: &UploadId,
        object: CompletedObject,
        precondition: Precondition,
    ) -> Result<CompletedUpload> {
        let (id, known) = (*id, self.known_versioning());
        self.write(move |session| {
            let state = known.state_in(session)?;
            complete(session, &id, &object, (&precondition, state))
        })
        .await
    }
}

fn complete(
    session: &Session,
    upload_id: &UploadId,
    object: &CompletedObject,
    (precondition, state): (&Precondition, Versioning),
) -> Result<CompletedUpload> {
    let upload = find_upload(session, upload_id)?.ok_or(StoreError::NoSuchUpload)?;
    if upload.name != object.name {
        return Err(StoreError::NoSuchUpload);
    }
    let there = find(session, &object.name)?;
    check(precondition, there.as_ref())?;
    let parts = named_parts(session, upload_id, object)?;

    // Everything is checked: from here on, only the disk can fail.
    let named = parts.iter().filter(|(_, is_named)| *is_named);
    let size_bytes = encode_u64(named.map(|(part, _)| part.blob.plaintext_bytes).sum())?;
    let place = Place::make(
        session,
        &object.name,
        there.as_ref(),
        state,
        (false, size_bytes),
    )?;
    let (mut replaced, mut offset_bytes) = (place.freed, 0);
    for (part, is_named) in parts {
        if is_named {
            store_blob(session, place.id, offset_bytes, part.number, &part.blob)?;
            offset_bytes += encode_u64(part.blob.plaintext_bytes)?;
        } else {
            forget_verdict(session, part.blob.id)?;
            replaced.push(part.blob.id);
        }
    }
    let made_by = remove(session, upload_id)?;
    let mut row = ObjectRow::described(&object.details, &object.tags, object.lock, &object.access);
    row.size_bytes = size_bytes;
    row.etag.clone_from(&object.etag);
    row.modified_ms = object.modified_ms;
    // At most `PART_NUMBER_MAX`, for numbers ascend.
    row.part_count = u32::try_from(object.parts.len()).map_err(|_| StoreError::OutOfRange)?;
    row.store(session, &object.name, (place.id, place.tag), place.has_row)?;
    let version = VersionId::of(place.id, place.tag);
    note(session, upload_id, object, (size_bytes, version))?;
    Ok(CompletedUpload {
        replaced,
        version,
        made_by,
    })
}

/// All parts of an upload in the order of their numbers, and whether the object is to have each.
fn named_parts(
    session: &Session,
    upload_id: &UploadId,
    object: &CompletedObject,
) -> Result<Vec<(Part, bool)>> {
    let mut statement = session.prepare_cached(concat!(
        "SELECT ",
        blob_columns!(),
        ", part_number, etag, modified_ms FROM part WHERE upload_id = ? ORDER BY part_number"
    ))?;
    let mut rows = statement.query([upload_id.0])?;
    let mut parts = Vec::new();
    let mut named = object.parts.iter().peekable();
    while let Some(row) = rows.next()? {
        let part = read_part(row)?;
        // A name that was passed over has no part: it stays here and is told below.
        let is_named = named.next_if(|(number, _)| *number == part.number);
        if is_named.is_some_and(|(_, blob_id)| *blob_id != part.blob.id) {
            return Err(StoreError::PartChanged {
                number: part.number,
            });
        }
        parts.push((part, is_named.is_some()));
    }
    match named.next() {
        Some((number, _)) => Err(StoreError::PartChanged { number: *number }),
        None => Ok(parts),
    }
}

fn list(connection: &Connection, query: &UploadsQuery) -> Result<UploadsPage> {
    let limit = query.limit.min(LIST_MAX);
    if limit == 0 {
        return Ok(Default::default());
    }
    let delimiter = Delimiter::new(&query.prefix, query.delimiter.as_deref());
    let end = delimiter.end();
    let mut begin = first_upload(&delimiter, query.start_after.as_ref());
    let mut page = UploadsPage::default();
    let mut last = None;

    let mut statement = connection.prepare_cached(
        "SELECT name, upload_id, started_ms, checksum, details, tags, lock, retain_until_ms, acl,
             made_by
         FROM upload
         WHERE (name, upload_id) >= (?, ?) AND name < ? ORDER BY name, upload_id",
    )?;
    'seek: loop {
        let mut rows = statement.query([&begin.0, &begin.1, &end])?;
        while let Some(row) = rows.next()? {
            if page.uploads.len() + page.prefixes.len() == limit {
                page.next = last;
                break 'seek;
            }
            let upload = read_upload(row)?;
            if let Some(folded) = delimiter.fold(upload.name.expose()) {
                begin = (end_of(folded), Vec::new());
                last = Some((folded.to_owned(), None));
                page.prefixes.push(folded.to_owned());
                continue 'seek;
            }
            last = Some((upload.name.expose().to_owned(), Some(upload.id)));
            page.uploads.push(upload);
        }
        break;
    }
    Ok(page)
}

/// The least name and id that come after `after`.
fn first_upload(
    delimiter: &Delimiter<'_>,
    after: Option<&(String, Option<UploadId>)>,
) -> (Vec<u8>, Vec<u8>) {
    match after {
        Some((name, Some(id))) if delimiter.fold(name).is_none() => {
            let mut just_after = id.0.to_vec();
            just_after.push(0);
            let from_prefix = delimiter.begin(None);
            // Before the prefix begins, ids don't matter.
            if name.as_bytes() < &from_prefix[..] {
                (from_prefix, Vec::new())
            } else {
                (name.as_bytes().to_vec(), just_after)
            }
        }
        after => (
            delimiter.begin(after.map(|(name, _)| name.as_str())),
            Vec::new(),
        ),
    }
}

pub(crate) fn find_upload(connection: &Connection, id: &UploadId) -> Result<Option<Upload>> {
    let mut statement = connection.prepare_cached(
        "SELECT name, upload_id, started_ms, checksum, details, tags, lock, retain_until_ms, acl,
             made_by
         FROM upload
         WHERE upload_id = ?",
    )?;
    let mut rows = statement.query([id.0])?;
    rows.next()?.map(read_upload).transpose()
}

/// Adds to the bytes that an upload's parts have.
fn grow(session: &Session, id: &UploadId, bytes: i64) -> Result<()> {
    let sql = "UPDATE upload SET size_bytes = size_bytes + ? WHERE upload_id = ?";
    session.count_uploads(0, bytes);
    match session.prepare_cached(sql)?.execute(params![bytes, id.0])? {
        0 => Err(StoreError::NoSuchUpload),
        _ => Ok(()),
    }
}

/// Ends an upload without an object.
pub(crate) fn abort(session: &Session, id: &UploadId) -> Result<AbortedUpload> {
    let mut statement = session.prepare_cached("SELECT blob_id FROM part WHERE upload_id = ?")?;
    let mut rows = statement.query([id.0])?;
    let mut freed = Vec::new();
    while let Some(row) = rows.next()? {
        let id = BlobId(row.get(0)?);
        forget_verdict(session, id)?;
        freed.push(id);
    }
    let made_by = remove(session, id)?;
    Ok(AbortedUpload { freed, made_by })
}

/// Removes an upload and its parts from the tables. Tells who began it.
fn remove(session: &Session, id: &UploadId) -> Result<Option<String>> {
    let (made_by, bytes): (Option<String>, i64) = session
        .prepare_cached("DELETE FROM upload WHERE upload_id = ? RETURNING made_by, size_bytes")?
        .query_row([id.0], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or(StoreError::NoSuchUpload)?;
    session.count_uploads(-1, -bytes);
    session
        .prepare_cached("DELETE FROM part WHERE upload_id = ?")?
        .execute([id.0])?;
    session.note_removed();
    Ok(made_by)
}

fn read_upload(row: &Row<'_>) -> Result<Upload> {
    Ok(Upload {
        name: read_name(row)?,
        id: decode_id(
            row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?,
            UploadId,
        )?,
        started_ms: row.get(2)?,
        checksum: text_or_null(row, 3)?
            .map(decode_checksum_type)
            .transpose()?,
        details: decode_details(text_or_null(row, 4)?, None)?,
        tags: decode_tags(text_or_null(row, 5)?)?,
        lock: Lock::of_columns(row.get(6)?, row.get(7)?)?,
        acl: row.get(8)?,
        made_by: row.get(9)?,
    })
}

/// Reads `blob_columns!`, then number, entity tag and time.
pub(crate) fn read_part(row: &Row<'_>) -> Result<Part> {
    Ok(Part {
        number: row.get(BLOB_COLUMNS)?,
        etag: row.get(BLOB_COLUMNS + 1)?,
        modified_ms: row.get(BLOB_COLUMNS + 2)?,
        blob: read_blob(row, 0)?,
    })
}
