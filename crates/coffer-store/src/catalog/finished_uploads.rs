//! Uploads that were completed, and objects that were renamed, for the client that asks again
//! because it never heard the answer.
//!
//! A row is written with the object, in one transaction, and goes a day later, with the next upload
//! that is completed, or the next object that is renamed. It tells what was answered, not what is
//! there: the object may have been replaced or deleted since. No name stands in it, only a digest
//! of what was asked.

use coffer_seal::UploadId;
use rusqlite::{OptionalExtension, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{
    decode_checksum, decode_encryption, decode_u64, encode_checksum, encode_encryption,
};
use crate::catalog::tables::rows::text_or_null;
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::limits::FINISHED_KEPT_MS;
use crate::record::{Checksum, CompletedObject, Encryption};
use crate::version::VersionId;

/// What was answered when an upload was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedUpload {
    /// When, in milliseconds since 1970.
    pub finished_ms: i64,
    /// The object's entity tag, without quotation marks.
    pub etag: String,
    /// How many bytes it had.
    pub size_bytes: u64,
    /// Its checksum.
    pub checksum: Option<Checksum>,
    /// What the version is called that it became.
    pub version: VersionId,
    /// How it was said to be encrypted.
    pub encryption: Encryption,
}

impl Catalog {
    /// What was answered when this upload was completed by this request, less than a day before
    /// `now_ms`. None where it was completed by another one, or not at all.
    pub async fn finished_upload(
        &self,
        id: &UploadId,
        request: &[u8; 32],
        now_ms: i64,
    ) -> Result<Option<FinishedUpload>> {
        self.point(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT finished_ms, etag, size_bytes, checksum, version, encryption
                 FROM finished_upload
                 WHERE upload_id = ? AND request = ? AND finished_ms > ?",
            )?;
            let since_ms = now_ms.saturating_sub(FINISHED_KEPT_MS);
            let mut rows = statement.query(params![id.0, request, since_ms])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            Ok(Some(FinishedUpload {
                finished_ms: row.get(0)?,
                etag: row.get(1)?,
                size_bytes: decode_u64(row.get(2)?)?,
                checksum: text_or_null(row, 3)?.map(decode_checksum).transpose()?,
                version: match text_or_null(row, 4)? {
                    Some(text) => text.parse().map_err(|_| StoreError::damaged_catalog())?,
                    None => VersionId::Null,
                },
                encryption: decode_encryption(text_or_null(row, 5)?)?,
            }))
        })
        .await
    }
}

/// Forgets what was noted more than a day before `now_ms`.
pub(crate) fn forget_old(session: &Session, now_ms: i64) -> Result<()> {
    session
        .prepare_cached("DELETE FROM finished_upload WHERE finished_ms <= ?")?
        .execute([now_ms.saturating_sub(FINISHED_KEPT_MS)])?;
    Ok(())
}

/// The digest of the request that was done under this id, less than a day before `now_ms`.
pub(crate) fn request_of(
    session: &Session,
    id: &[u8; 16],
    now_ms: i64,
) -> Result<Option<[u8; 32]>> {
    let sql = "SELECT request FROM finished_upload WHERE upload_id = ? AND finished_ms > ?";
    let since_ms = now_ms.saturating_sub(FINISHED_KEPT_MS);
    let found = session
        .prepare_cached(sql)?
        .query_row(params![id, since_ms], |row| row.get(0));
    Ok(found.optional()?)
}

/// Notes in the transaction that completes an upload what is about to be answered, and forgets what
/// was noted more than a day before.
pub(crate) fn note(
    session: &Session,
    id: &UploadId,
    object: &CompletedObject,
    (size_bytes, version): (i64, VersionId),
) -> Result<()> {
    forget_old(session, object.modified_ms)?;
    let checksum = object.details.checksum.as_ref().map(encode_checksum);
    session
        .prepare_cached(
            "INSERT OR REPLACE INTO finished_upload(upload_id, finished_ms, request, etag,
                 size_bytes, checksum, version, encryption)
             VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            id.0,
            object.modified_ms,
            object.request,
            object.etag,
            size_bytes,
            checksum,
            (version != VersionId::Null).then(|| version.to_string()),
            encode_encryption(&object.details.encryption),
        ])?;
    Ok(())
}
