//! The rows of a catalog as records, and back.

use bytes::Bytes;
use coffer_seal::BlobId;
use rusqlite::{Row, params};

use crate::catalog::tables::columns::{
    decode_checksum, decode_details, decode_id, decode_tags, decode_u64, decode_wrapped_key,
    encode_checksum, encode_details, encode_tags, encode_u64,
};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::lock::Lock;
use crate::record::{
    Access, BlobRef, Details, NewContent, NewObject, ObjectHead, ObjectName, Tags,
};
use crate::version::VersionId;

/// The columns that make an `ObjectHead`, for `read_head`.
macro_rules! head_columns {
    () => {
        "size_bytes, etag, modified_ms, part_count, tag_count, checksum, details, id, version_tag,
         lock, retain_until_ms, owner, acl, tags"
    };
}
/// The columns that make a `BlobRef`, for `read_blob`; both `blob` and `part` have them.
macro_rules! blob_columns {
    () => {
        "blob_id, plaintext_bytes, key_generation, wrapped_key, checksum"
    };
}
/// The columns of `object` and their values, for `ObjectRow::execute`.
macro_rules! object_columns {
    () => {
        "(name, id, is_inline, size_bytes, etag, modified_ms, part_count, tag_count, checksum,
             details, tags, version_tag, lock, retain_until_ms, owner, acl)
         VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    };
}
pub(crate) use {blob_columns, head_columns};

/// Which of `head_columns!` is the number of the content.
pub(crate) const HEAD_ID: usize = 7;

/// How many `head_columns!` there are.
pub(crate) const HEAD_COLUMNS: usize = 14;

/// How many `blob_columns!` there are.
pub(crate) const BLOB_COLUMNS: usize = 5;

pub(crate) fn read_head(row: &Row<'_>) -> Result<ObjectHead> {
    Ok(ObjectHead {
        size_bytes: decode_u64(row.get(0)?)?,
        etag: row.get(1)?,
        modified_ms: row.get(2)?,
        part_count: row.get(3)?,
        tag_count: row.get(4)?,
        tags: decode_tags(text_or_null(row, HEAD_ID + 6)?)?,
        details: decode_details(text_or_null(row, 6)?, text_or_null(row, 5)?)?,
        version: VersionId::of(row.get(HEAD_ID)?, row.get(HEAD_ID + 1)?),
        lock: Lock::of_columns(row.get(HEAD_ID + 2)?, row.get(HEAD_ID + 3)?)?,
        access: read_access(row, HEAD_ID + 4)?,
    })
}

/// Reads `owner` and `acl`, which begin with number `first`.
pub(crate) fn read_access(row: &Row<'_>, first: usize) -> Result<Access> {
    Ok(Access {
        owner: row.get(first)?,
        acl: row.get(first + 1)?,
    })
}

/// Reads a `BlobRef` whose columns begin with number `first`.
pub(crate) fn read_blob(row: &Row<'_>, first: usize) -> Result<BlobRef> {
    let blob = |column| -> Result<&[u8]> {
        Ok(row
            .get_ref(column)?
            .as_blob()
            .map_err(rusqlite::Error::from)?)
    };
    Ok(BlobRef {
        id: decode_id(blob(first)?, BlobId)?,
        plaintext_bytes: decode_u64(row.get(first + 1)?)?,
        key_generation: row.get(first + 2)?,
        wrapped_key: decode_wrapped_key(blob(first + 3)?)?,
        checksum: text_or_null(row, first + 4)?
            .map(decode_checksum)
            .transpose()?,
    })
}

pub(crate) fn text_or_null<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>> {
    Ok(row
        .get_ref(column)?
        .as_str_or_null()
        .map_err(rusqlite::Error::from)?)
}

/// The object's name in the first column.
pub(crate) fn read_name(row: &Row<'_>) -> Result<ObjectName> {
    let bytes = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
    let text = std::str::from_utf8(bytes).map_err(|_| StoreError::damaged_catalog())?;
    ObjectName::new(text).ok_or_else(StoreError::damaged_catalog)
}

/// The bytes of a small object, which must be as many as its row says.
pub(crate) fn read_inline(row: &Row<'_>, column: usize, size_bytes: u64) -> Result<Bytes> {
    let data = row
        .get_ref(column)?
        .as_blob()
        .map_err(rusqlite::Error::from)?;
    if data.len() as u64 == size_bytes {
        Ok(Bytes::copy_from_slice(data))
    } else {
        Err(StoreError::damaged_catalog())
    }
}

/// Everything in an object's row but its name and id, ready to be written.
pub(crate) struct ObjectRow {
    pub(crate) is_inline: bool,
    pub(crate) size_bytes: i64,
    pub(crate) etag: String,
    pub(crate) modified_ms: i64,
    pub(crate) part_count: u32,
    tag_count: i64,
    checksum: Option<String>,
    details: Option<String>,
    tags: Option<String>,
    /// The columns of the lock.
    lock: (Option<i64>, Option<i64>),
    access: Access,
}

impl ObjectRow {
    pub(crate) fn new(object: &NewObject) -> Result<Self> {
        let size_bytes = match &object.content {
            NewContent::Inline(data) => data.len() as u64,
            NewContent::Blob(blob) => blob.plaintext_bytes,
        };
        let mut row = Self::described(&object.details, &object.tags, object.lock, &object.access);
        row.is_inline = matches!(object.content, NewContent::Inline(_));
        row.size_bytes = encode_u64(size_bytes)?;
        row.etag.clone_from(&object.etag);
        row.modified_ms = object.modified_ms;
        Ok(row)
    }

    /// A row of an object in blobs; size, entity tag, time and number of parts are still to come.
    pub(crate) fn described(details: &Details, tags: &Tags, lock: Lock, access: &Access) -> Self {
        Self {
            is_inline: false,
            size_bytes: 0,
            etag: String::new(),
            modified_ms: 0,
            part_count: 0,
            tag_count: tag_count(tags),
            checksum: details.checksum.as_ref().map(encode_checksum),
            details: encode_details(details),
            tags: encode_tags(tags),
            lock: lock.to_columns(),
            access: access.clone(),
        }
    }

    /// Writes the row in place of the one of this name, or as a new one where there is none.
    pub(crate) fn store(
        &self,
        session: &Session,
        name: &ObjectName,
        (id, tag): (i64, Option<i64>),
        has_row: bool,
    ) -> Result<()> {
        let statement = if has_row {
            "UPDATE object SET id = ?2, is_inline = ?3, size_bytes = ?4, etag = ?5,
                 modified_ms = ?6, part_count = ?7, tag_count = ?8, checksum = ?9, details = ?10,
                 tags = ?11, version_tag = ?12, lock = ?13, retain_until_ms = ?14, owner = ?15,
                 acl = ?16
             WHERE name = ?1"
        } else {
            concat!("INSERT INTO object", object_columns!())
        };
        match self.execute(session, statement, name, (id, tag))? {
            1 => Ok(()),
            _ => Err(StoreError::damaged_catalog()),
        }
    }

    /// Writes the row unless there is one of this name. Whether it did.
    pub(crate) fn insert_if_new(
        &self,
        session: &Session,
        name: &ObjectName,
        (id, tag): (i64, Option<i64>),
    ) -> Result<bool> {
        let statement = concat!(
            "INSERT INTO object",
            object_columns!(),
            " ON CONFLICT(name) DO NOTHING"
        );
        Ok(self.execute(session, statement, name, (id, tag))? == 1)
    }

    fn execute(
        &self,
        session: &Session,
        statement: &str,
        name: &ObjectName,
        (id, tag): (i64, Option<i64>),
    ) -> Result<usize> {
        Ok(session.prepare_cached(statement)?.execute(params![
            name.expose().as_bytes(),
            id,
            self.is_inline,
            self.size_bytes,
            self.etag,
            self.modified_ms,
            self.part_count,
            self.tag_count,
            self.checksum,
            self.details,
            self.tags,
            tag,
            self.lock.0,
            self.lock.1,
            self.access.owner,
            self.access.acl,
        ])?)
    }
}

/// `part_number` is 0 for an object of one piece.
pub(crate) fn store_blob(
    session: &Session,
    object_id: i64,
    offset_bytes: i64,
    part_number: u32,
    blob: &BlobRef,
) -> Result<()> {
    session
        .prepare_cached(
            "INSERT INTO blob(object_id, offset_bytes, part_number, blob_id, plaintext_bytes,
                 key_generation, wrapped_key, checksum)
             VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            object_id,
            offset_bytes,
            part_number,
            blob.id.0,
            encode_u64(blob.plaintext_bytes)?,
            blob.key_generation,
            blob.wrapped_key,
            blob.checksum.as_ref().map(encode_checksum),
        ])?;
    Ok(())
}

pub(crate) fn tag_count(tags: &Tags) -> i64 {
    i64::try_from(tags.len()).unwrap_or(i64::MAX)
}

/// A number of rows as SQL takes it; `max` is one of this crate's limits.
pub(crate) fn row_limit(limit: usize, max: usize) -> i64 {
    i64::try_from(limit.min(max)).unwrap_or(i64::MAX)
}
